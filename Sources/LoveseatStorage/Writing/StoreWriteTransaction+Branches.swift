package import LoveseatModel

/// A revision with its history, newest first, as a peer of CouchDB's wire sent it.
package struct ReceivedBranch: Sendable {
    let history: [RevisionID]
    let body: JSONText
    let isDeleted: Bool

    package init(history: [RevisionID], body: JSONText, isDeleted: Bool) {
        (self.history, self.body, self.isDeleted) = (history, body, isDeleted)
    }
}

/// Writes of peers that use CouchDB's wire.
extension StoreWriteTransaction {
    /// The refusals of an edit by a peer of CouchDB's wire.
    package enum EditRefusal: Error, Hashable, Sendable {
        /// The revision that was edited is not a leaf, or is deleted; or the document exists, and no revision was named.
        case conflict
        /// The document does not exist, or is deleted.
        case missing
    }

    /// Keeps at least this many revisions of each line from now on (docs/decisions/0009).
    package func setRevisionLimit(_ limit: Int) throws {
        if catalog.revisionLimit == limit { return }
        try setInfo(CollectionTable.revisionLimitKey, String(limit))
        replaceCatalog { $0.revisionLimit = limit }
    }

    /// Stores a revision with its history as its author made it, beside the revisions that are here.
    ///
    /// `history`: newest first.
    /// - Returns: whether something changed.
    /// - Throws: ``RevisionTree/InsertRefusal``; ``OtherContent``.
    @discardableResult
    package func insertBranch(
        _ history: [RevisionID],
        of id: String,
        in collection: CollectionHandle,
        body: JSONText,
        isDeleted: Bool
    ) throws -> Bool {
        try requireOpen(collection)
        guard let revision = history.first else { throw RevisionTree.InsertRefusal.badHistory }
        let flags = rowFlags(of: body, isDeleted: isDeleted)
        if history.count == 1 {
            // Most often it is new.
            if catalog.remembersPurges, try record(id, in: collection) == nil {
                _ = try purgeTable.remove(id, in: collection)
            }
            let sequence = try documentTable.insertRow(
                id,
                in: collection,
                revision: revision,
                flags: flags.union(
                    BodyDigest.flags(of: revision, parent: nil, isDeleted: isDeleted, body: body)
                ),
                synced: 0,
                tree: nil,
                body: body
            )
            if sequence != nil { return true }
        }
        let record = try record(id, in: collection)
        if record == nil, catalog.remembersPurges { _ = try purgeTable.remove(id, in: collection) }
        let arrived = RevisionTree.Node(id: revision, parent: nil, flags: flags.treeFlags, body: body)
        if let record, record.revision == revision, history.count == 1, !record.node.differs(from: arrived) {
            return false
        }
        var tree =
            try record.map { try ancestorTable.wholeTree(of: $0, for: [history], in: collection) }
            ?? RevisionTree()
        let isMended = try compare(arrived, with: &tree, id, collection)
        let isNews =
            try close(history, in: &tree)
            || RevisionBranch(history: history, flags: flags.treeFlags, body: body)
                .insert(into: &tree, by: treePolicy)
        if Self.isClosing(history) { tree.closeTombstone(revision) }
        try replacedTable.keepLate(body, of: revision, in: tree, id, collection)
        guard isNews || isMended else { return false }
        try documentTable.store(tree, over: record, id: id, in: collection)
        return true
    }

    /// Compares a revision with the one of the same ID that is here, in the tree or beside it.
    ///
    /// - Returns: whether damaged content was replaced.
    /// - Throws: ``OtherContent``.
    private func compare(
        _ arrived: RevisionTree.Node,
        with tree: inout RevisionTree,
        _ id: String,
        _ collection: CollectionHandle
    ) throws -> Bool {
        try replacedTable.compare(arrived, with: tree, id, collection)
        return try tree.compare([arrived])
    }

    /// Closes a leaf that has only lost here, if a peer shows with a tombstone that it gave the leaf up. Otherwise the leaf would come back
    /// here, and only here, when the current revision is deleted.
    ///
    /// - Returns: whether the history is such a tombstone.
    private func close(_ history: [RevisionID], in tree: inout RevisionTree) -> Bool {
        Self.isClosing(history) && tree.closeLoser(history[1], by: treePolicy)
    }

    private static func isClosing(_ history: [RevisionID]) -> Bool {
        history.count > 1 && history[0] == BodyDigest.closingTombstone(over: history[1])
    }

