import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// What a passive peer answers, message for message. Numbers in the names are lines of replication.md Part G, after a B
/// of blip.md §15.
struct PassiveChecklistTests {
    private let ours: ReplayedPeer

    init() throws {
        ours = try ReplayedPeer()
        _ = try ours.collection(.default)
    }

    private func line(_ change: (inout PassivePlan) -> Void = { _ in }) throws -> ReplayedPeer.Line {
        var plan = PassivePlan(collections: [.default])
        change(&plan)
        let line = ReplayedPeer.Line(
            { ReplicationSession(passive: plan, replicas: $0) },
            DatabaseReplicas(store: ours.store, nowMilliseconds: { 0 }),
            resolve: { _ in nil }
        )
        try line.connect(.mobile3)
        return line
    }

    private func agreedLine(_ change: (inout PassivePlan) -> Void = { _ in }) throws -> ReplayedPeer.Line {
        let line = try line(change)
        let body = #"{"collections":["_default._default"],"checkpoint_ids":["cp-x"]}"#
        _ = try line.ask("getCollections", [:], body).get()
        return line
    }

    private func revision(_ id: String = "d", _ rev: String = "1-aa", _ more: MessageProperties = [:])
        -> MessageProperties
    {
        var properties: MessageProperties = ["collection": "0", "id": id, "rev": rev, "sequence": "1"]
        for (name, value) in more.pairs { properties[name] = value }
        return properties
    }

