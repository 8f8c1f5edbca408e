package import LoveseatModel

/// A peer sends other content for a revision that is here. Neither replaces the other: one revision ID stands for one content, whichever
/// wire or file brings it.
package struct OtherContent: Error, Hashable, Sendable {
    package let revision: RevisionID

    package var reason: String {
        "revision \(revision) is here with other content: one of them is damaged, or was made by a faulty peer; save the document again"
    }
}

extension RevisionTree {
    /// Compares revisions that arrive with those that are here under the same IDs. Damaged content here is replaced by the content from
    /// which the revision was made.
    ///
    /// - Returns: whether something was replaced.
    /// - Throws: ``OtherContent``.
    mutating func compare(_ arrived: [Node]) throws(OtherContent) -> Bool {
        var isMended = false
        for node in arrived {
            guard let known = self.node(node.id), known.differs(from: node) else { continue }
            guard known.isDamaged, let body = node.body,
                BodyDigest.matches(known.id, parent: known.parent, isDeleted: node.isDeleted, body: body)
            else { throw OtherContent(revision: known.id) }
            replaceContent(of: known.id, with: node)
            isMended = true
        }
        return isMended
    }
}

extension RevisionTree.Node {
    /// Whether two revisions with one ID have different contents. Often only the ID of an ancestor is known, and many peers keep no content
    /// of a deletion.
    func differs(from other: Self) -> Bool {
        guard isDeleted || body != nil, other.isDeleted || other.body != nil else { return false }
        guard isDeleted == other.isDeleted else { return true }
        guard let body, let otherBody = other.body else { return false }
        if isDeleted, body == .emptyObject || otherBody == .emptyObject { return false }
        return !body.saysTheSame(as: otherBody)
    }
}
