import LoveseatModel
import LoveseatReplication

/// A replica of a simulated process, which may die, and takes its time to answer.
final class SimulatedReplica: ReplicaLayer {
    let inner: any Replica
    private let owner: SimulatedPeer
    private let hasDied: () -> Bool
    private let onAsk: () -> Void
    /// Says what was asked and answered, for people; not a part of the trace.
    private let detail: ((String) -> Void)?

    private init(
        _ inner: any Replica,
        owner: SimulatedPeer,
        isDead: @escaping () -> Bool,
        onAsk: @escaping () -> Void,
        detail: ((String) -> Void)?
    ) {
        (self.inner, self.owner, hasDied) = (inner, owner, isDead)
        (self.onAsk, self.detail) = (onAsk, detail)
    }

    static func layers(
        over inner: any ReplicaSource,
        owner: SimulatedPeer,
        isDead: @escaping () -> Bool,
        onAsk: @escaping () -> Void = {},
        detail: ((String) -> Void)? = nil
    ) -> LayeredReplicas {
        LayeredReplicas(inner) { () throws(LoveseatError) in
            if isDead() { throw .dead }
            onAsk()
        } layer: { replica, _ in
            SimulatedReplica(replica, owner: owner, isDead: isDead, onAsk: onAsk, detail: detail)
        }
    }

    var isDead: Bool { hasDied() }

    func willAsk() { onAsk() }

    private func trace<Answer>(_ question: @autoclosure () -> String, _ answer: Answer) -> Answer {
        detail?("\(owner.index) \(question()) -> \(answer)")
        return answer
    }

    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        try trace("insert \(revisions)", alive().insert(revisions))
    }

    func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        try trace("changes \(query)", alive().changes(query))
    }

    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        try trace("evaluate \(changes)", alive().evaluate(changes, from: peer))
    }

    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        try trace("evaluate \(proposals)", alive().evaluate(proposals, from: peer))
    }

    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        try trace("revisions \(requests)", alive().revisions(requests))
    }

    func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict] {
        try trace("removeAccess \(removals)", alive().removeAccess(removals))
    }

    func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation {
        try trace("reconcile \(change) \(state)", alive().reconcile(change, state))
    }

    func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError) {
        try alive().markSynced(revisions)
        _ = trace("markSynced \(revisions)", "done")
    }
}