    private func push(_ line: ReplayedPeer.Line, _ properties: MessageProperties, _ body: String = "{}")
        throws
        -> Result<Message, ReplyError>
    {
        let (id, rev) = (properties["id"] ?? "", properties["rev"] ?? "")
        _ = try line.ask("changes", ["collection": "0"], #"[[1,"\#(id)","\#(rev)"]]"#)
        return try line.ask("rev", properties, body)
    }

    private func code(_ result: Result<Message, ReplyError>) -> String {
        switch result {
        case .success: "ok"
        case .failure(let error): "\(error.domain)/\(error.code)"
        }
    }

    private func document(_ id: String) throws -> DocumentRecord? {
        let handle = try ours.collection(.default)
        return try ours.store.readRows { try $0.record(id, in: handle) }
    }

    // MARK: Pushed revisions

    @Test(
        arguments: [
            ("", "1-aa", [:], "{}", "HTTP/400"), ("d", "one", [:], "{}", "HTTP/400"),
            ("d", "1-", [:], "{}", "HTTP/400"), ("d", "2-bb", ["history": "nonsense"], "{}", "LiteCore/4"),
            ("d", "1-aa", ["error": "404"], "{}", "HTTP/502"), ("d", "1-aa", [:], "[]", "HTTP/400"),
            ("d", "1-aa", [:], "{", "HTTP/400"), ("d", "5-aa", ["history": "2-bb,1-aa"], "{}", "LiteCore/4"),
            ("d", "2-bb", ["history": "1-aa,2-bb"], "{}", "LiteCore/4"),
            ("d", "2-bb", ["deltaSrc": "none"], "{}", "HTTP/400"),
            ("d", "2-bb", ["deltaSrc": "1-aa"], "{}", "HTTP/422"),
        ] as [(String, String, MessageProperties, String, String)]
    )
    func `17: a revision that breaks a rule is refused with its error, and nothing is stored`(
        _ id: String,
        _ rev: String,
        _ more: MessageProperties,
        _ body: String,
        _ expected: String
    ) throws {
        let line = try agreedLine()
        #expect(code(try push(line, revision(id, rev, more), body)) == expected)
        #expect(try document("d") == nil)
        #expect(line.failure == nil)
    }

    @Test func `17: an answer to a revision comes when it is stored, and none where none is wanted`() throws {
        let line = try agreedLine()
        #expect(code(try push(line, revision("a"))) == "ok")
        #expect(try document("a")?.revision.text == "1-aa")
        _ = try line.ask("changes", ["collection": "0"], #"[[2,"b","1-bb"]]"#)
        try line.tell("rev", revision("b", "1-bb"), "{}")
        #expect(try document("b")?.revision.text == "1-bb")
    }

    @Test func `28: a revision that was refused may come once more without being asked for`() throws {
        let line = try agreedLine()
        _ = try line.ask("proposeChanges", ["collection": "0"], #"[["d","3-cc"]]"#)
        for _ in 0..<2 {
            let answer = try line.ask("rev", revision("d", "3-cc", ["history": "1-aa"]), "{}")
            #expect(code(answer) == "LiteCore/4")
        }
        #expect(line.failure == nil)
    }

    @Test func `a peer that does nothing but break rules is not listened to for ever`() throws {
        let line = try agreedLine()
        for _ in 0..<200 where !line.isClosed {
            try line.tell("rev", revision("d", "one"), "{}", wantsReply: true)
        }
        #expect(line.isClosed)
        #expect(line.failure?.code == .remoteError)
    }

    @Test func `21: lists are not answered while many revisions are to come`() throws {
        let line = try agreedLine()
        let most = ReplicationTuning().proposalsAgreed
        let many = (0..<most).map { #"["d\#($0)","1-aa"]"# }.joined(separator: ",")
        _ = try line.ask("proposeChanges", ["collection": "0"], "[\(many)]").get()
        try line.tell("proposeChanges", ["collection": "0"], #"[["late","1-aa"]]"#, wantsReply: true)
        #expect(line.answers[line.lastTag] == nil)
        try line.tell("norev", ["collection": "0", "id": "d0", "rev": "1-aa", "error": "404"], "")
        #expect(line.answers[line.lastTag - 1] != nil)
    }

    @Test func `44: what would conflict is answered with 409, and no conflict comes of it`() throws {
        try ours.seed(
            Message(revision("d", "2-cc", ["history": "1-aa"]), body: Array("{}".utf8)),
            in: .default
        )
        let line = try agreedLine()
        let changes = try line.ask("changes", ["collection": "0"], #"[[1,"d","2-bb"]]"#).get()
        #expect(changes.body == Array("[409]".utf8))
        let proposed = try line.ask("proposeChanges", ["collection": "0"], #"[["d","2-bb","1-aa"]]"#).get()
        #expect(proposed.body == Array("[409]".utf8))
        let named = try line.ask(
            "proposeChanges",
            ["collection": "0", "conflictIncludesRev": "true"],
            #"[["d","2-bb","1-aa"]]"#
        ).get()
        #expect(try JSONElement(parsing: named.body).value == [["status": 409, "rev": "2-cc"]])
        // A proposal that was fine when it was made, and is not any more.
        _ = try line.ask("proposeChanges", ["collection": "0"], #"[["d","3-dd","2-cc"]]"#).get()
        try ours.seed(
            Message(revision("d", "3-ee", ["history": "2-cc,1-aa"]), body: Array("{}".utf8)),
            in: .default
        )
        let late = try line.ask(
            "rev",
            revision("d", "3-dd", ["history": "2-cc", "noconflicts": "true"]),
            "{}"
        )
        #expect(code(late) == "HTTP/409")
        #expect(try document("d")?.revision.text == "3-ee")
    }

    // MARK: Collections

    @Test func `45: the default collection is served in both forms, each with its use of the index`() throws {
        let old = try line()
        #expect(code(try old.ask("getCheckpoint", ["client": "cp-x"], "")) == "HTTP/404")
        #expect(code(try old.ask("getCheckpoint", ["client": "cp-x", "collection": "0"], "")) == "HTTP/400")
        let new = try agreedLine()
        #expect(code(try new.ask("getCheckpoint", ["client": "cp-x", "collection": "0"], "")) == "HTTP/404")
        #expect(code(try new.ask("getCheckpoint", ["client": "cp-x"], "")) == "HTTP/400")
    }

    @Test(arguments: [
        #"{}"#, #"[]"#, #"{"collections":["_default._default"]}"#,
        #"{"collections":["_default._default"],"checkpoint_ids":[]}"#,
        #"{"collections":[],"checkpoint_ids":[]}"#, #"{"collections":[7],"checkpoint_ids":["x"]}"#, "",
    ])
    func `46: a getCollections that is none is refused with BLIP 400`(_ body: String) throws {
        #expect(code(try line().ask("getCollections", [:], body)) == "BLIP/400")
    }

    @Test func `46: an unknown collection is null, and a second question is one too many`() throws {
        let body = #"{"collections":["_default._default","a.b"],"checkpoint_ids":["x","y"]}"#
        let answer = try line().ask("getCollections", [:], body).get()
        #expect(try JSONElement(parsing: answer.body).value == [[:], nil])
        let again = try agreedLine().ask(
            "getCollections",
            [:],
            #"{"collections":["_default._default"],"checkpoint_ids":["x"]}"#
        )
        #expect(code(again) == "BLIP/400")
    }

    @Test func `47: an index out of range is 400, a direction that is off 403`() throws {
        let line = try agreedLine { $0.isReadOnly = true }
        for index in ["1", "-1", "x", "99999999999999999999"] {
            #expect(code(try line.ask("subChanges", ["collection": index], "")) == "HTTP/400")
        }
        for profile in ["changes", "proposeChanges", "rev"] {
            #expect(code(try line.ask(profile, ["collection": "0"], "[]")) == "HTTP/403")
        }
        #expect(code(try line.ask("subChanges", ["collection": "0"], "")) == "ok")
    }

    // MARK: Blobs

    @Test func `31: a blob is compressed when that is asked for, and proved by the specification's digest`()
        throws
    {
        try ours.addBlob(Array("Hello, World!".utf8))
        let digest = "sha1-CgqfKmdylCVXq1NV12r0Qvj2XgE="
        let body = #"{"b":{"@type":"blob","digest":"\#(digest)"}}"#
        try ours.seed(Message(["id": "d", "rev": "1-aa"], body: Array(body.utf8)), in: .default)
        let line = try agreedLine()
        for (compress, isCompressed) in [("true", true), ("false", false)] {
            let blob = try line.ask(
                "getAttachment",
                ["collection": "0", "docID": "d", "digest": digest, "compress": compress],
                ""
            ).get()
            #expect(blob.body == Array("Hello, World!".utf8))
            #expect(blob.isCompressed == isCompressed)
        }
        let proof = try line.ask(
            "proveAttachment",
            ["collection": "0", "digest": digest],
            bytes: Array(1...20)
        )
        .get()
        #expect(proof.body == Array("sha1-qblMjGxSaMuEsZGIBo5MWzPrX/w=".utf8))
        for count in [0, 256] {
            let nonce = [UInt8](repeating: 1, count: count)
            let answer = try line.ask("proveAttachment", ["collection": "0", "digest": digest], bytes: nonce)
            #expect(code(answer) == "BLIP/400")
        }
        let missing = "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="
        #expect(
            code(try line.ask("getAttachment", ["collection": "0", "digest": missing], "")) == "LiteCore/7"
        )
    }

    // MARK: BLIP

    @Test func `B17 and B18: an unknown question is answered with 404, and never where no answer is wanted`()
        throws
    {
        let line = try agreedLine()
        #expect(code(try line.ask("dance", [:], "")) == "BLIP/404")
        try line.tell("dance", [:], "")
        #expect(code(try line.ask("dance", [:], "")) == "BLIP/404")
        #expect(line.answers.count == 3)
    }
}
