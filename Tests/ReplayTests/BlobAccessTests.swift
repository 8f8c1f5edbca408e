import LoveseatBLIP
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Which peers get a blob, and what a peer has to show to refer to one.
struct BlobAccessTests {
    private let ours: ReplayedPeer
    private let hidden: CollectionName
    private let open: CollectionName

    init() throws {
        ours = try ReplayedPeer()
        hidden = try #require(CollectionName(name: "hidden"))
        open = try #require(CollectionName(name: "open"))
    }

    private static func digest(_ text: String) -> String {
        BlobDigest(sha1: Hashing.sha1(Array(text.utf8))).text
    }

    private static func body(_ text: String) -> String {
        #"{"photo":{"@type":"blob","digest":"\#(digest(text))","length":\#(text.utf8.count)}}"#
    }

    /// Saves a document with a blob of that content.
    private func save(_ id: String, _ content: String, in collection: CollectionName) throws {
        try ours.addBlob(Array(content.utf8))
        try ours.seed(
            Message(["id": id, "rev": "1-aa"], body: Array(Self.body(content).utf8)),
            in: collection
        )
    }

    private func passiveLine(_ names: String...) throws -> ReplayedPeer.Line {
        let line = try ours.passiveLine { $0.collections = [.default, open] }
        let list = names.map { "\"\($0)\"" }.joined(separator: ",")
        let ids = names.map { "\"cp-\($0)\"" }.joined(separator: ",")
        _ = try line.ask("getCollections", [:], #"{"checkpoint_ids":[\#(ids)],"collections":[\#(list)]}"#)
            .get()
        return line
    }

    private func get(
        _ line: ReplayedPeer.Line,
        _ content: String,
        _ properties: MessageProperties
    ) throws -> String {
        var properties = properties
        properties["digest"] = Self.digest(content)
        let answer = try line.ask("getAttachment", properties, "")
        guard case .success(let message) = answer else { return code(answer) }
        return String(decoding: message.body, as: UTF8.self)
    }

    @Test func `a blob is given with a document of its own collection, and with no other`() throws {
        try save("d", "in default", in: .default)
        try save("o", "in open", in: open)
        try save("h", "in hidden", in: hidden)
        let line = try passiveLine("_default", "open")
        for (content, properties) in [
            ("in default", ["collection": "1", "docID": "d"]),
            ("in default", ["collection": "1", "docID": "o"]),
            ("in open", ["collection": "0", "docID": "o"]), ("in hidden", ["collection": "0", "docID": "h"]),
            ("in hidden", ["collection": "0", "docID": "d"]), ("in hidden", ["collection": "0"]),
            ("in default", ["collection": "0"]), ("in default", ["collection": "0", "docID": "o"]),
        ] as [(String, MessageProperties)] {
            #expect(try get(line, content, properties) == "LiteCore/7", "\(content) \(properties)")
        }
        #expect(try get(line, "in open", ["collection": "1", "docID": "o"]) == "in open")
        // Of a document that was sent, no name is needed.
        _ = try line.ask("subChanges", ["collection": "0"], "").get()
        let list = try #require(line.take("changes").first)
        try line.puppet.reply(Message(["blobs": "true"], body: Array("[[]]".utf8)), to: list.number)
        try line.runUntilQuiet()
        #expect(line.take("rev").count == 1)
        #expect(try get(line, "in default", ["collection": "0"]) == "in default")
        #expect(try get(line, "in default", ["collection": "1"]) == "LiteCore/7")
    }

    @Test func `a document that refers to a blob of another one has to bring it along`() throws {
        try save("h", "in hidden", in: hidden)
        try save("d", "in default", in: .default)
        let line = try passiveLine("_default")
        let zero: MessageProperties = ["collection": "0", "noconflicts": "true"]
        func push(_ id: String, _ revision: String, over parent: String?, _ content: String) throws {
            let entry = #"[["\#(id)","\#(revision)","\#(parent ?? "")"]]"#
            _ = try line.ask("proposeChanges", ["collection": "0"], entry).get()
            var properties = zero
            (properties["id"], properties["rev"], properties["history"]) = (id, revision, parent)
            try line.tell("rev", properties, Self.body(content), wantsReply: true)
        }
        try push("mine", "1-bb", over: nil, "in hidden")
        let asked = try #require(line.take("getAttachment").first)
        #expect(asked.message.properties["digest"] == Self.digest("in hidden"))
        // A peer that only knows the digest gets nothing by it.
        try line.puppet.reply(Message(body: Array("a guess".utf8)), to: asked.number)
        try line.runUntilQuiet()
        #expect(try ours.record("mine") == nil)
        #expect(try get(line, "in hidden", ["collection": "0", "docID": "mine"]) == "LiteCore/7")
        try push("mine", "1-bb", over: nil, "in hidden")
        try line.puppet.reply(
            Message(body: Array("in hidden".utf8)),
            to: try #require(line.take("getAttachment").first).number
        )
        try line.runUntilQuiet()
        #expect(try ours.record("mine") != nil)
        // Once is enough, and so is a document that the peer may read.
        try push("mine too", "1-cc", over: nil, "in hidden")
        try push("d", "2-dd", over: "1-aa", "in default")
        #expect(line.take("getAttachment").isEmpty)
        #expect(try ours.record("mine too") != nil)
        #expect(try ours.record("d")?.revision == RevisionID("2-dd"))
    }

    @Test func `blobs that came before a connection broke need not come again, from the same peer`() throws {
        let (one, two) = (Self.body("one"), Self.body("two"))
        let body = #"{"a":\#(one),"b":\#(two)}"#
        let proven = ProvenBlobs()
        func push(as user: String) throws -> ReplayedPeer.Line {
            let line = try ours.passiveLine(user: user, proven: proven)
            _ = try line.ask("proposeChanges", [:], #"[["d","1-aa",""]]"#).get()
            try line.tell("rev", ["id": "d", "rev": "1-aa", "noconflicts": "true"], body, wantsReply: true)
            return line
        }
        let broken = try push(as: "bob")
        let asked = try #require(broken.take("getAttachment").first)
        let first = asked.message.properties["digest"] == Self.digest("one") ? "one" : "two"
        try broken.puppet.reply(Message(body: Array(first.utf8)), to: asked.number)
        try broken.runUntilQuiet()
        #expect(broken.take("getAttachment").count == 1)
        // Both are asked of somebody else.
        #expect(
            try push(as: "eve").take("getAttachment").first?.message.properties["digest"]
                == Self.digest(first)
        )
        let line = try push(as: "bob")
        let rest = try #require(line.take("getAttachment").first)
        #expect(rest.message.properties["digest"] == Self.digest(first == "one" ? "two" : "one"))
        try line.puppet.reply(Message(body: Array((first == "one" ? "two" : "one").utf8)), to: rest.number)
        try line.runUntilQuiet()
        #expect(line.take("getAttachment").isEmpty)
        #expect(try ours.record("d") != nil)
    }

    /// What a database asks about the content that a peer pushes.
    enum Guard: CaseIterable {
        case policy, filter
    }

    /// Pushes a revision, with a tree that has another leaf, whose content needs a blob. Returns the requests for blobs.
    private func pushBesideLeaf(by rule: Guard, takesLeaf: Bool) throws -> (
        line: ReplayedPeer.Line, asked: [ReplayedPeer.Heard]
    ) {
        let policy = AccessPolicy { _, _, document in
            document?["photo"] != nil && !takesLeaf ? .none : .write
        }
        let line =
            switch rule {
            case .policy: try ours.passiveLine(under: policy)
            case .filter:
                try ours.passiveLine(refuse: { candidate in
                    JSONElement(candidate.body)["photo"] != nil && !takesLeaf
                        ? LoveseatError(.httpForbidden, "no photos") : nil
                })
            }
        let extensions: MessageProperties = ["loveseat": "trees-2,tree-blobs"]
        _ = try line.ask("proposeChanges", extensions, #"[["d","1-bb",""]]"#).get()
        let tree =
            #"{"bodies":{"1-aa":\#(Self.body("of the leaf"))},"closed":["2147483648-6b657074"],"#
            + #""current":"1-bb","lines":[["1-bb"],["1-aa"]]}"#
        let properties: MessageProperties = [
            "id": "d", "rev": "1-bb", "noconflicts": "true", "loveseat_tree": String(tree.utf8.count),
        ]
        try line.tell("rev", properties, #"{"n":1}"# + tree, wantsReply: true)
        return (line, line.take("getAttachment"))
    }

    private func leaf() throws -> RevisionTree.Node? {
        let record = try #require(try ours.record("d"))
        return try record.tree().node(#require(RevisionID("1-aa")))
    }

    @Test(arguments: Guard.allCases)
    func `a leaf with blobs is taken by a database that admits its content`(_ rule: Guard) throws {
        let (line, asked) = try pushBesideLeaf(by: rule, takesLeaf: true)
        let request = try #require(asked.first)
        #expect(request.message.properties["digest"] == Self.digest("of the leaf"))
        try line.puppet.reply(Message(body: Array("of the leaf".utf8)), to: request.number)
        try line.runUntilQuiet()
        #expect(try ours.record("d")?.revision == RevisionID("1-bb"))
        #expect(try leaf()?.body != nil)
    }

    @Test(arguments: Guard.allCases)
    func `no blobs are asked for of a leaf that the database does not admit, whose name stays`(
        _ rule: Guard
    ) throws {
        let (_, asked) = try pushBesideLeaf(by: rule, takesLeaf: false)
        #expect(asked.isEmpty)
        #expect(try ours.record("d")?.revision == RevisionID("1-bb"))
        let left = try #require(try leaf())
        #expect(left.body == nil)
    }

    @Test func `a client gives the blobs of what it pushes, and of nothing else`() throws {
        try save("d", "pushed", in: .default)
        let pulling = try ours.activeLine()
        #expect(try get(pulling, "pushed", ["docID": "d"]) == "LiteCore/7")
        let line = try ours.activeLine { ($0.pushes, $0.isContinuous) = (true, true) }
        #expect(try get(line, "pushed", ["docID": "d"]) == "LiteCore/7")
        let proposals = try #require(line.take("proposeChanges").first)
        try line.puppet.reply(Message(body: Array("[]".utf8)), to: proposals.number)
        try line.runUntilQuiet()
        #expect(line.take("rev").count == 1)
        #expect(try get(line, "pushed", ["docID": "d"]) == "pushed")
        try ours.addBlob(Array("other".utf8))
        #expect(try get(line, "other", ["docID": "d"]) == "LiteCore/7")
    }

    @Test func `a delta is expanded only against what its sender may read`() throws {
        try ours.seed(
            Message(["id": "d", "rev": "1-aa"], body: Array(#"{"owner":"ana","secret":1}"#.utf8)),
            in: .default
        )
        let policy = AccessPolicy { peer, _, document in
            document == nil || document?["owner"]?.string == peer.username ? .write : .none
        }
        let base = try #require(RevisionID("1-aa"))
        for (user, isShown) in [("bob", false), ("ana", true)] {
            let access = PeerAccess(peer: PeerIdentity(username: user), policy: policy)
            let replicas = DatabaseReplicas(store: ours.store, access: access, nowMilliseconds: { 0 })
            _ = try replicas.bind([.default], checkpoints: [""])
            #expect((try replicas.replica(of: 0).body(of: .revision(base), "d") != nil) == isShown)
        }
    }
}
