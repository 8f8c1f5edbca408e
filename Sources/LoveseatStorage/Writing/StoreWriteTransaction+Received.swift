package import LoveseatModel

/// Received revisions, marks for remotes, and copies for hubs.
extension StoreWriteTransaction {
    /// Stores a received revision. See ``ReceivedTable/insert(_:in:)``.
    package func insert(_ incoming: IncomingRecord, in collection: CollectionHandle) throws -> (
        outcome: RevisionArrival.Outcome, preferred: RevisionTree?
    ) {
        try receivedTable.insert(incoming, in: collection)
    }

    // MARK: Marks for remotes

    /// Records the current revision of a remote. Changes no sequence and reports no commit, unless the remote contradicts the current
    /// revision here.
    ///
    /// `announcedBy`: the kind of peer that announced it; nil for a pushed revision. `mayBeOld`: whether it may have
    /// been announced before the last push was accepted.
    package func markSynced(
        _ id: String,
        revision: RevisionID,
        remote: Int,
        announcedBy peer: RevisionTree.PeerKind? = nil,
        mayBeOld: Bool = false,
        in collection: CollectionHandle
    ) throws {
        let statement = try RawStatement(collection.statements.synced, in: database)
        statement.bind(1, id)
        statement.bind(2, revision.text)
        statement.bind(3, Int64(remote))
        if try statement.run() > 0 { return }
        // The document may have been purged while the peer answered.
        guard let record = try record(id, in: collection) else { return }
        if record.revision == revision, record.isSynced(remote) { return }
        if record.revision == revision, record.synced > 0, record.synced < remote,
            let encoded = record.encodedTree,
            let marked = RevisionTreeEncoder.markCurrent(at: remote, in: encoded)
        {
            // No other change follows, and only the mark in the row changes.
            let statement = try RawStatement(collection.statements.tree, in: database)
            statement.bind(1, record.row)
            statement.bind(2, blob: marked)
            try statement.run()
            return
        }
        var tree = try record.tree()
        if record.revision == revision, tree.remotes[remote] == nil {
            // No other change follows, and no other knowledge changes.
            tree.recordMark(of: remote, at: revision)
            return try documentTable.write(
                tree,
                over: record,
                in: collection,
                sequence: record.sequence,
                digest: record.storedDigest
            )
        }
        let before = tree
        switch peer {
        case .loveseat where tree.hasFallenBack(remote, to: revision),
            .hub where !mayBeOld && tree.hasFallenBack(remote, to: revision):
            // The remote is offered the knowledge that it lacks.
            try documentTable.store(tree, over: record, in: collection)
            return
        case .hub:
            tree = before
            tree.follow(remote, to: revision)
        case .loveseat: break
        case .client, .versions, nil: tree.recordMark(of: remote, at: revision)
        }
        treePolicy.prune(&tree)
        try documentTable.replace(before, with: &tree, over: record, id: id, in: collection)
    }

    /// Records a hub's revision, while the current one is being offered to it. It comes from the hub's answer, so an older one is not late:
    /// the hub has fallen back. A revision on another line is followed, as it is when the hub announces it.
    ///
    /// - Returns: whether another revision became current.
    package func noteHub(_ revision: RevisionID, has id: String, remote: Int, in collection: CollectionHandle)
        throws -> Bool
    {
        guard let record = try record(id, in: collection) else { return false }
        var tree = try record.tree()
        let before = tree
        if !tree.hasFallenBack(remote, to: revision) {
            tree = before
            tree.follow(remote, to: revision)
            treePolicy.prune(&tree)
        }
        guard tree.current?.id == record.revision else {
            try documentTable.replace(before, with: &tree, over: record, id: id, in: collection)
            return true
        }
        try documentTable.write(tree, over: record, in: collection, sequence: record.sequence)
        return false
    }

    /// Removes the mark of a remote.
    package func forgetMark(_ id: String, remote: Int, in collection: CollectionHandle) throws {
        // The document may have been purged since it was listed.
        guard let record = try record(id, in: collection) else { return }
        var tree = try record.tree()
        if tree.remotes[remote] == nil { return }
        tree.forgetRemote(remote)
        try documentTable.write(tree, over: record, in: collection, sequence: record.sequence)
    }

    // MARK: Copies for hubs

    /// Stores a copy that a hub has accepted.
    package func adoptCopy(
        _ copy: RevisionID,
        of id: String,
        parent: RevisionID,
        remote: Int,
        in collection: CollectionHandle
    ) throws {
        // The document may have been purged while the hub looked at the copy.
        guard let record = try record(id, in: collection) else { return }
        var tree = try record.tree()
        let before = tree
        let isOriginal = !CopyName.isCopy(copy, over: parent, of: id, sha1: Hashing.sha1)
        AcceptedCopy(id: copy, isOriginal: isOriginal, parent: parent, remote: remote)
            .insert(into: &tree, by: treePolicy)
        try documentTable.replace(before, with: &tree, over: record, id: id, in: collection)
    }
}
