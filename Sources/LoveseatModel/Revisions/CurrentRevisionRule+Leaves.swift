/// The leaves that peers of CouchDB's wire are shown (docs/decisions/0009).
extension CurrentRevisionRule {
    /// The live leaves that have lost against a live one by their rank alone. They would be current if the winner were deleted by somebody who does
    /// not know them. Another one may also be the best leaf, whose content has not come.
    ///
    /// Nobody has decided about them, so peers of CouchDB's wire are told nothing of them: a leaf with a tombstone on top would be lost there
    /// when it is current again. If one of these peers has such a leaf, all leaves are kept.
    package var undecidedLeaves: Set<RevisionID> {
        guard !tree.keepsBranches, !tree.isLine, let current else { return [] }
        let open = open(among: candidates)
        let deletions = ContinuedDeletions(among: open, in: tree)
        let alive = documents(among: open).filter {
            best(ofDocument: $0, deletions)?.node.isDeleted == false
        }
        let leaves = Set(tree.leaves.map(\.id))
        let others = alive.joined().map(\.node).filter {
            $0.id != current.id && !$0.isDeleted && leaves.contains($0.id)
        }
        return Set(others.map(\.id))
    }

    /// Whether a live leaf that nobody gave up has lost against a deletion of its own document, over which CouchDB's rule prefers it.
    func losesToDeletion(_ id: RevisionID) -> Bool {
        guard !tree.keepsBranches, !tree.isLine else { return false }
        let document = documents(among: open(among: candidates)).first { candidates in
            candidates.contains { $0.original == tree.original(id) && !$0.node.isDeleted }
        }
        return document.flatMap(best(ofDocument:))?.node.isDeleted == true
    }

    /// The undecided leaves with their ancestors, without what other leaves descend from.
    package func lines(ofUndecided undecided: Set<RevisionID>) -> Set<RevisionID> {
        if undecided.isEmpty { return [] }
        var lines = Set(undecided.flatMap(tree.line))
        for leaf in tree.leaves where !undecided.contains(leaf.id) { lines.subtract(tree.line(leaf.id)) }
        return lines
    }

    /// Whether a leaf that peers of CouchDB's wire are shown has not come with its content.
    package var awaitsLeaf: Bool { !awaitedLeaves.isEmpty }

    private var awaitedLeaves: [RevisionID] {
        guard tree.keepsBranches else { return [] }
        return open(among: candidates).filter { $0.node.body == nil }.map(\.original)
    }

    /// Those of some leaves that peers of CouchDB's wire are to be shown, and whose content has not come.
    package func awaited(among leaves: [RevisionID]) -> [RevisionID] {
        let awaited = Set(awaitedLeaves)
        return leaves.filter { id in
            tree.nodes[id].map { $0.body == nil } == true && awaited.contains(tree.original(id))
        }
    }

    /// Whether the content of a leaf is awaited that a peer knows of.
    func awaitsLeaf(of knowledge: TreeKnowledge) -> Bool {
        let awaited = awaitedLeaves
        return knowledge.nodes.contains { awaited.contains(tree.original($0.id)) }
    }

    /// Whether the content of a leaf is here that another tree of the document awaits.
    package func completes(_ other: RevisionTree) -> Bool {
        guard tree.keepsBranches else { return false }
        return other.rule.awaitedLeaves.contains { tree.nodes[$0]?.body != nil && tree.isLeaf($0) }
    }
}
