package import LoveseatModel

/// Received revisions and knowledge, as a transaction merges them with the documents that are here.
package struct ReceivedTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// Stores a received revision.
    ///
    /// - Returns: the result, and the tree if another revision is current or the sender knows less.
    /// - Throws: ``RevisionTree/InsertRefusal`` if it may not be stored; ``OtherContent``; `VersionError` if the clock refuses one of its
    ///   versions.
    package func insert(_ incoming: IncomingRecord, in collection: CollectionHandle) throws -> (
        outcome: RevisionArrival.Outcome, preferred: RevisionTree?
    ) {
        try transaction.requireOpen(collection)
        if let late = LateContent(incoming) {
            return (.alreadyPresent, try late.add(to: transaction, in: collection))
        }
        // A document that comes back is no longer purged.
        if catalog.remembersPurges, try transaction.record(incoming.documentID, in: collection) == nil {
            _ = try transaction.purgeTable.remove(incoming.documentID, in: collection)
        }
        let flags = transaction.rowFlags(of: incoming.body, isDeleted: incoming.isDeleted)
        if incoming.history.count == 1, let id = incoming.history.first, incoming.origin == nil,
            incoming.knowledge == nil
        {
            let sequence = try transaction.documentTable.insertRow(
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
        let record = try transaction.record(incoming.documentID, in: collection)
        var tree = try record.map { try $0.tree() } ?? RevisionTree()
        if let remote = incoming.remote, let record, incoming.followed?.contains(record.sequence) == false {
            tree.forgetRemote(remote)
        }
        let before = tree
        try transaction.versionTable.accept(of: incoming, over: record.map { _ in before })
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
        let outcome = try arrival.insert(into: &tree, by: transaction.treePolicy)
        try transaction.versionTable.outdoKnown(in: &tree, of: incoming.documentID)
        let current = tree.current
        let isAgreed = current?.id == incoming.history.first && tree.agrees(with: incoming.knowledge)
        let disagrees = !isAgreed && incoming.sender == .loveseat && !incoming.isOutdated
        if disagrees, tree.pending.isEmpty, current?.id == record?.revision,
            let remote = incoming.remote, let record, !tree.hasMoreKnowledge(than: before)
        {
            // Knowledge that is old here was new to the sender, or the sender has forgotten it: it is offered again.
            tree.forgetRemote(remote)
            transaction.documentTable.verifyNewBodies(&tree, besides: current, since: before)
            try transaction.documentTable.store(tree, current: current, over: record, in: collection)
        } else {
            try transaction.documentTable.replace(
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
        guard let record = try transaction.record(id, in: collection) else { return nil }
        var tree = try record.tree()
        let before = tree
        try transaction.versionTable.accept(knowledge.vectors, over: before, of: id, from: remote)
        let isMended = try tree.compare(knowledge.nodes)
        let isAgreed = try tree.merge(
            knowledge,
            current: current,
            remote: remote,
            pulls: pulls,
            by: transaction.treePolicy
        )
        let merged = tree.current?.id
        try transaction.versionTable.outdoKnown(in: &tree, of: id)
        try transaction.documentTable.replace(
            before,
            with: &tree,
            over: record,
            id: id,
            in: collection,
            isMended: isMended
        )
        return isAgreed && tree.current?.id == merged
    }
}
