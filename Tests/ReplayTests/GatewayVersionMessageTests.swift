import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatTesting
import Testing

/// Names of revisions in the messages of the gateway's twin with versions, line by line of version-vectors.md §15 and §11.2.
struct GatewayVersionMessageTests {
    private typealias Client = GatewayVersionClient
    private var a1: String { Client.a1 }
    private var b3: String { Client.b3 }
    private var c4: String { Client.c4 }
    private var d6: String { Client.d6 }
    private var g1: String { Client.g1 }

    // MARK: Revisions that are sent

    /// "v3 or legacy document → tree ID and tree history. Both sides have vectors → S + rest of vector. Document has a vector, the client answered
    /// `changes` with a legacy ID → S + rest of vector + current tree ID + tree history" (§15, 4th item)
    @Test
    func `a revision is sent by its version, and with the tree behind it to a client that has a revision ID`()
        throws
    {
        let twin = Client.oldGateway()
        let first = try Client.write(twin, 1)
        try Client.upgrade(twin)
        let second = try Client.write(twin, 2)
        let encoded = Client.encoded(first)
        func sent(_ items: String) throws -> Client.Delivered? {
            let (announced, delivered) = try Client(twin).pull(items)
            #expect(announced == [g1])
            #expect(delivered.count <= 1)
            return delivered.first
        }
        let plain = Client.Delivered(profile: "rev", rev: g1, history: encoded)
        let whole = Client.Delivered(profile: "rev", rev: g1, history: "\(encoded),\(second),\(first)")
        #expect(try sent("[[]]") == plain)
        #expect(try sent(#"[["\#(a1)"]]"#) == plain)
        #expect(try sent(#"[["\#(first)"]]"#) == whole)
        #expect(try sent(#"[["\#(a1)","\#(first)"]]"#) == whole)
        #expect(try sent("[0]") == nil)
        #expect(try sent("[]") == nil)
    }

    /// "SG writes `","` and `";"` without blanks, and its mv and pv in no particular order" (§5.1), and the quirk in §11.3
    @Test func `a vector is written without blanks, in any order, and with an empty item before a tree`()
        throws
    {
        let client = try Client(Client.newGateway())
        #expect(try client.push(d6, "\(c4), \(b3); \(a1)", of: "d") == 0)
        #expect(try client.push(d6, "\(c4), \(b3);", of: "e") == 0)
        var spellings: Set<String> = []
        for _ in 0..<30 {
            let (_, delivered) = try Client(client.twin).pull(#"[[],["9-99"]]"#)
            let histories = delivered.map { $0.history ?? "" }
            spellings.formUnion(histories)
            for (history, revisions) in zip(histories, [[], [client.treeID(of: "e")]]) {
                let state = try StateHistory(rev: d6, history: history)
                #expect(state.vector.text == "\(d6), \(c4), \(b3);\(revisions.isEmpty ? " \(a1)" : "")")
                #expect(state.revisions.map(\.text) == revisions)
            }
        }
        let tree = client.treeID(of: "e")
        #expect(
            spellings == [
                "\(c4),\(b3);\(a1)", "\(b3),\(c4);\(a1)", "\(c4),\(b3);,\(tree)", "\(b3),\(c4);,\(tree)",
            ]
        )
    }

    /// "`rev` `replacedRev`: S or L" (§11)
    @Test func `a revision that is gone is replaced by the current one, and both are named by versions`()
        throws
    {
        let client = try Client(Client.newGateway())
        client.twin.databases["db"]?.options.keepsOldBodies = false
        #expect(try client.push(a1) == 0)
        _ = try client.ask(["Profile": "subChanges", "sendReplacementRevs": "true"]).get()
        client.session.work()
        guard case .request(let list, let tag?)? = client.session.drainOutput().first else {
            Issue.record("nothing is announced")
            return
        }
        #expect(String(decoding: list.body, as: UTF8.self) == #"[[2,"d","\#(a1)"]]"#)
        client.twin.databases["db"]?.forgetCache()
        #expect(try client.push(b3, a1) == 0)
        client.session.receive(.response(tag, Message(body: Array("[[]]".utf8))))
        client.session.work()
        let revisions = client.session.drainOutput().compactMap { output -> MessageProperties? in
            if case .request(let message, _) = output, message.profile == "rev" {
                message.properties
            } else {
                nil
            }
        }
        #expect(revisions.map { $0["rev"] } == [b3])
        #expect(revisions.map { $0["replacedRev"] } == [a1])
    }

