import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A replica that tells the oracle what it comes to know.
final class ObservedReplica: ReplicaLayer {
    let inner: any Replica
    private let collection: Int
    private let owner: SimulatedPeer
    private let oracle: EditOracle
    private let inspect: ((String, RevisionTree) -> Void)?

    /// `inspect`: is shown every document that changed.
    init(
        _ inner: any Replica,
        _ collection: Int,
        owner: SimulatedPeer,
        oracle: EditOracle,
        inspect: ((String, RevisionTree) -> Void)? = nil
    ) {
        (self.inner, self.collection, self.owner) = (inner, collection, owner)
        (self.oracle, self.inspect) = (oracle, inspect)
    }

    /// Runs a call, tells the oracle if it wrote durably, and then about these documents. The knowledge on the disk was noted with earlier
    /// calls: the write itself only adds that a copy was made.
    private func noting<Answer>(_ ids: [String] = [], _ call: () throws(LoveseatError) -> Answer)
        throws(LoveseatError) -> Answer
    {
        let answer: Answer
        do {
            let durableWrites = owner.store.durableWriteCount
            defer { if owner.store.durableWriteCount != durableWrites { owner.reachedDisk(oracle) } }
            answer = try call()
        }
        for id in ids {
            guard let tree = owner.tree(id, in: collection) else { continue }
            oracle.note(owner.index, "\(collection)/\(id)", tree)
            inspect?(id, tree)
        }
        return answer
    }

    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        try noting(revisions.map(\.documentID)) { () throws(LoveseatError) in try inner.insert(revisions) }
    }

    func retractCheckpoint(_ body: JSONText) throws(LoveseatError) {
        try noting { () throws(LoveseatError) in try inner.retractCheckpoint(body) }
    }

    func markSynced(_ marks: [SyncedRevision]) throws(LoveseatError) {
        try noting(marks.map(\.documentID)) { () throws(LoveseatError) in try inner.markSynced(marks) }
    }

    func merge(
        _ knowledge: TreeKnowledge,
        of id: String,
        current: RevisionID,
        takesContent: Bool
    ) throws(LoveseatError) -> MergeOutcome {
        try noting([id]) { () throws(LoveseatError) in
            try inner.merge(knowledge, of: id, current: current, takesContent: takesContent)
        }
    }

    func adoptCopy(_ copy: RevisionID, of id: String, parent: RevisionID) throws(LoveseatError) {
        try noting([id]) { () throws(LoveseatError) in try inner.adoptCopy(copy, of: id, parent: parent) }
    }

    func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation {
        try noting([change.documentID]) { () throws(LoveseatError) in try inner.reconcile(change, state) }
    }

    func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict] {
        let verdicts = try noting { () throws(LoveseatError) in
            try inner.removeAccess(removals)
        }
        for (removal, verdict) in zip(removals, verdicts) where verdict == .removed {
            oracle.purged(owner.index, "\(collection)/\(removal.documentID)")
        }
        return verdicts
    }

    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        let found = try noting { () throws(LoveseatError) in try inner.revisions(requests) }
        for (request, outgoing) in zip(requests, found) {
            guard case .found(let content) = outgoing, let copy = content.copy,
                let tree = owner.tree(request.documentID, in: collection)
            else { continue }
            oracle.copied(
                owner.index,
                "\(collection)/\(request.documentID)",
                content.revision,
                over: copy.parent,
                tree
            )
        }
        return found
    }
}
