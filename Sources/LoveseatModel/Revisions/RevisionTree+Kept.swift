/// Documents whose branches are kept, as CouchDB does (docs/decisions/0009): all leaves stay, and CouchDB's rule chooses
/// the current revision among them.
///
/// A document becomes one when a peer of CouchDB's wire brings a revision beside the current one, or an edit of the current deletion that
/// would lose against another deletion. The mark is a name in ``RevisionTree/closed``, so that it is merged, stored and sent like all
/// knowledge.
extension RevisionTree {
    /// The name in ``closed`` that marks a document with kept branches. No revision has it.
    static let keptMark = RevisionID(generation: 1 << 31, digest: Array("kept".utf8))

    /// The maximum number of leaves of a document with kept branches.
    package static let keptLeaves = 1_000

    /// Whether all leaves stay, and CouchDB's rule applies.
    package var keepsBranches: Bool { closed.contains(Self.keptMark) }

    /// Keeps all leaves from now on. Those that lost before stay closed, since peers have been told so.
    package mutating func keepBranches() {
        if keepsBranches { return }
        let current = current.map { original($0.id) }
        let undecided = rule.undecidedLeaves
        for candidate in candidates
        where candidate.original != current && !undecided.contains(candidate.node.id) {
            closed.insert(candidate.original)
        }
        closed.insert(Self.keptMark)
    }

    /// Closes a leaf that has lost against the current revision by the rule alone.
    ///
    /// - Returns: whether it was such a leaf.
    package mutating func closeLoser(_ id: RevisionID, by policy: TreePolicy) -> Bool {
        guard !keepsBranches, !isLine, let current, let node = nodes[id], isLeaf(id), !node.isDeleted,
            !node.flags.contains(.pending)
        else { return false }
        let original = original(id)
        guard original != self.original(current.id), !isAncestor(current.id, of: id),
            closed.insert(original).inserted
        else { return false }
        policy.prune(&self)
        return true
    }

    /// Closes a tombstone that only says that the leaf below it has lost or was given up. It is not a deletion of the document, and deletes no
    /// other leaf.
    package mutating func closeTombstone(_ id: RevisionID) {
        if nodes[id]?.isDeleted == true, isLeaf(id) { closed.insert(id) }
    }

    /// Removes leaves, with the ancestors that only they need.
    ///
    /// - Returns: those that were leaves.
    package mutating func removeLeaves(_ ids: Set<RevisionID>) -> Set<RevisionID> {
        let removed = ids.filter { contains($0) && isLeaf($0) }
        for leaf in removed {
            var next: RevisionID? = leaf
            while let id = next, isLeaf(id) {
                next = nodes[id]?.parent
                nodes[id] = nil
                closed.remove(id)
                if let parent = next, nodes[parent]?.body != nil { break }
            }
        }
        remotes = remotes.filter { contains($0.value) }
        forgetVectors()
        completeCopies()
        return removed
    }
}
