import LoveseatModel
import LoveseatReplication

/// The database of a simulated process, which may die, and takes its time to answer.
final class SimulatedReplica: ReplicaLayer {
    let inner: any RevisionStore
    private let owner: SimulatedPeer
    private let hasDied: () -> Bool
    private let onAsk: () -> Void
    /// Says what was asked and answered, for people; not a part of the trace.
    private let detail: ((String) -> Void)?

    init(
        _ inner: any RevisionStore,
        owner: SimulatedPeer,
        isDead: @escaping () -> Bool,
        onAsk: @escaping () -> Void = {},
        detail: ((String) -> Void)? = nil
    ) {
        (self.inner, self.owner, hasDied) = (inner, owner, isDead)
        (self.onAsk, self.detail) = (onAsk, detail)
    }

    var isDead: Bool { hasDied() }

    func willAsk() { onAsk() }

    private func tell(_ question: @autoclosure () -> String, _ answer: Any) {
        detail?("\(owner.index) \(question()) -> \(answer)")
    }

    func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError) -> [InsertResult] {
        let results = try alive().insert(revisions, in: collection)
        tell("insert \(revisions)", results)
        return results
    }

    func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        let page = try alive().changes(in: collection, query)
        tell("changes \(query)", page)
        return page
    }

    func judge(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        let verdicts = try alive().judge(changes, from: peer, in: collection)
        tell("judge \(changes)", verdicts)
        return verdicts
    }

    func judge(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        let verdicts = try alive().judge(proposals, from: peer, in: collection)
        tell("judge \(proposals)", verdicts)
        return verdicts
    }

    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        let found = try alive().revisions(requests, in: collection)
        tell("revisions \(requests)", found)
        return found
    }

    func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]
    {
        let verdicts = try alive().removeAccess(removals, in: collection)
        tell("removeAccess \(removals)", verdicts)
        return verdicts
    }

    func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError) -> Meeting {
        let meeting = try alive().meet(change, state, in: collection)
        tell("meet \(change) \(state)", meeting)
        return meeting
    }

    func markSynced(_ revisions: [SyncedRevision], in collection: Int) throws(LoveseatError) {
        try alive().markSynced(revisions, in: collection)
        tell("markSynced \(revisions)", "done")
    }
}
