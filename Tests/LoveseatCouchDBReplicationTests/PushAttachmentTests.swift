import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// How documents with attachments are pushed.
struct PushAttachmentTests {
    @Test func `attachments go in parts, and in JSON to a remote that takes no parts`() throws {
        var push = Push(["a", "b", "c"], attachments: ["a": true, "b": true])
        try push.run { request in
            if case .parts = request { .refused(Answers.failure(415)) } else { nil }
        }
        #expect(push.log.filter { $0.hasPrefix("parts") } == ["parts a", "parts b"])
        #expect(push.log.filter { $0.hasPrefix("inline") } == ["inline a", "inline b"])
        #expect(push.pushed == ["a", "b", "c"])
        // It is not tried again.
        push.machine.noteChange()
        push.documents.attachments["d"] = true
        push.add(["d"], after: 3)
        try push.run()
        #expect(push.log.last == "inline d")
    }

    @Test func `a remote that takes neither form refuses the document`() throws {
        var push = Push(["a", "b"], attachments: ["a": true])
        try push.run { request in
            switch request {
            case .parts, .inline: .refused(Answers.failure(415))
            default: nil
            }
        }
        #expect(push.failed == ["a"])
        #expect(push.pushed == ["b"])
    }

    @Test(arguments: [true, false]) func `a remote that lacks an attachment gets all of them, once`(
        _ isEnough: Bool
    ) throws {
        var push = Push(["a", "b"], attachments: ["a": true])
        try push.run { request in
            switch request {
            case .parts(let leaf) where !leaf.isWhole || !isEnough: .refused(Answers.failure(412))
            default: nil
            }
        }
        #expect(push.documents.rendered.filter { $0 == "a whole" }.count == 1)
        #expect(push.log.filter { $0 == "parts a" }.count == 2)
        #expect(push.pushed == (isEnough ? ["a", "b"] : ["b"]))
    }

    @Test func `a document whose stubs the remote lacks is sent with its attachments`() throws {
        var push = Push(["a"])
        let documents = push.documents
        try push.run { request in
            guard case .bulk = request else { return nil }
            documents.attachments["a"] = true
            return .refused(Answers.failure(412))
        }
        #expect(push.log == ["differences a", "bulk a", "parts a"])
        #expect(push.pushed == ["a"])
    }

    @Test func `an attachment that is not here, or is damaged, keeps back its document alone`() throws {
        var push = Push(["a", "b", "c"], attachments: ["a": false, "b": true])
        try push.run { request in
            guard case .parts = request else { return nil }
            return .unreadable(LoveseatError(.corruptData, "damaged"))
        }
        #expect(push.failed == ["a", "b"])
        #expect(push.pushed == ["c"])
        #expect(!push.log.contains("parts a"))
        #expect(!push.machine.completed.contains(1))
        #expect(push.machine.completed.contains(3))
    }

    @Test(arguments: [404, 429, 503, 507]) func `a document with attachments meets the same failures`(
        _ status: Int
    ) throws {
        var push = Push(["a"], attachments: ["a": true])
        let error = #expect(throws: LoveseatError.self) {
            try push.run { if case .parts = $0 { .refused(Answers.failure(status)) } else { nil } }
        }
        #expect(error?.code == LoveseatError.Code(10_000 + status))
    }
}
