import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// `PushSession`: offers documents, and sends those that the peer wants.
struct SenderTests {
    private static func ids(_ list: [UInt8]) throws -> [String?] {
        try JSONElement(parsing: list).items.map { $0[0]?.string }
    }

    @Test func `the sender offers what is new, and sends only what the peer wants`() throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a", "b", "c"])
        try peer.begin()
        let proposal = try peer.take("proposeChanges")
        #expect(try Self.ids(proposal.message.body) == ["a", "b", "c"])
        // 0: wanted. 304: the peer has it.
        try peer.answer(proposal, [:], "[0,304]")
        #expect(try ["a", "c"] == [peer.take("rev"), peer.take("rev")].map { $0.message.properties["id"] })
        #expect(!peer.has("rev"))
        #expect(!peer.has("proposeChanges"))
    }

    @Test func `the sender does not offer again what the checkpoints of both sides cover`() throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a", "b"])
        try peer.store.write {
            try $0.checkpointTables.saveLocalCheckpoint("cp-x", try JSONText(#"{"local":1}"#))
        }
        try peer.line.connect(.mobile3)
        try peer.answer(try peer.take("getCheckpoint"), ["rev": "0-1"], #"{"local":1}"#)
        #expect(try Self.ids(peer.take("proposeChanges").message.body) == ["b"])
    }

    @Test func `the sender without pull reports a conflict as the document's error, and goes on`() throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a", "b"])
        try peer.begin()
        try peer.answer(try peer.take("proposeChanges"), [:], "[409,0]")
        try peer.answer(try peer.take("rev"))
        #expect(peer.documentErrors.mapValues(\.code) == ["a": .httpConflict])
        #expect(peer.line.failure == nil)
    }

    @Test(arguments: [(403, LoveseatError.Code.httpForbidden), (409, .httpConflict), (422, .init(10_422))])
    func `the sender reports the code with which the peer refuses a revision`(
        _ status: Int,
        _ code: LoveseatError.Code
    ) throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a"])
        try peer.begin()
        try peer.answer(try peer.take("proposeChanges"), [:], "[]")
        // A revision that is forbidden, or whose history the peer lacks, is sent once more.
        while peer.has("rev") || peer.has("proposeChanges") {
            if peer.has("rev") { try peer.refuse(try peer.take("rev"), status) }
            if peer.has("proposeChanges") { try peer.answer(try peer.take("proposeChanges"), [:], "[]") }
        }
        #expect(peer.documentErrors.mapValues(\.code) == ["a": code])
        #expect(peer.line.failure == nil)
    }

    @Test(arguments: [false, true])
    func `a push that the peer refuses as a whole ends the session when the pull is done`(
        _ isContinuous: Bool
    ) throws {
        let peer = try Conversation(
            active: {
                ($0.pushes, $0.pulls, $0.isContinuous) = (true, true, isContinuous)
            },
            documents: ["a"]
        )
        try peer.begin()
        try peer.refuse(try peer.take("proposeChanges"), 403)
        #expect(peer.line.failure == nil)
        try peer.answer(try peer.take("subChanges"))
        try peer.say("changes", [:], #"[[1,"b","1-aa"]]"#)
        try peer.say("rev", ["id": "b", "rev": "1-aa", "sequence": "1"], #"{"c":1}"#)
        #expect(peer.line.failure == nil)
        try peer.say("changes", [:], "null")
        try peer.keepCheckpoints()
        #expect(try peer.record("b") != nil)
        #expect(peer.line.failure?.code == .httpForbidden)
        #expect(!peer.has("proposeChanges"))
        #expect(peer.documentErrors.isEmpty)
        // The next run offers the document again, and does not pull the other one again.
        let checkpoint = try JSONElement(#require(try peer.checkpoint()))
        #expect(checkpoint["remote"]?.int == 1)
    }

    @Test(arguments: [false, true])
    func `a pull that the peer refuses as a whole ends the session when the push is done`(
        _ isContinuous: Bool
    ) throws {
        let peer = try Conversation(
            active: {
                ($0.pushes, $0.pulls, $0.isContinuous) = (true, true, isContinuous)
            },
            documents: ["a", "b"]
        )
        try peer.begin()
        try peer.refuse(try peer.take("subChanges"), 403)
        #expect(peer.line.failure == nil)
        // The peer has another version of b, which it does not give.
        try peer.answer(try peer.take("proposeChanges"), [:], "[0,409]")
        #expect(peer.line.failure == nil)
        try peer.answer(try peer.take("rev"))
        try peer.keepCheckpoints()
        #expect(peer.line.failure?.code == .httpForbidden)
        #expect(!peer.has("subChanges"))
        #expect(peer.documentErrors.mapValues(\.code) == ["b": .httpConflict])
    }

    @Test func `a session whose push and pull are both refused ends`() throws {
        let peer = try Conversation(active: { ($0.pushes, $0.pulls) = (true, true) }, documents: ["a"])
        try peer.begin()
        try peer.refuse(try peer.take("subChanges"), 403)
        try peer.refuse(try peer.take("proposeChanges"), 403)
        try peer.keepCheckpoints()
        #expect(peer.line.failure?.code == .httpForbidden)
    }

    @Test func `a pull alone that the peer refuses ends the session at once`() throws {
        let peer = try Conversation(active: { $0.pulls = true })
        try peer.begin()
        try peer.refuse(try peer.take("subChanges"), 403)
        #expect(peer.line.failure?.code == .httpForbidden)
    }

    @Test func `a push alone that the peer refuses as a whole ends the session at once`() throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a"])
        try peer.begin()
        try peer.refuse(try peer.take("proposeChanges"), 403)
        #expect(peer.line.failure?.code == .httpForbidden)
    }

    @Test func `the sender refuses a peer that wants to end what it never subscribed to, and goes on`() throws
    {
        let peer = try Conversation(
            active: {
                $0.pushes = true
                $0.isContinuous = true
            }
        )
        try peer.begin()
        guard case .failure(let error) = try peer.say("unsubChanges") else {
            Issue.record("the peer ended a push that is not its own")
            return
        }
        #expect(error.domain == "LiteCore")
        #expect(error.code == 501)
        try peer.store.save("a", in: peer.collection)
        try peer.line.localChange()
        #expect(try Self.ids(peer.take("proposeChanges").message.body) == ["a"])
    }

    @Test func `the sender announces every change to a peer that subscribed, each once`() throws {
        let peer = try Conversation(passive: ["a"])
        try peer.line.connect(.mobile3)
        try peer.say("getCollections", [:], #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#)
        try peer.say("subChanges", ["collection": "0", "continuous": "true"])
        var announced: [String?] = []
        func hear() throws {
            while peer.has("changes") {
                let list = try peer.take("changes")
                announced += try JSONElement(parsing: list.message.body).items.map { $0[1]?.string }
                try peer.answer(list, [:], "[]")
            }
        }
        try hear()
        try peer.store.save("b", in: peer.collection)
        try peer.line.localChange()
        try hear()
        try peer.line.localChange()
        try hear()
        #expect(announced == ["a", "b"])
    }

    /// Simulator, seed 620244: a peer that heard of a later sequence first, and then lost power, never got the document.
    @Test func `the sender announces an edit in its place, whether or not the older revision was taken`()
        throws
    {
        let peer = try Conversation(passive: ["a"])
        try peer.line.connect(.mobile3)
        try peer.say("getCollections", [:], #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#)
        try peer.say("subChanges", ["collection": "0", "continuous": "true"])
        var sequences: [Int?] = []
        func hear() throws {
            while peer.has("changes") {
                let list = try peer.take("changes")
                let entries = Array(try JSONElement(parsing: list.message.body).items)
                sequences += entries.map { $0[0]?.int }
                try peer.answer(list, [:], entries.isEmpty ? "" : "[[]]")
            }
        }
        try hear()
        // The revision is not answered, as if a blob of it took long.
        let first = try peer.take("rev")
        for id in ["a", "b"] {
            try peer.store.save(id, in: peer.collection)
            try peer.line.localChange()
            try hear()
        }
        #expect(sequences == [1, 2, 3])
        #expect(try ["a", "b"] == [peer.take("rev"), peer.take("rev")].map { $0.message.properties["id"] })
        try peer.answer(first)
        #expect(!peer.has("rev"))
        #expect(!peer.has("changes"))
    }
}
