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
            return try decide(on: theirs, change, tree) ?? .waits(isMarked: mark != nil)
        case .unknown:
            if mark == record.revision { return .agrees }
            let marked = mark.map { tree.versions.announcedState(of: $0) }
            let name = marked?.name
            if let marked, let name, !tree.versions.includes(name, in: record.revision) {
                let decision = try decide(on: marked, change, tree)
                if let decision, decision != .offer(over: change.remoteAncestor) { return decision }
            }
            if name != change.remoteAncestor { return .offer(over: name) }
            if name != nil, try renew(record) { return .isObsolete }
            // A proposal without a parent is answered with the whole state that the peer has.
            return name == nil ? .waits(isMarked: false) : .offer(over: nil)
        }
    }

    /// Goes on from a state that the peer has; nil if that is in conflict with the current one. If the state has lost in this tree, the current one is
    /// made to include it.
    private func decide(on theirs: StateHistory, _ change: LocalChange, _ tree: RevisionTree) throws
        -> Reconciliation?
    {
        let id = change.documentID
        let isHere = theirs.name.map { name in
            tree.versions.node(named: name) != nil || tree.versions.includes(name, in: change.revision)
        }
        if isHere == true { try note(theirs, of: id) }
        let now = isHere == true ? try transaction.record(id, in: collection)?.tree() : tree
        guard let now, let current = now.current, current.id == change.revision else { return .isObsolete }
        switch now.versions.relation(ofReceived: theirs) {
        case .same: return .agrees
        case .older: return .offer(over: theirs.name)
        case .newer, .conflict: return nil
        }
    }

    /// Gives a revision that the peer refuses over its own state a new version; false if it has one already.
    private func renew(_ record: DocumentRecord) throws -> Bool {
        try transaction.versionTable.renew(record.id, in: collection)
        return try transaction.record(record.id, in: collection)?.revision != record.revision
    }

    private func note(_ theirs: StateHistory, of id: String) throws {
        try transaction.versionTable.note(
            StateAnnouncement(theirs, remote: remote),
            of: id,
            in: collection
        )
    }
}
