import LoveseatModel

/// The content of leaves that did not fit into the message with their document (docs/extensions.md, "Trees").
struct LateContent {
    private let incoming: IncomingRecord
    /// The sender's current revision.
    private let head: RevisionID

    /// Nil for a revision with its document.
    init?(_ incoming: IncomingRecord) {
        guard let head = incoming.restOf else { return nil }
        (self.incoming, self.head) = (incoming, head)
    }

    /// Adds the content to the leaves that are here without it. Nothing else of the document changes: the revision with which the tree came has
    /// said all that the sender knows.
    ///
    /// - Returns: the tree if another revision is current here, or the sender knows less.
    /// - Throws: ``OtherContent``.
    func add(to transaction: StoreWriteTransaction, in collection: CollectionHandle) throws -> RevisionTree? {
        // The document may have been purged while the rest of it was on its way.
        guard let record = try transaction.record(incoming.documentID, in: collection) else { return nil }
        var tree = try record.tree()
        let before = tree
        let flags = transaction.rowFlags(of: incoming.body, isDeleted: incoming.isDeleted).treeFlags
        let leaf = incoming.history.first.map {
            RevisionTree.Node(id: $0, parent: nil, flags: flags, body: incoming.body)
        }
        let arrived = [leaf].compactMap { $0 } + (incoming.knowledge?.nodes ?? [])
        let isMended = try tree.compare(arrived)
        tree.addContent(of: arrived, by: transaction.treePolicy)
        try transaction.documentTable.replace(
            before,
            with: &tree,
            over: record,
            id: incoming.documentID,
            in: collection,
            isMended: isMended
        )
        let isAgreed = tree.current?.id == head && tree.agrees(with: incoming.knowledge)
        return isAgreed ? nil : tree
    }
}
