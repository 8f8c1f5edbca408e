package import LoveseatModel

/// One revision ID stands for one content, whichever wire or file brings it.
extension StoreWriteTransaction {
    /// A peer sends other content for a revision that is here. Neither replaces the other.
    package struct OtherContent: Error, Hashable, Sendable {
        package let revision: RevisionID

        package var reason: String {
            "revision \(revision) is here with other content: one of them is damaged, or was made by a faulty peer; save the document again"
        }
    }

    /// Compares revisions that arrive with those that are here under the same IDs. Damaged content here is replaced by the content from
    /// which the revision was made.
    ///
    /// - Returns: whether something was replaced.
    /// - Throws: ``OtherContent``.
    static func compare(_ arrived: [RevisionTree.Node], with tree: inout RevisionTree)
        throws(OtherContent) -> Bool
    {
        var isMended = false
        for node in arrived {
            guard let known = tree.node(node.id), differ(known, node) else { continue }
            guard known.isDamaged, let body = node.body,
                BodyDigest.matches(known.id, parent: known.parent, isDeleted: node.isDeleted, body: body)
            else { throw OtherContent(revision: known.id) }
            tree.replaceContent(of: known.id, with: node)
            isMended = true
        }
        return isMended
    }

    /// Whether two revisions with one ID have different contents. Often only the ID of an ancestor is known, and many peers keep no content
    /// of a deletion.
    static func differ(_ one: RevisionTree.Node, _ other: RevisionTree.Node) -> Bool {
        guard one.isDeleted || one.body != nil, other.isDeleted || other.body != nil else { return false }
        guard one.isDeleted == other.isDeleted else { return true }
        guard let body = one.body, let otherBody = other.body else { return false }
        if one.isDeleted, body == .emptyObject || otherBody == .emptyObject { return false }
        return !body.saysTheSame(as: otherBody)
    }
}
