/// A copy that a hub has accepted, or the original instead, on top of the hub's earlier revision.
package struct AcceptedCopy: Sendable {
    package let id: RevisionID
    /// Whether it is the original.
    package let isOriginal: Bool
    /// The hub's earlier revision.
    package let parent: RevisionID
    /// The hub.
    package let remote: RevisionTree.Remote

    package init(id: RevisionID, isOriginal: Bool, parent: RevisionID, remote: RevisionTree.Remote) {
        (self.id, self.isOriginal, self.parent, self.remote) = (id, isOriginal, parent, remote)
    }

    /// Stores it, and that the hub has it.
    package func insert(into tree: inout RevisionTree, by policy: TreePolicy) {
        // The document may have been purged, or the hub's revision pruned, before the hub's answer came.
        guard tree.contains(parent) else { return }
        if !tree.contains(id) {
            // The original may have been pruned before the hub's answer came, or the document purged and made anew.
            guard let like = copied(in: tree) else { return }
            tree.nodes[id] = RevisionTree.Node(
                id: id,
                parent: parent,
                flags: like.flags.intersection([.deleted, .hasBlobs]),
                body: like.body
            )
            tree.addCopies(isOriginal ? [] : [id])
            tree.releasePending()
        }
        tree.recordMark(of: remote, at: id)
        policy.prune(&tree)
    }

    /// The node that has the original's content.
    private func copied(in tree: RevisionTree) -> RevisionTree.Node? {
        guard let original = isOriginal ? id.abbreviated : CopyName(id)?.original else { return nil }
        let candidate = tree.candidates.first { $0.original.abbreviated == original }?.node
        return candidate ?? tree.nodes.values.first { $0.id.abbreviated == original }
    }
}
