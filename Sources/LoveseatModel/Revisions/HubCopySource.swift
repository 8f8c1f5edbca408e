/// The revision whose content goes on top of a hub's: the current revision. Among several deletions it is that of the hub's document, because
/// a client that has only that document would keep it in spite of the deletion of another one.
package struct HubCopySource {
    /// The hub's revision.
    private let parent: RevisionID
    private let original: RevisionID
    /// Nil if it is not here.
    private let originalNode: RevisionTree.Node?
    /// The name of the copy that goes on top of the hub's revision.
    package let name: CopyName

    /// - Returns: nil if nothing is known.
    package init?(over parent: RevisionID, in tree: RevisionTree) {
        guard let source = Self.source(over: parent, in: tree) else { return nil }
        self.parent = parent
        original = tree.original(source.id)
        originalNode = tree.nodes[original]
        name = CopyName(original: original, origin: tree.origin(of: source.id))
    }

    private static func source(over parent: RevisionID, in tree: RevisionTree) -> RevisionTree.Node? {
        let shown = tree.current
        guard let current = shown, current.isDeleted, !tree.isLine else { return shown }
        let (all, origin, rule) = (tree.candidates, tree.origin(of: parent), tree.rule)
        let open = tree.open(among: all)
        let document = rule.documents(among: open.isEmpty ? all : open).first { candidates in
            candidates.contains { rule.origin(of: $0) == origin }
        }
        guard let own = document.flatMap(rule.best(ofDocument:))?.node, own.isDeleted else { return current }
        return own
    }

    /// The original, if the hub can be sent that instead of a copy, because it was made on the hub's revision.
    ///
    /// `edit`: the ID that the content would have as an edit of that revision.
    package func original(edit: RevisionID) -> RevisionID? {
        if let originalNode { return originalNode.parent == parent ? original : nil }
        return original.isAbbreviation && original == edit.abbreviated ? edit : nil
    }
}
