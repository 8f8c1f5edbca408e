import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A database that tells the oracle what it comes to know.
final class ObservedReplica: ReplicaLayer {
    let inner: any RevisionStore
    private let owner: SimulatedPeer
    private let oracle: EditOracle
    private let inspect: ((String, RevisionTree) -> Void)?

    /// `inspect`: is shown every document that changed.
    init(
        _ inner: any RevisionStore,
        owner: SimulatedPeer,
        oracle: EditOracle,
        inspect: ((String, RevisionTree) -> Void)? = nil
    ) {
        (self.inner, self.owner, self.oracle, self.inspect) = (inner, owner, oracle, inspect)
    }

    /// Runs a call, and tells the oracle if it wrote durably. The knowledge on the disk was noted with earlier calls: the write itself only
    /// adds that a copy was made.
    private func noting<Answer>(_ call: () throws(LoveseatError) -> Answer) throws(LoveseatError) -> Answer {
        let durableWrites = owner.store.durableWriteCount
        defer { if owner.store.durableWriteCount != durableWrites { owner.reachedDisk(oracle) } }
        return try call()
    }

    func insert(_ revisions: [IncomingRevision], in collection: Int) throws(LoveseatError) -> [InsertResult] {
        let results = try noting { () throws(LoveseatError) in try inner.insert(revisions, in: collection) }
        note(revisions.map(\.documentID), collection)
        return results
    }

    func retractCheckpoint(_ body: JSONText, of collection: Int) throws(LoveseatError) {
        try noting { () throws(LoveseatError) in try inner.retractCheckpoint(body, of: collection) }
    }

    func markSynced(_ marks: [SyncedRevision], in collection: Int) throws(LoveseatError) {
        try noting { () throws(LoveseatError) in try inner.markSynced(marks, in: collection) }
        note(marks.map(\.documentID), collection)
    }

    func hear(
        _ knowledge: TreeKnowledge,
        of id: String,
        current: RevisionID,
        takesContent: Bool,
        in collection: Int
    ) throws(LoveseatError) -> Hearing {
        let hearing = try noting { () throws(LoveseatError) in
            try inner.hear(knowledge, of: id, current: current, takesContent: takesContent, in: collection)
        }
        note([id], collection)
        return hearing
    }

    func adoptCopy(_ copy: RevisionID, of id: String, parent: RevisionID, in collection: Int)
        throws(LoveseatError)
    {
        try noting { () throws(LoveseatError) in
            try inner.adoptCopy(copy, of: id, parent: parent, in: collection)
        }
        note([id], collection)
    }

    func meet(_ change: LocalChange, _ state: HubState, in collection: Int) throws(LoveseatError) -> Meeting {
        let meeting = try noting { () throws(LoveseatError) in
            try inner.meet(change, state, in: collection)
        }
        note([change.documentID], collection)
        return meeting
    }

    func removeAccess(_ removals: [AccessRemoval], in collection: Int) throws(LoveseatError)
        -> [RemovalVerdict]
    {
        let verdicts = try noting { () throws(LoveseatError) in
            try inner.removeAccess(removals, in: collection)
        }
        for (removal, verdict) in zip(removals, verdicts) where verdict == .removed {
            oracle.purged(owner.index, "\(collection)/\(removal.documentID)")
        }
        return verdicts
    }

    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        let found = try noting { () throws(LoveseatError) in try inner.revisions(requests, in: collection) }
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

    private func note(_ ids: [String], _ collection: Int) {
        for id in ids {
            guard let tree = owner.tree(id, in: collection) else { continue }
            oracle.note(owner.index, "\(collection)/\(id)", tree)
            inspect?(id, tree)
        }
    }
}