    /// "`changes` answers it accepts: `[]`, `[L]`, `[S]`, `[S, L]`; with a version in it more than two entries are an error" (§15, 5th item)
    @Test(
        arguments: [
            ("[]", true), (#"["2-bb"]"#, true), (#"["2-bb","1-aa","3-cc"]"#, true), (#"["S"]"#, true),
            (#"["S","2-bb"]"#, true), (#"["S","2-bb","1-aa"]"#, false), (#"["S","S"]"#, false),
            (#"["2-bb","S"]"#, false),
        ]
    )
    func `an answer names revision IDs, or one version and one revision ID`(_ item: String, _ isRead: Bool)
        throws
    {
        let client = try Client(Client.newGateway())
        try client.write(1)
        let (_, delivered) = try client.pull(
            "[\(item.split(separator: "S", omittingEmptySubsequences: false).joined(separator: a1))]"
        )
        #expect(delivered.count == (isRead ? 1 : 0))
        #expect(client.session.misunderstood.isEmpty == isRead)
    }

    /// "Vectors it forwards keep what clients sent; clients' sources are opaque to it" (§15, 8th item)
    @Test func `a vector is forwarded as a client sent it`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(c4, "\(b3), \(a1)") == 0)
        let delivered = try Client(client.twin).pull("[[]]").delivered
        #expect(delivered.map(\.rev) == [c4])
        #expect(
            try delivered.map { try StateHistory(rev: $0.rev, history: $0.history).vector.text }
                == ["\(c4); \(b3), \(a1)"]
        )
    }

    // MARK: Proposals

    /// §11.2, "SG: …", of a document from before the upgrade.
    @Test func `a proposal for a document without a version needs its revision ID as the parent`() throws {
        let twin = Client.oldGateway()
        let first = try Client.write(twin, 1)
        try Client.upgrade(twin)
        let client = try Client(twin)
        let conflict = #"{"rev":"\#(first)","status":409}"#
        func verdict(_ rev: String, _ parent: String) throws -> String {
            try client.propose(#"[["d","\#(rev)","\#(parent)",9]]"#)
        }
        #expect(try client.propose(#"[["none","\#(a1)",""]]"#) == "[]")
        #expect(try verdict(a1, first) == "[]")
        #expect(try verdict(Client.encoded(first), first) == "[304]")
        #expect(try verdict(a1, "") == "[\(conflict)]")
        #expect(try verdict(a1, Client.encoded(first)) == "[\(conflict)]")
        #expect(try verdict("\(a1); \(Client.encoded(first))", "") == "[\(conflict)]")
        #expect(try client.propose(#"[["d","\#(a1)",""]]"#, namesCurrent: false) == "[409]")
    }

    /// §11.2, "SG: …", of a document with a vector, and §15, 7th item: "proposal with unparsable version → item 500".
    @Test func `a proposal is wanted over the current version, or if it includes that`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(b3, a1) == 0)
        func verdict(_ rev: String, _ parent: String) throws -> String {
            try client.propose(#"[["d","\#(rev)","\#(parent)",9]]"#)
        }
        let conflict = #"[{"rev":"\#(b3)","status":409}]"#
        #expect(try verdict(c4, b3) == "[]")
        #expect(try verdict(c4, "\(b3); \(a1)") == "[]", "the first version counts")
        #expect(try verdict(c4, client.treeID()) == "[]", "the parent is the current revision ID")
        #expect(try verdict(b3, "") == "[304]")
        #expect(try verdict(a1, "") == "[304]")
        #expect(try verdict("18e9f1f050000000@\(Client.b)", "") == "[]", "a later version by the same author")
        #expect(try verdict("\(c4); \(b3)", "") == "[]")
        #expect(try verdict(c4, "") == conflict)
        #expect(try verdict("\(c4); \(a1)", a1) == conflict)
        #expect(try verdict("1@*", "") == "[500]")
        #expect(try verdict("2-cc", "1-aa") == conflict, "a revision ID is compared with the tree")
        #expect(try verdict("2-cc", client.treeID()) == "[]")
    }
}
