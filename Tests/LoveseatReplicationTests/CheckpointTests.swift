import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// `CheckpointSession`: decides where replication starts, and when that is saved.
struct CheckpointTests {
    /// A peer that has taken one document, and is asked to save the checkpoint.
    private func pushed() throws -> Conversation {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a"])
        try peer.begin()
        try peer.answer(try peer.take("proposeChanges"), [:], "[0]")
        try peer.answer(try peer.take("rev"))
        return peer
    }

    @Test func `the checkpoint is saved here only after the peer has saved it`() throws {
        let peer = try pushed()
        let save = try peer.take("setCheckpoint")
        #expect(save.message.properties["client"] == "cp-x")
        #expect(try peer.checkpoint() == nil)
        try peer.answer(save, ["rev": "0-1"])
        #expect(try peer.checkpoint() != nil)
        // The first was begun while the document was on its way.
        #expect(try peer.keepCheckpoints()?["local"]?.int == 1)
        #expect(try peer.checkpoint().flatMap { JSONElement($0)["local"]?.int } == 1)
        #expect(peer.line.isClosed)
        #expect(peer.line.failure == nil)
    }

    @Test func `the checkpoint is not saved here if the connection breaks before the peer's answer`() throws {
        let peer = try pushed()
        #expect(peer.has("setCheckpoint"))
        try peer.line.cut()
        #expect(try peer.checkpoint() == nil)
        #expect(peer.line.failure?.code == .webSocketAbnormalClose)
    }

    @Test(arguments: [404, 409])
    func `the checkpoint is saved under the revision that the peer has now`(_ status: Int) throws {
        let peer = try pushed()
        try peer.refuse(try peer.take("setCheckpoint"), status)
        try peer.answer(try peer.take("getCheckpoint"), ["rev": "0-7"], "{}")
        let again = try peer.take("setCheckpoint")
        #expect(again.message.properties["rev"] == "0-7")
        try peer.answer(again, ["rev": "0-8"])
        #expect(try peer.checkpoint() != nil)
    }

    @Test func `the checkpoint that a peer refuses is reported with its code, and is no failure`() throws {
        let peer = try pushed()
        try peer.refuse(try peer.take("setCheckpoint"), 403)
        #expect(!peer.has("setCheckpoint"))
        var codes: [LoveseatError.Code] = []
        for case .checkpointNotSaved(let error) in peer.reports { codes.append(error.code) }
        #expect(codes == [.httpForbidden])
        #expect(try peer.checkpoint() == nil)
        #expect(peer.line.isClosed)
        #expect(peer.line.failure == nil)
    }

    @Test func `the checkpoint begins anew for a peer that has lost its own`() throws {
        let peer = try Conversation(active: { $0.pushes = true }, documents: ["a", "b"])
        try peer.store.write {
            try $0.checkpointTables.saveLocalCheckpoint("cp-x", try JSONText(#"{"local":2}"#))
        }
        try peer.begin()
        #expect(try Array(JSONElement(parsing: peer.take("proposeChanges").message.body).items).count == 2)
    }
}