    /// Stores revisions of one document, each as ``insertBranch(_:of:in:body:isDeleted:)`` does. Reads and writes the document once, however
    /// many there are.
    ///
    /// - Returns: for each whether something changed, or why it was refused: ``RevisionTree/InsertRefusal`` or ``OtherContent``.
    package func insertBranches(
        _ branches: [ReceivedBranch],
        of id: String,
        in collection: CollectionHandle
    ) throws -> [Result<Bool, any Error>] {
        guard let first = branches.first else { return [] }
        // Most often there is one, and it is new.
        var results = [try inserted(first, of: id, in: collection)]
        let rest = branches.dropFirst()
        // If a revision comes twice, the second one is compared with the first.
        guard rest.count > 1, Set(rest.map(\.history.first)).count == rest.count,
            let record = try record(id, in: collection)
        else {
            return results + (try rest.map { try inserted($0, of: id, in: collection) })
        }
        var tree = try ancestorTable.wholeTree(of: record, for: rest.map(\.history), in: collection)
        let before = tree
        var accepted: [RevisionBranch] = []
        var refusals: [Int: OtherContent] = [:]
        var (mended, closed): (Set<Int>, Set<Int>) = ([], [])
        for (index, branch) in rest.enumerated() {
            let flags = rowFlags(of: branch.body, isDeleted: branch.isDeleted).treeFlags
            do {
                if let revision = branch.history.first {
                    let arrived = RevisionTree.Node(
                        id: revision,
                        parent: nil,
                        flags: flags,
                        body: branch.body
                    )
                    if try compare(arrived, with: &tree, id, collection) { mended.insert(index) }
                }
                guard !close(branch.history, in: &tree) else {
                    closed.insert(index)
                    continue
                }
                accepted.append(
                    RevisionBranch(history: branch.history, flags: flags, body: branch.body)
                )
            } catch let error as OtherContent { refusals[index] = error }
        }
        var outcomes = RevisionBranch.insert(accepted, into: &tree, by: treePolicy)[...]
        for branch in accepted where Self.isClosing(branch.history) { tree.closeTombstone(branch.history[0]) }
        // Refused revisions have changed nothing, and are among the results.
        if !mended.isEmpty || !closed.isEmpty || outcomes.contains(where: { (try? $0.get()) == true }) {
            let current = tree.current
            documentTable.verifyNewBodies(&tree, besides: current, since: before)
            try documentTable.store(tree, current: current, over: record, in: collection)
        }
        for index in 0..<rest.count {
            if let refusal = refusals[index] {
                results.append(.failure(refusal))
            } else if closed.contains(index) {
                results.append(.success(true))
            } else if let outcome = outcomes.popFirst() {
                results.append(outcome.map { $0 || mended.contains(index) }.mapError { $0 })
            }
        }
        for (branch, result) in zip(rest, results.dropFirst()) {
            // The content of a refused revision is not the content of the revision that it names.
            guard case .success = result, let revision = branch.history.first else { continue }
            try replacedTable.keepLate(branch.body, of: revision, in: tree, id, collection)
        }
        return results
    }

    private func inserted(_ branch: ReceivedBranch, of id: String, in collection: CollectionHandle) throws
        -> Result<Bool, any Error>
    {
        do {
            return .success(
                try insertBranch(
                    branch.history,
                    of: id,
                    in: collection,
                    body: branch.body,
                    isDeleted: branch.isDeleted
                )
            )
        } catch let refusal as RevisionTree.InsertRefusal { return .failure(refusal) } catch let other
            as OtherContent
        { return .failure(other) }
    }

    /// Stores an edit of a leaf.
    ///
    /// `parent`: the revision that was edited; nil for a new document, or one that is deleted. `record`: the document, as this transaction has
    /// read it; nil if there is none. `body`: canonical.
    /// - Throws: ``EditRefusal``.
    package func insertEdit(
        over parent: RevisionID?,
        of id: String,
        replacing record: DocumentRecord?,
        in collection: CollectionHandle,
        body: JSONText,
        isDeleted: Bool
    ) throws -> RevisionID {
        try requireOpen(collection)
        guard let record else {
            guard parent == nil else { throw EditRefusal.conflict }
            let flags = rowFlags(of: body, isDeleted: isDeleted)
            if isDeleted {
                if catalog.remembersPurges { _ = try purgeTable.remove(id, in: collection) }
            } else if let made = try purgeTable.insertAnew(id, in: collection, flags: flags, body: body) {
                return made.revision
            }
            var tree = RevisionTree()
            let revision = try BodyDigest.revisionID(parent: nil, isDeleted: isDeleted, body: body)
            let vector = try versionTable.edited(VersionVector())
            RevisionEdit(id: revision, parent: nil, flags: flags.treeFlags, body: body, vector: vector)
                .insert(into: &tree, by: treePolicy)
            try documentTable.store(tree, over: nil, id: id, in: collection)
            return revision
        }
        let branches = try DocumentBranches(of: record)
        if let parent {
            guard let leaf = branches.leaves.first(where: { $0.id == parent }), !leaf.isDeleted else {
                throw EditRefusal.conflict
            }
        } else if !record.isDeleted || isDeleted {
            throw EditRefusal.conflict
        }
        let base = parent ?? record.revision
        let revision = try BodyDigest.revisionID(parent: base, isDeleted: isDeleted, body: body)
        var tree = try record.tree()
        let edit = RevisionEdit(
            id: revision,
            parent: base,
            flags: rowFlags(of: body, isDeleted: isDeleted).treeFlags,
            body: body,
            vector: try versionTable.vector(ofEditOf: base, in: tree)
        )
        edit.insertOnLeaf(of: &tree, by: treePolicy)
        try documentTable.store(tree, over: record, in: collection)
        return revision
    }

    /// Removes leaves, as CouchDB's `_purge` does; a document without leaves is gone.
    ///
    /// - Returns: the leaves that were here.
    package func purgeBranches(_ revisions: [RevisionID], of id: String, in collection: CollectionHandle)
        throws
        -> [RevisionID]
    {
        guard let record = try record(id, in: collection) else { return [] }
        var tree = try record.tree()
        let removed = tree.removeLeaves(Set(revisions))
        guard !removed.isEmpty else { return [] }
        if tree.isEmpty || tree.current?.body == nil {
            _ = try purge(id, in: collection)
        } else {
            try documentTable.store(tree, over: record, in: collection)
            // The contents of the purged revisions are removed, too, also those of their ancestors.
            try replacedTable.forget(id, in: collection)
        }
        return revisions.filter(removed.contains)
    }
}
