import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// A peer whose connection lives, and which answers nothing.
@Suite struct SilenceTests {
    private let ours: ReplayedPeer
    private let collection: CollectionHandle

    init() throws {
        ours = try ReplayedPeer()
        collection = try ours.collection(.default)
    }

    private func peer(isContinuous: Bool) -> ReplicationConnection {
        let binding = ActivePlan.Binding(name: .default, checkpointID: "cp-x")
        let plan = ActivePlan(collections: [binding], pushes: true, pulls: true, isContinuous: isContinuous)
        let replicas = DatabaseReplicas(
            store: ours.store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: 1,
            nowMilliseconds: { 0 }
        )
        return ReplicationConnection(session: ReplicationSession(active: plan, replicas: replicas))
    }

    private func failure(_ actions: [ReplicationConnection.Action]) -> LoveseatError? {
        for case .report(.failure(let error)) in actions { return error }
        return nil
    }

    private func wait(_ actions: [ReplicationConnection.Action]) -> Int? {
        for case .setTimer(.silence, let milliseconds) in actions { return milliseconds }
        return nil
    }

    @Test func `a single pass ends when the peer has answered nothing for minutes`() throws {
        let peer = peer(isContinuous: false)
        #expect(wait(peer.connected(.mobile3)) == 300_000)
        let error = try #require(failure(peer.timerFired(.silence)))
        #expect(error.code == .timeout)
        #expect(error.isTransient)
    }

    @Test func `a peer that says something has as much time again`() throws {
        let peer = peer(isContinuous: false)
        _ = peer.connected(.mobile3)
        // Any frame counts, also one of a long message.
        let sender = BLIPConnection()
        try sender.send(Message(["Profile": "hello"]), tag: nil)
        _ = peer.receive(try #require(try sender.nextFrame()))
        let actions = peer.timerFired(.silence)
        #expect(failure(actions) == nil)
        #expect(wait(actions) == 300_000)
        #expect(failure(peer.timerFired(.silence))?.code == .timeout)
    }

    @Test func `a continuous replication may be silent for ever`() {
        #expect(wait(peer(isContinuous: true).connected(.mobile3)) == nil)
    }
}
