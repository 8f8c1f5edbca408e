/// How much a database keeps of a document's history. A tree does not contain it: it is passed to everything that prunes.
package struct TreePolicy: Hashable, Sendable {
    /// The number of revisions that are kept of a line.
    package var depth = RevisionTree.maximumDepth
    /// The number of revisions of a line that are kept in all, with those that pruning puts aside. 0 if it puts none aside.
    package var depthWithAside = 0
    /// The number of ancestors of the current revision that keep their bodies, for deltas to peers that pull.
    package var ancestorBodiesKept = 0
    /// Whether the revision that a tombstone deletes keeps its body, for access policies.
    package var keepsDeletedBodies = false

    package init(depth: Int = RevisionTree.maximumDepth) { self.depth = depth }

    var putsAside: Bool { depthWithAside > depth }

    /// The number of revisions of a received line that are kept, in the tree or aside.
    var keptOfLine: Int { max(depth, RevisionTree.maximumDepth, depthWithAside) }

    /// The policy of a database without any settings.
    package static let standard = Self()
}
