import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// What a push sends, and what it makes of the answers.
struct PushMachineTests {
    private typealias Request = PushMachine.Request

    private static func refused(_ id: String, _ error: String, revision: String? = nil) throws
        -> RefusedDocument
    {
        var row: JSONValue = ["id": .string(id), "error": .string(error), "reason": "no"]
        if let revision { row["rev"] = .string(revision) }
        let answer = JSONElement(JSONText(canonical: .array([row])))
        return try #require(try RefusedDocument.read(answer, of: [id]).first)
    }

    // MARK: Pages

    @Test func `nothing is sent where nothing has changed`() throws {
        var push = Push([])
        try push.run()
        #expect(push.log == [])
        #expect(push.reports == [.checkpoint(isLast: true)])
    }

    @Test func `pages are pushed in turn, and count as done after their last document`() throws {
        var push = Push(["a", "b"])
        push.add(["c"], after: 2)
        try push.run()
        #expect(push.log == ["differences a b", "bulk a b", "differences c", "bulk c"])
        #expect(push.pushed == ["a", "b", "c"])
        #expect(push.machine.completed.contains(3))
        #expect(push.checkpoints.log == ["marked", "marked"])
        #expect(push.reports.first == .busy(true))
        #expect(push.reports.suffix(2) == [.checkpoint(isLast: true), .busy(false)])
        // What comes later is pushed as well.
        push.machine.noteChange()
        push.add(["d"], after: 3)
        try push.run()
        #expect(push.pushed == ["a", "b", "c", "d"])
    }

    @Test func `a page does not count as done while a document of it is under way`() throws {
        var push = Push(["a"])
        try push.machine.goOn()
        let differences = try push.next()
        #expect(push.isIdle(atOnce: 8))
        try push.machine.receive(Push.success(differences.request), to: differences.number)
        let bulk = try push.next()
        try push.machine.goOn()
        #expect(!push.machine.completed.contains(1))
        try push.machine.receive(.written([]), to: bulk.number)
        try push.machine.goOn()
        #expect(push.machine.completed.contains(1))
    }

    @Test func `what the remote has is not sent, and not marked`() throws {
        var push = Push(["a", "b"])
        try push.run { request in
            guard case .differences = request else { return nil }
            var missing = MissingRevisions()
            missing.missing = [ExactText(RevisionID.test(1, "a").text)]
            return .differences([ExactText("b"): .success(missing)])
        }
        #expect(push.log == ["differences a b", "bulk b"])
        #expect(push.pushed == ["b"])
        #expect(push.machine.completed.contains(1))
    }

    @Test func `a document whose differences cannot be read is tried again in the next session`() throws {
        var push = Push(["a", "b"])
        try push.run { request in
            guard case .differences = request else { return nil }
            return .differences([ExactText("a"): .failure(LoveseatError(.remoteError, "unreadable"))])
        }
        #expect(push.failed == ["a"])
        #expect(!push.machine.completed.contains(1))
        #expect(push.machine.completed.contains(2))
        // This session does not, for ever and ever.
        push.machine.noteChange()
        try push.run()
        #expect(push.log.count == 1)
    }

    @Test(arguments: [true, false])
    func `a document that cannot be pushed is reported, and others are pushed`(
        _ isHeldBack: Bool
    ) throws {
        var push = Push(["a"])
        var page = PushPage(2...3)
        page.unfit = [
            PushPage.Unfit(
                id: "_x",
                sequence: 2,
                isDeleted: false,
                error: LoveseatError(.badDocID, ""),
                isHeldBack: isHeldBack
            )
        ]
        push.documents.pages.append(page)
        try push.run()
        #expect(push.pushed == ["a"])
        #expect(push.failed == ["_x"])
        #expect(push.machine.completed.contains(2) == !isHeldBack)
        #expect(push.machine.completed.contains(3))
    }

    // MARK: Batches

    @Test func `a batch has at most 200 documents, and three are under way`() throws {
        var push = Push((0..<500).map { "d\($0)" })
        try push.run()
        #expect(push.log.map { $0.split(separator: " ").count - 1 } == [500, 200, 200, 100])
        #expect(push.pushed.count == 500)
    }

    @Test func `a remote that takes one request at once gets one`() throws {
        var push = Push(["a", "b", "c"], attachments: ["a": true, "b": true, "c": true])
        try push.machine.goOn()
        let first = try push.next(atOnce: 1)
        try push.machine.receive(Push.success(first.request), to: first.number)
        _ = try push.next(atOnce: 1)
        #expect(push.isIdle(atOnce: 1))
        #expect(!push.isIdle(atOnce: 2))
    }

