package import LoveseatModel

/// Received revisions, marks for remotes, copies for hubs, and conflicts.
extension StoreWriteTransaction {
    // MARK: Received revisions

    /// Stores a received revision.
    ///
    /// - Returns: the result, and the tree if another revision is current or the sender knows less.
    /// - Throws: ``RevisionTree/InsertRefusal`` if it may not be stored; ``OtherContent``; `VersionError` if the clock refuses one of its
    ///   versions.
    package func insert(_ incoming: IncomingRecord, in collection: CollectionHandle) throws -> (
        outcome: RevisionArrival.Outcome, preferred: RevisionTree?
    ) {
        try requireOpen(collection)
        if let late = LateContent(incoming) {
            return (.alreadyPresent, try late.add(to: self, in: collection))
        }
        // A document that comes back is no longer purged.
        if catalogView.remembersPurges, try record(incoming.documentID, in: collection) == nil {
            _ = try purgeTable.remove(incoming.documentID, in: collection)
        }
        let flags = rowFlags(of: incoming.body, isDeleted: incoming.isDeleted)
        if incoming.history.count == 1, let id = incoming.history.first, incoming.origin == nil,
            incoming.knowledge == nil
        {
            let sequence = try documentTable.insertRow(
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
            if sequence != nil { return (.inserted, nil) }
        }
        let record = try record(incoming.documentID, in: collection)
        var tree = try record.map { try $0.tree() } ?? RevisionTree()
        if let remote = incoming.remote, let record, incoming.followed?.contains(record.sequence) == false {
            tree.forgetRemote(remote)
        }
        let before = tree
        try versionTable.accept(of: incoming, over: record.map { _ in before })
        var isMended = false
        if let id = incoming.history.first, incoming.knowledge != nil || tree.contains(id) {
            let head = RevisionTree.Node(id: id, parent: nil, flags: flags.treeFlags, body: incoming.body)
            isMended = try tree.compare([head] + (incoming.knowledge?.nodes ?? []))
        }
        var arrival = RevisionArrival(
            history: incoming.history,
            flags: flags.treeFlags,
            body: incoming.body,
            sender: incoming.sender
        )
        arrival.origin = incoming.origin
        arrival.remote = incoming.remote
        arrival.knowledge = incoming.knowledge
        arrival.asksResolver = incoming.asksResolver
        (arrival.isOutdated, arrival.mayBeOld) = (incoming.isOutdated, incoming.mayBeOld)
        arrival.isCopy = { CopyName.isCopy($0, over: $1, of: incoming.documentID, sha1: Hashing.sha1) }
        let outcome = try arrival.insert(into: &tree, by: treePolicy)
        try versionTable.outdoKnown(in: &tree, of: incoming.documentID)
        let current = tree.current
        let isAgreed = current?.id == incoming.history.first && tree.agrees(with: incoming.knowledge)
        let disagrees = !isAgreed && incoming.sender == .loveseat && !incoming.isOutdated
        if disagrees, tree.pending.isEmpty, current?.id == record?.revision,
            let remote = incoming.remote, let record, !tree.hasMoreKnowledge(than: before)
        {
            // Knowledge that is old here was new to the sender, or the sender has forgotten it: it is offered again.
            tree.forgetRemote(remote)
            documentTable.verifyNewBodies(&tree, besides: current, since: before)
            try documentTable.store(tree, current: current, over: record, in: collection)
        } else {
            try documentTable.replace(
                before,
                with: &tree,
                current: current,
                over: record,
                id: incoming.documentID,
                in: collection,
                isMended: isMended
            )
        }
        return (outcome, isAgreed ? nil : tree)
    }

    /// Adds the knowledge of a peer about a document that is here, and the revision that is current there.
    ///
    /// - Returns: whether the two agree now; nil if the document is not here.
    /// - Throws: ``RevisionTree/InsertRefusal`` if it contradicts what is known; ``OtherContent``; `VersionError` if the clock refuses one of its
    ///   versions.
    package func merge(
        _ knowledge: TreeKnowledge,
        current: RevisionID,
        of id: String,
        remote: Int,
        pulls: Bool,
        in collection: CollectionHandle
    ) throws -> Bool? {
        guard let record = try record(id, in: collection) else { return nil }
        var tree = try record.tree()
        let before = tree
        try versionTable.accept(knowledge.vectors, over: before, of: id, from: remote)
        let isMended = try tree.compare(knowledge.nodes)
        let isAgreed = try tree.merge(
            knowledge,
            current: current,
            remote: remote,
            pulls: pulls,
            by: treePolicy
        )
        let merged = tree.current?.id
        try versionTable.outdoKnown(in: &tree, of: id)
        try documentTable.replace(
            before,
            with: &tree,
            over: record,
            id: id,
            in: collection,
            isMended: isMended
        )
        return isAgreed && tree.current?.id == merged
    }

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
