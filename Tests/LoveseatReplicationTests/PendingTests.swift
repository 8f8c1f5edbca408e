import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// What a connection says that it has still to transfer.
struct PendingTests {
    private func pending(_ peer: Conversation, listing limit: Int = 100, unread: Int = 100) throws
        -> PendingTransfers
    {
        try #require(try peer.line.pending(listing: limit, unread: unread))
    }

    private func stages(_ peer: Conversation) throws -> [String] {
        try pending(peer).documents.map { "\($0.documentID) \($0.isPush ? "out" : "in") \($0.stage)" }
    }

    private func passive(_ documents: [String]) throws -> Conversation {
        let peer = try Conversation(passive: documents)
        try peer.line.connect(.mobile3)
        try peer.say("getCollections", [:], #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#)
        return peer
    }

    @Test func `a document that a peer pulls is pending until the peer has confirmed it`() throws {
        let peer = try passive((1...53).map { "d\($0)" })
        try peer.say("subChanges", ["collection": "0", "continuous": "true", "batch": "10"])
        let offered = (1...50).map { "d\($0) out offered" }
        #expect(try stages(peer) == offered + (51...53).map { "d\($0) out waits" })
        try peer.answer(try peer.take("changes"), [:], "[[],0,0,0,0,0,0,0,0,0]")
        let revision = try peer.take("rev")
        #expect(try stages(peer).first == "d1 out sent")
        try peer.answer(revision)
        #expect(try stages(peer).first == "d11 out offered")
        while peer.has("changes") { try peer.answer(try peer.take("changes"), [:], "[]") }
        #expect(try pending(peer).count == 0)
    }

    @Test func `what was not looked at is counted only as far as it is asked for`() throws {
        let peer = try passive((1...3_000).map { "d\($0)" })
        try peer.say("subChanges", ["collection": "0", "continuous": "true", "batch": "10"])
        let some = try pending(peer, listing: 2, unread: 0)
        #expect(some.count == 50)
        #expect(some.documents.count == 2)
        #expect(some.unread == [.default: 50])
        let more = try pending(peer, listing: 10, unread: 1_500)
        #expect(more.count == 1_550)
        #expect(more.documents.count == 10)
        #expect(more.unread == [.default: 1_550])
        let all = try pending(peer, listing: 10, unread: 10_000)
        #expect(all.count == 3_000)
        #expect(all.unread.isEmpty)
        // Asking has changed nothing.
        let list = try peer.take("changes")
        #expect(try JSONElement(parsing: list.message.body).items.map { $0[1]?.string }.first == "d1")
        try peer.answer(list, [:], "[]")
        #expect(try pending(peer, unread: 0).unread == [.default: 60])
    }

    @Test func `a document that comes is pending from its announcement until it is stored`() throws {
        let peer = try Conversation(active: { $0.pulls = true })
        try peer.begin()
        try peer.answer(try peer.take("subChanges"))
        try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#)
        #expect(try stages(peer) == ["a in expected", "b in expected"])
        let blob = #"{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":3}"#
        try peer.say("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{\"photo\":\(blob)}")
        #expect(try stages(peer) == ["a in fetchingBlobs", "b in expected"])
        try peer.refuse(try peer.take("getAttachment"), 404)
        try peer.say("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], "{}")
        #expect(try pending(peer).count == 0)
    }

    @Test func `a document that a peer proposed is pending until it has come`() throws {
        let peer = try passive([])
        try peer.say("proposeChanges", ["collection": "0"], #"[["x","1-aa"],["y","1-bb"]]"#)
        #expect(try stages(peer) == ["x in expected", "y in expected"])
        let body = "{}"
        try peer.say("rev", ["collection": "0", "id": "x", "rev": "1-aa"], body)
        try peer.say("norev", ["collection": "0", "id": "y", "rev": "1-bb", "error": "404"])
        #expect(try pending(peer).count == 0)
        #expect(try peer.record("x") != nil)
    }

    @Test func `a passive side reports the documents that could not be replicated`() throws {
        let peer = try passive(["a", "b", "c"])
        try peer.say("subChanges", ["collection": "0", "continuous": "true"])
        try peer.answer(try peer.take("changes"), [:], "[[],[],[]]")
        try peer.answer(try peer.take("rev"))
        try peer.refuse(try peer.take("rev"), 422)
        // That is the peer's own filter.
        try peer.refuse(try peer.take("rev"), 403)
        #expect(peer.documentErrors.mapValues(\.code) == ["b": LoveseatError.Code(10_422)])
        try peer.say("proposeChanges", ["collection": "0"], #"[["x","1-aa"]]"#)
        try peer.say("rev", ["collection": "0", "id": "x", "rev": "1-aa"], "[]")
        #expect(Set(peer.documentErrors.keys) == ["b", "x"])
        #expect(
            peer.reports.allSatisfy { report in
                if case .document(let event) = report { event.error != nil } else { true }
            }
        )
    }
}
