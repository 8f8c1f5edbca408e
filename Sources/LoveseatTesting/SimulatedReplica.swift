import LoveseatModel
import LoveseatReplication

/// A simulated peer's database: what one connection brings is told to the others.
final class SimulatedReplica: ReplicaLayer {
    let inner: any RevisionStore
    private let owner: SimulatedPeer
    /// Says what was asked and answered, for people; not a part of the trace.
    var detail: ((String) -> Void)?

    init(_ inner: any RevisionStore, owner: SimulatedPeer) { (self.inner, self.owner) = (inner, owner) }

    private func tell(_ question: @autoclosure () -> String, _ answer: Any) {
        detail?("\(owner.index) \(question()) -> \(answer)")
    }

    func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError) -> [InsertResult] {
        let results = try inner.insert(revisions, in: collection)
        tell("insert \(revisions)", results)
        owner.changed(collection)
        return results
    }

    func changes(in collection: Int, _ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        let page = try inner.changes(in: collection, query)
        tell("changes \(query)", page)
        return page
    }

    func judge(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        let verdicts = try inner.judge(changes, from: peer, in: collection)
        tell("judge \(changes)", verdicts)
        return verdicts
    }

    func judge(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind, in collection: Int)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        let verdicts = try inner.judge(proposals, from: peer, in: collection)
        tell("judge \(proposals)", verdicts)
        return verdicts
    }

    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        let found = try inner.revisions(requests, in: collection)
        tell("revisions \(requests)", found)
        return found
    }

    func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]
    {
        let verdicts = try inner.removeAccess(removals, in: collection)
        tell("removeAccess \(removals)", verdicts)
        return verdicts
    }

    func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError) -> Meeting {
        let meeting = try inner.meet(change, state, in: collection)
        tell("meet \(change) \(state)", meeting)
        return meeting
    }

    func markSynced(_ revisions: [DocumentRevision], in collection: Int) throws(LoveseatError) {
        try inner.markSynced(revisions, in: collection)
        tell("markSynced \(revisions)", "done")
    }
}
