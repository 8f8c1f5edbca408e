import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Decides how to go on with a revision that a peer did not take, in one transaction.
struct Reconciler {
    private let remote: Int
    private let collection: CollectionHandle
    private let transaction: StoreWriteTransaction

    init(_ remote: Int, _ collection: CollectionHandle, _ transaction: StoreWriteTransaction) {
        (self.remote, self.collection, self.transaction) = (remote, collection, transaction)
    }

    func reconciliation(_ change: LocalChange, _ state: HubState) throws -> Reconciliation {
        guard let record = try transaction.record(change.documentID, in: collection),
            record.revision == change.revision
        else { return .isObsolete }
        guard !record.hasConflicts else { return .waits(isMarked: true) }
        let tree = try record.tree()
        return try change.state == nil
            ? withTrees(record, tree, change, state) : withVersions(record, tree, change, state)
    }

    /// For a hub with trees (docs/decisions/0001).
    private func withTrees(
        _ record: DocumentRecord,
        _ tree: RevisionTree,
        _ change: LocalChange,
        _ state: HubState
    ) throws -> Reconciliation {
        var mark = tree.remotes[remote]
        switch state {
        case .hasNone:
            try transaction.forgetMark(record.id, remote: remote, in: collection)
            return .offer(over: nil)
        case .has(let state):
            guard let revision = state.treeID, tree.contains(revision),
                !tree.rule.awaitsBody(of: revision)
            else { return .waits(isMarked: mark != nil) }
            if try transaction.noteHub(revision, has: record.id, remote: remote, in: collection) {
                return .isObsolete
            }
            mark = revision
        case .unknown:
            guard mark.map({ .revision($0) }) != change.remoteAncestor else {
                return .waits(isMarked: mark != nil)
            }
        }
        return mark.map { tree.isCurrent($0) } == true
            ? .agrees : .offer(over: mark.map { .revision($0) })
    }

    /// For a peer with version vectors (version-vectors.md §11.4).
    private func withVersions(
        _ record: DocumentRecord,
        _ tree: RevisionTree,
        _ change: LocalChange,
        _ state: HubState
    ) throws -> Reconciliation {
        let mark = tree.remotes[remote]
        switch state {
        case .hasNone:
            try transaction.forgetMark(record.id, remote: remote, in: collection)
            return .offer(over: nil)
        case .has(let theirs):
            let relation = tree.versions.state(of: record.revision).relation(to: theirs)
            guard relation == .newer || relation == .same else { return .waits(isMarked: mark != nil) }
            try transaction.versionTable.note(
                StateAnnouncement(theirs, remote: remote),
                of: record.id,
                in: collection
            )
            return relation == .same ? .agrees : .offer(over: theirs.name)
        case .unknown:
            let name = mark.flatMap { tree.versions.state(of: $0).name }
            guard name != change.remoteAncestor else { return .waits(isMarked: mark != nil) }
            return mark == record.revision ? .agrees : .offer(over: name)
        }
    }
}
