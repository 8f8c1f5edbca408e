/// Documents whose branches are kept, as CouchDB does (docs/decisions/0009): all leaves stay, and CouchDB's rule chooses
/// the current revision among them.
///
/// A document becomes one when a peer of CouchDB's wire brings a revision beside the current one. The mark is a name in
/// ``RevisionTree/closed``, so that it is merged, stored and sent like all knowledge.
extension RevisionTree {
    /// The name in ``closed`` that marks a document with kept branches. No revision has it.
    static let keptMark = RevisionID(generation: 1 << 31, digest: Array("kept".utf8))

    /// The maximum number of leaves of a document with kept branches.
    package static let keptLeaves = 1_000

    /// Whether all leaves stay, and CouchDB's rule applies.
    package var keepsBranches: Bool { closed.contains(Self.keptMark) }

    /// Keeps all leaves from now on. Those that lost before stay closed, since peers have been told so.
    package mutating func keepBranches() {
        guard !keepsBranches else { return }
        let current = current.map { original($0.id) }
        for candidate in candidates where candidate.original != current { closed.insert(candidate.original) }
        closed.insert(Self.keptMark)
    }

    /// Adds a revision that a peer of CouchDB's wire made, with its history, newest first, beside whatever is here.
    ///
    /// - Returns: whether something changed.
    /// - Throws: ``InsertRefusal/badHistory`` for a history that contradicts what is known; ``InsertRefusal/conflict`` if the document
    ///   has too many leaves.
    package mutating func insertBranch(_ history: [RevisionID], flags: Flags, body: JSONText)
        throws(InsertRefusal)
        -> Bool
    {
        try Self.check(history)
        let id = history[0]
        let before = self
        guard !contains(id) || (nodes[id]?.body == nil && isLeaf(id)) else {
            // The history may reach further than what is known, or join two known lines.
            let node = nodes[id]
            try addLine(history, origin: nil, flags: node?.flags ?? [], body: node?.body ?? body)
            if node?.body == nil { nodes[id]?.body = nil }
            prune(depth: depth)
            return !hasSameLines(as: before)
        }
        try addLine(history, origin: nil, flags: flags, body: body)
        if let current = before.current, !isAncestor(current.id, of: id) {
            let merged = self
            self = before
            keepBranches()
            let closed = closed
            self = merged
            self.closed = closed
            guard leaves.count <= Self.keptLeaves else {
                self = before
                throw .conflict
            }
        }
        prune(depth: depth)
        return true
    }

    /// Adds an edit of a leaf, made by a peer of CouchDB's wire. `parent`: nil for the first revision.
    package mutating func insertEdit(_ id: RevisionID, parent: RevisionID?, flags: Flags, body: JSONText) {
        if !keepsBranches, parent == current?.id || parent == nil {
            return insertLocal(id, parent: parent, flags: flags, body: body)
        }
        keepBranches()
        nodes[id] = Node(id: id, parent: parent, flags: flags, body: body)
        prune(depth: depth)
    }

    /// Removes leaves with what only they rest on.
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
        completeCopies()
        return removed
    }
}

extension TreeKnowledge {
    /// See ``RevisionTree/keepsBranches``.
    package var keepsBranches: Bool { closed.contains(RevisionTree.keptMark) }
}

extension RevisionID {
    /// Whether CouchDB ranks this revision behind another one of the same state: by generation, then by the digest's bytes, which are
    /// 16 for 32 hexadecimal digits.
    package func ranksBehind(_ other: Self) -> Bool {
        guard generation == other.generation else { return generation < other.generation }
        return rankedDigest.lexicographicallyPrecedes(other.rankedDigest)
    }

    private var rankedDigest: [UInt8] {
        let text = Array(digest.utf8)
        guard text.count == 32 else { return text }
        let digits = text.compactMap { hexadecimalDigit($0) }
        guard digits.count == 32 else { return text }
        return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
