package import LoveseatModel

/// A document with its whole revision tree, as `export --revisions` writes it.
package struct ArchivedRevisions: Sendable {
    package let revision: RevisionID
    package let isDeleted: Bool
    /// The tree as rows hold it (RevisionTree+Encoding.swift), without marks for remotes; nil for the current revision alone.
    package let encodedTree: [UInt8]?

    package init(revision: RevisionID, isDeleted: Bool, encodedTree: [UInt8]?) {
        self.revision = revision
        self.isDeleted = isDeleted
        self.encodedTree = encodedTree
    }

    /// - Throws: `corruptRevisionData`.
    package init(_ record: DocumentRecord) throws(LoveseatError) {
        var encoded: [UInt8]?
        if record.encodedTree != nil {
            var tree = try record.tree()
            for remote in tree.remotes.keys { tree.forgetRemote(remote) }
            encoded = RevisionTreeEncoder.encode(tree)
        }
        self.init(revision: record.revision, isDeleted: record.isDeleted, encodedTree: encoded)
    }

    /// The tree for which the text of an export stands.
    ///
    /// - Throws: `corruptRevisionData`.
    fileprivate func tree(of id: String, _ body: JSONText, hasBlobs: Bool) throws(LoveseatError)
        -> RevisionTree
    {
        guard let encodedTree else {
            var flags: RevisionTree.Flags = isDeleted ? .deleted : []
            if hasBlobs { flags.insert(.hasBlobs) }
            let node = RevisionTree.Node(id: revision, parent: nil, flags: flags, body: body)
            return RevisionTree(nodes: [node], remotes: [:])
        }
        var tree = RevisionTreeDecoder.decode(
            encodedTree,
            currentBody: body,
            closing: BodyDigest.closingTombstone
        )
        for remote in (tree?.remotes ?? [:]).keys { tree?.forgetRemote(remote) }
        guard let tree, let current = tree.current, current.id == revision, current.isDeleted == isDeleted,
            tree.problems.isEmpty
        else {
            throw LoveseatError(.corruptRevisionData, "the revisions of document \"\(id)\" are damaged")
        }
        for node in tree.nodes.values where node.isDamaged {
            throw LoveseatError(
                .corruptRevisionData,
                "the content of revision \(node.id) of document \"\(id)\" is not the one that it was made of"
            )
        }
        return tree
    }
}

extension StoreWriteTransaction {
    /// Stores a document with all its revisions. They are merged with the revisions that are here already, like those of another Loveseat.
    ///
    /// `body`: of the current revision, byte for byte.
    /// - Returns: whether something changed.
    /// - Throws: `corruptRevisionData` if the tree is damaged, or the document has the same revision with other content;
    ///   `conflict` if the two trees contradict each other.
    package func restore(
        _ archived: ArchivedRevisions,
        of id: String,
        body: JSONText,
        in collection: CollectionHandle
    ) throws -> Bool {
        try requireOpen(collection)
        let hasBlobs = rowFlags(of: body, isDeleted: false).contains(.hasBlobs)
        let tree = try archived.tree(of: id, body, hasBlobs: hasBlobs)
        for node in tree.nodes.values where node.id != archived.revision {
            if let body = node.body { _ = rowFlags(of: body, isDeleted: node.isDeleted) }
        }
        guard let record = try record(id, in: collection) else {
            try versionTable.acceptExported(tree.vectors, over: nil, of: id)
            if catalogView.remembersPurges { _ = try purgeTable.remove(id, in: collection) }
            try documentTable.store(tree, over: nil, id: id, in: collection)
            return true
        }
        if record.revision == archived.revision, record.body == body {
            let before = try ArchivedRevisions(whole(record, in: collection))
            if before.encodedTree == archived.encodedTree { return false }
        }
        var incoming = IncomingRecord(
            documentID: id,
            history: tree.line(archived.revision),
            isDeleted: archived.isDeleted,
            body: body,
            sender: .loveseat
        )
        incoming.isExported = true
        if tree.isTold || !tree.vectors.isEmpty { incoming.knowledge = tree.knowledge }
        do { _ = try insert(incoming, in: collection) } catch is RevisionTree.InsertRefusal {
            throw LoveseatError(
                .conflict,
                "the revisions of document \"\(id)\" contradict those that are here"
            )
        } catch let error as OtherContent {
            throw LoveseatError(.corruptRevisionData, "document \"\(id)\": \(error.reason)")
        }
        let after = try self.record(id, in: collection)
        return after?.sequence != record.sequence
    }
}
