import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// The errors of sessions whose peer does not have all collections, or does not let this user have them.
struct PeersCollectionsTests {
    @Test func `the error says which collections the peer does not have`() throws {
        let notes = try #require(CollectionName(scope: "travel", name: "notes"))
        let conversation = try Conversation(active: { plan in
            plan.collections = [.init(name: notes, checkpointID: "cp-x")]
            plan.pulls = true
        })
        try conversation.line.connect(.mobile3)
        try conversation.answer(try conversation.take("getCollections"), [:], "[null]")
        let error = try #require(conversation.line.failure)
        #expect(error.code == .httpNotFound)
        #expect(error.collections == .lacks([notes]))
    }

    @Test func `the error says which collections the user may have instead of the default one`() throws {
        let conversation = try Conversation(active: { $0.pulls = true })
        try conversation.line.connect(.mobile3)
        let request = try conversation.take("getCheckpoint")
        let words = "you may not have the default collection; you may have: travel.notes, _default.hotels"
        try conversation.line.puppet.reply(ReplyError("HTTP", 403, words), to: request.number)
        try conversation.line.runUntilQuiet()
        let error = try #require(conversation.line.failure)
        #expect(error.code == .httpForbidden)
        let names = ["travel.notes", "hotels"].compactMap { CollectionName(path: $0) }
        #expect(error.collections == .permits(names))
    }

    @Test func `any other refusal says nothing about collections`() throws {
        let conversation = try Conversation(active: { $0.pulls = true })
        try conversation.line.connect(.mobile3)
        try conversation.refuse(try conversation.take("getCheckpoint"), 403)
        let error = try #require(conversation.line.failure)
        #expect(error.code == .httpForbidden)
        #expect(error.collections == nil)
    }
}