    /// Refusals of a batch as a whole, of which one document is the reason.
    @Test(arguments: [400, 401, 403, 409, 413, 415, 422, 500, 501])
    func `a refused batch is divided until the document is found that is refused`(_ status: Int) throws {
        var push = Push(["a", "b", "c", "d"])
        try push.run { request in
            guard case .bulk(let leaves) = request, leaves.contains(where: { $0.documentID == "c" })
            else { return nil }
            // A server that fails at a single document fails with a 500.
            let isAlone = status == 501 && leaves.count == 1
            return .refused(Answers.failure(isAlone ? 500 : status))
        }
        #expect(push.pushed == ["a", "b", "d"])
        #expect(push.failed == ["c"])
        #expect(push.log.contains("permission") == (status == 403))
        // What is refused for good counts as done.
        let isFinal = errors(in: push.reports)["c"]??.isFinalRefusal ?? false
        #expect(push.machine.completed.contains(3) == isFinal)
    }

    @Test(arguments: [404, 429, 502, 503, 507]) func `a remote that fails at everything ends the push`(
        _ status: Int
    ) throws {
        var push = Push(["a", "b"])
        let error = #expect(throws: LoveseatError.self) {
            try push.run { request in
                if case .bulk = request { .refused(Answers.failure(status)) } else { nil }
            }
        }
        #expect(error?.code == LoveseatError.Code(10_000 + status))
        #expect(!push.machine.completed.contains(1))
        #expect(push.checkpoints.log == [])
    }

    @Test func `rows refuse a document, or one of its leaves`() throws {
        for revision in [nil, RevisionID.test(1, "b").text, "9-z"] {
            var push = Push(["a", "b"], leaves: 2)
            let row = try Self.refused("a", "forbidden", revision: revision)
            try push.run { if case .bulk = $0 { .written([row]) } else { nil } }
            #expect(push.pushed == ["b"])
            #expect(push.failed == ["a"])
            #expect(push.reports.count { $0 == .finished(0, documents: 1) } == 1)
        }
    }

    @Test func `a row that tells of a full disk ends the push`() throws {
        var push = Push(["a", "b"])
        let row = try Self.refused("a", "enospc")
        let error = #expect(throws: LoveseatError.self) {
            try push.run { if case .bulk = $0 { .written([row]) } else { nil } }
        }
        #expect(error?.code.value == 10_507)
    }

    // MARK: Read-only remotes

    @Test func `a remote that takes no documents at all ends the push`() throws {
        var push = Push(["a", "b", "c"])
        let error = #expect(throws: LoveseatError.self) {
            try push.run { request in
                switch request {
                case .bulk: .refused(Answers.failure(403, "read-only"))
                case .permission: .permission(Answers.failure(403, "read-only"))
                default: nil
                }
            }
        }
        #expect(error?.code == .httpForbidden)
        #expect(push.log == ["differences a b c", "bulk a b c", "permission"])
    }

    @Test func `a remote that has taken documents is not asked whether it takes any`() throws {
        var push = Push(["a"])
        push.add(["b", "c"], after: 1)
        try push.run { request in
            guard case .bulk(let leaves) = request, leaves.contains(where: { $0.documentID == "b" }) else {
                return nil
            }
            return .refused(Answers.failure(403))
        }
        #expect(!push.log.contains("permission"))
        #expect(push.failed == ["b"])
    }

    @Test(arguments: [1, 8, 9, 40]) func `a remote that refuses many documents and takes none refuses all`(
        _ count: Int
    ) throws {
        var push = Push((0..<count).map { "d\($0)" })
        func answer(_ request: Request) -> PushMachine.Answer? {
            if case .bulk = request { .refused(Answers.failure(401)) } else { nil }
        }
        guard count > 8 else {
            try push.run(answer)
            #expect(push.log.last == "presence")
            #expect(push.failed.count == count)
            #expect(!push.machine.completed.contains(1))
            return
        }
        let error = #expect(throws: LoveseatError.self) { try push.run(answer) }
        #expect(error?.code == .httpAuthRequired)
    }

    @Test func `a remote that refuses one document and does not answer either ends the push`() throws {
        var push = Push(["a"])
        let error = #expect(throws: LoveseatError.self) {
            try push.run { request in
                switch request {
                case .bulk: .refused(Answers.failure(500))
                case .presence: .presence(false)
                default: nil
                }
            }
        }
        #expect(error?.code.value == 10_500)
    }
}
