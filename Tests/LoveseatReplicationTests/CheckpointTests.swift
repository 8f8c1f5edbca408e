import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
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

    /// A replica of a database in which no checkpoint can be begun.
    private final class FailingReplica: ReplicaLayer {
        let inner: any Replica
        private let code: LoveseatError.Code

        init(_ inner: any Replica, _ code: LoveseatError.Code) { (self.inner, self.code) = (inner, code) }

        func beginCheckpoint() throws(LoveseatError) { throw LoveseatError(code, "it fails") }
    }

    /// The errors by which a session reports that a checkpoint was not saved.
    private func unsaved(_ peer: Conversation) -> [LoveseatError.Code] {
        peer.reports.compactMap { if case .checkpointNotSaved(let error) = $0 { error.code } else { nil } }
    }

    @Test(arguments: [LoveseatError.Code.busy, .ioError])
    func `a database that cannot begin a checkpoint sends none, and ends the session if it is busy`(
        _ code: LoveseatError.Code
    ) throws {
        let peer = try Conversation(
            active: { $0.pushes = true },
            documents: ["a"],
            wrap: { LayeredReplicas($0) { replica, _ in FailingReplica(replica, code) } }
        )
        try peer.begin()
        if code == .ioError {
            try peer.answer(try peer.take("proposeChanges"), [:], "[0]")
            try peer.answer(try peer.take("rev"))
        }
        // The timer of the checkpoint has fired, or everything is done.
        #expect(!peer.has("setCheckpoint"))
        #expect(peer.line.isClosed)
        #expect(peer.line.failure?.code == (code == .busy ? .busy : nil))
        #expect(unsaved(peer) == (code == .busy ? [] : [code]))
    }

    @Test func `the checkpoint that is saved at once is not saved again by its timer`() throws {
        let (scratch, store, collection) = try Conversation.database(["a"])
        defer { withExtendedLifetime(scratch) {} }
        let replicas = DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: try store.write { try $0.checkpointTables.remoteNumber("puppet") },
            nowMilliseconds: { 0 }
        )
        let binding = ActivePlan.Binding(name: .default, checkpointID: "cp-x")
        let plan = ActivePlan(collections: [binding], pushes: true, pulls: false, isContinuous: true)
        var session = ReplicationSession(active: plan, replicas: replicas)
        var isSet = false
        /// Follows the timer, and returns what the answers to the requests are for.
        func perform(_ effects: [ReplicationEffect]) -> [ReplyContinuation] {
            var sent: [ReplyContinuation] = []
            for effect in effects {
                switch effect {
                case .setTimer(.checkpoint(collection: 0), _): isSet = true
                case .cancelTimer(.checkpoint(collection: 0)): isSet = false
                case .send(_, then: let continuation?): sent.append(continuation)
                default: break
                }
            }
            return sent
        }
        _ = perform(session.connected(.mobile3))
        let none = Result<Message, ReplyError>.failure(ReplyError("HTTP", 404))
        let offers = perform(session.answered(.getCheckpoint(collection: 0), none))
        #expect(isSet)
        let list = Result<Message, ReplyError>.success(Message(body: Array("[0]".utf8)))
        let revisions = perform(session.answered(try #require(offers.first), list))
        let saves = perform(session.answered(try #require(revisions.first), .success(Message())))
        #expect(saves == [.setCheckpoint(collection: 0)])
        #expect(!isSet)
    }
}
