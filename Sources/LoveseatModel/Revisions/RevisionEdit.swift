/// An edit that this database makes, or accepts from an app of CouchDB's wire.
package struct RevisionEdit: Sendable {
    package let id: RevisionID
    /// Nil for the first revision.
    package let parent: RevisionID?
    package let flags: RevisionTree.Flags
    package let body: JSONText
    /// The version vector; nil in a database that has no versions.
    package let vector: VersionVector?

    package init(
        id: RevisionID,
        parent: RevisionID?,
        flags: RevisionTree.Flags,
        body: JSONText,
        vector: VersionVector? = nil
    ) {
        (self.id, self.parent, self.flags, self.body) = (id, parent, flags, body)
        self.vector = vector
    }

    /// Adds the edit on top of the current revision, or as the first one.
    ///
    /// An edit of the current revision decides against all other candidates known here.
    package func insert(into tree: inout RevisionTree, by policy: TreePolicy) {
        if !tree.isLine, !tree.keepsBranches, let winner = parent.map({ tree.original($0) }) {
            // A pending revision was not shown to anyone, so it is not closed.
            for candidate in tree.candidates where candidate.original != winner {
                tree.closed.insert(candidate.original)
                tree.setYielded(candidate.original, false)
            }
        }
        add(to: &tree, by: policy)
    }

    /// Adds the edit on top of any leaf, for a peer of CouchDB's wire.
    package func insertOnLeaf(of tree: inout RevisionTree, by policy: TreePolicy) {
        if !tree.keepsBranches, parent == tree.current?.id || parent == nil {
            return insert(into: &tree, by: policy)
        }
        tree.keepBranches()
        add(to: &tree, by: policy)
    }

    private func add(to tree: inout RevisionTree, by policy: TreePolicy) {
        tree.nodes[id] = RevisionTree.Node(id: id, parent: parent, flags: flags, body: body)
        if let vector { tree.addVector(vector, of: id) }
        policy.prune(&tree)
    }
}
