package import LoveseatModel

/// A received revision to be stored.
package struct IncomingRecord: Sendable {
    package var documentID: String
    /// Newest first, the revision itself included.
    package var history: [RevisionID]
    package var isDeleted: Bool
    package var body: JSONText
    package var allowConflict: Bool
    /// The remote whose current revision this is; nil if that does not matter.
    package var remote: Int?
    /// A tombstone with its ancestors that gives up the branch which is current here.
    package var deletedBranch: [RevisionID] = []

    package init(
        documentID: String,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText,
        allowConflict: Bool,
        remote: Int?
    ) {
        self.documentID = documentID
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
        self.allowConflict = allowConflict
        self.remote = remote
    }
}

/// Revisions that peers bring, what they are known to have, and conflicts.
extension WriteTransaction {
    // MARK: Received revisions

    /// Stores a received revision.
    ///
    /// - Throws: ``RevisionTree/Refusal`` if it may not be stored.
    package func insert(_ incoming: IncomingRecord, in collection: CollectionHandle) throws
        -> RevisionTree.Outcome
    {
        try requireOpen(collection)
        let flags = rowFlags(of: incoming.body, isDeleted: incoming.isDeleted)
        if incoming.history.count == 1, let id = incoming.history.first {
            let sequence = try insertRow(
                incoming.documentID,
                in: collection,
                revision: id,
                flags: flags.union(
                    BodyDigest.flags(of: id, parent: nil, isDeleted: incoming.isDeleted, body: incoming.body)
                ),
                synced: incoming.remote ?? 0,
                tree: nil,
                body: incoming.body
            )
            if sequence != nil { return .inserted }
        }
        let record = try record(incoming.documentID, in: collection)
        var tree = try record.map { try self.tree(of: $0) } ?? RevisionTree()
        let before = tree
        let outcome = try tree.insert(
            history: incoming.history,
            flags: flags.treeFlags,
            body: incoming.body,
            allowConflict: incoming.allowConflict,
            remote: incoming.remote,
            deletedBranch: incoming.deletedBranch,
            tombstone: Self.tombstone
        )
        if tree != before { try store(tree, over: record, id: incoming.documentID, in: collection) }
        return outcome
    }

    /// Records that a remote has a revision as its current one. Changes no sequence and tells nobody.
    package func markSynced(
        _ id: String,
        revision: RevisionID,
        remote: Int,
        in collection: CollectionHandle
    ) throws {
        let statement = try RawStatement(collection.syncedSQL, in: database)
        statement.bind(1, id)
        statement.bind(2, revision.text)
        statement.bind(3, Int64(remote))
        if try statement.run() > 0 { return }
        guard let record = try record(id, in: collection) else { return }
        if record.revision == revision, record.synced == remote { return }
        var tree = try tree(of: record)
        tree.noteRemote(remote, has: revision, tombstone: Self.tombstone)
        tree.finish()
        let isSettled = record.hasConflicts && tree.conflicts.isEmpty
        if isSettled || tree.winner?.id != record.revision || !tree.isKnownToFollow(revision) {
            // The remote holds on to a branch that lost here, or a conflict kept the document from being offered:
            // what is current has to be offered to it, again.
            try store(tree, over: record, in: collection)
        } else {
            try write(tree, over: record, in: collection, sequence: record.sequence)
        }
    }

    // MARK: Conflicts

    /// Settles a conflict (replication.md §13.3).
    ///
    /// - Returns: the current revision afterwards; nil if the document changed since `local` was read.
    package func resolve(
        _ id: String,
        in collection: CollectionHandle,
        local: RevisionID,
        remote: RevisionID,
        _ settlement: RevisionTree.Settlement
    ) throws -> RevisionID? {
        guard let record = try record(id, in: collection), record.revision == local else { return nil }
        var tree = try tree(of: record)
        guard tree.conflicts.contains(where: { $0.id == remote }) else { return nil }
        switch settlement {
        case .remoteStands: tree.resolve(conflict: remote, child: nil, tombstone: Self.tombstone)
        case .localStands: tree.keepLocal(over: remote, tombstone: Self.tombstone)
        case .child(let body, let isDeleted):
            let id = Self.revisionID(parent: remote, isDeleted: isDeleted, body: body)
            let flags = rowFlags(of: body, isDeleted: isDeleted).treeFlags
            tree.resolve(conflict: remote, child: (id, flags, body), tombstone: Self.tombstone)
        }
        try store(tree, over: record, in: collection)
        return tree.winner?.id
    }

    /// Puts the current revision's content on top of what a remote has (see ``RevisionTree/follow(_:child:tombstone:)``),
    /// if it is still `local`.
    package func follow(
        _ id: String,
        in collection: CollectionHandle,
        local: RevisionID,
        remote: RevisionID
    ) throws {
        guard let record = try record(id, in: collection), record.revision == local else { return }
        var tree = try tree(of: record)
        let child = Self.revisionID(parent: remote, isDeleted: record.isDeleted, body: record.body)
        guard tree.follow(remote, child: child, tombstone: Self.tombstone) else { return }
        try store(tree, over: record, in: collection)
    }
}
