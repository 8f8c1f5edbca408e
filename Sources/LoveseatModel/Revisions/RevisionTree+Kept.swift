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
        prune(by: policy)
        return true
    }

    /// Closes a tombstone that only says that the leaf below it has lost or was given up. It is not a deletion of the document, and deletes no
    /// other leaf.
    package mutating func closeTombstone(_ id: RevisionID) {
        if nodes[id]?.isDeleted == true, isLeaf(id) { closed.insert(id) }
    }

    /// Adds a revision that a peer of CouchDB's wire made, with its history, newest first, beside the revisions that are here.
    ///
    /// - Returns: whether something changed.
    /// - Throws: ``InsertRefusal/badHistory`` for a history that contradicts what is known; ``InsertRefusal/conflict`` if the document
    ///   has too many leaves.
    package mutating func insertBranch(
        _ history: [RevisionID],
        flags: Flags,
        body: JSONText,
        by policy: TreePolicy
    ) throws(InsertRefusal) -> Bool {
        try Self.check(history)
        let id = history[0]
        let before = self
        guard !contains(id) || (nodes[id]?.body == nil && isLeaf(id)) else {
            // The history may reach further than what is known, or join two known lines.
            let node = nodes[id]
            try addLine(history, origin: nil, flags: node?.flags ?? [], body: node?.body ?? body, by: policy)
            if node?.body == nil { nodes[id]?.body = nil }
            let isConflict = before.rule.lines(ofUndecided: before.rule.undecidedLeaves).contains(id)
            if isConflict { keepBranches() }
            let noted = formerLeaves
            prune(by: policy)
            if isConflict { return true }
            guard policy.putsAside else { return !hasSameLines(as: before) }
            // Revisions that were put back for this are put aside again. A revision that a peer took for a leaf stays, which is not a
            // change.
            var known = before
            known.formerLeaves = noted
            known.prune(by: policy)
            return !hasSameLines(as: known)
        }
        try addLine(history, origin: nil, flags: flags, body: body, by: policy)
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
        prune(by: policy)
        return true
    }

    /// A revision that a peer of CouchDB's wire made, with its history, newest first.
    package struct Branch: Sendable {
        package let history: [RevisionID]
        package let flags: Flags
        package let body: JSONText

        package init(history: [RevisionID], flags: Flags, body: JSONText) {
            (self.history, self.flags, self.body) = (history, flags, body)
        }
    }

    /// Adds revisions as ``insertBranch(_:flags:body:by:)`` does for one after the other, in time that is proportional to their number.
    /// Pruning decides once, at the end.
    package mutating func insertBranches(_ branches: [Branch], by policy: TreePolicy) -> [Result<
        Bool, InsertRefusal
    >] {
        var results: [Result<Bool, InsertRefusal>] = []
        results.reserveCapacity(branches.count)
        var rest = branches[...]
        while !keepsBranches, let branch = rest.popFirst() { results.append(insertOne(branch, policy)) }
        insert(rest, policy, &results)
        return results
    }

    /// Adds one revision. A revision that is refused leaves nothing in the tree, which is stored for the others.
    private mutating func insertOne(_ branch: Branch, _ policy: TreePolicy) -> Result<Bool, InsertRefusal> {
        let before = self
        do throws(InsertRefusal) {
            return .success(
                try insertBranch(branch.history, flags: branch.flags, body: branch.body, by: policy)
            )
        } catch {
            self = before
            return .failure(error)
        }
    }

    /// Adds revisions at once, or in halves if that is not possible.
    private mutating func insert(
        _ branches: ArraySlice<Branch>,
        _ policy: TreePolicy,
        _ results: inout [Result<Bool, InsertRefusal>]
    ) {
        guard branches.count > 1 else {
            return results.append(contentsOf: branches.map { insertOne($0, policy) })
        }
        if let areNew = insertAtOnce(branches, policy) {
            return results.append(contentsOf: areNew.map { .success($0) })
        }
        let middle = branches.startIndex + branches.count / 2
        insert(branches[..<middle], policy, &results)
        insert(branches[middle...], policy, &results)
    }

    /// Adds revisions to a document with kept branches by one merge.
    ///
    /// - Returns: whether each is new; nil, without a change, if their order matters, or one of them may not be added.
    private mutating func insertAtOnce(_ branches: ArraySlice<Branch>, _ policy: TreePolicy) -> [Bool]? {
        var lines = TreeKnowledge()
        var heads: Set<RevisionID> = []
        var parents: [RevisionID: RevisionID?] = [:]
        var areNew: [Bool] = []
        for branch in branches {
            guard let id = branch.history.first, heads.insert(id).inserted else { return nil }
            guard !contains(id) else {
                guard knows(branch.history) else { return nil }
                areNew.append(false)
                continue
            }
            guard branch.history.count <= policy.keptOfLine, (try? Self.check(branch.history)) != nil,
                !branch.history.contains(where: \.isFiller)
            else { return nil }
            areNew.append(true)
            lines.nodes.append(
                Node(
                    id: id,
                    parent: branch.history.dropFirst().first,
                    flags: branch.flags,
                    body: branch.body
                )
            )
            for (index, ancestor) in branch.history.enumerated().dropFirst() {
                let parent = index + 1 < branch.history.count ? branch.history[index + 1] : nil
                // Each line names the parents of its revisions. A parent that is named twice is added once.
                if let known = parents[ancestor] {
                    guard known == parent else { return nil }
                    continue
                }
                if let known = nodes[ancestor]?.parent, known != parent { return nil }
                parents[ancestor] = parent
                lines.nodes.append(Node(id: ancestor, parent: parent, flags: [], body: nil))
            }
        }
        guard heads.isDisjoint(with: parents.keys) else { return nil }
        guard !lines.nodes.isEmpty else { return areNew }
        let before = self
        if nodes.count + lines.nodes.count > policy.depth { formerLeaves.value.formUnion(heads) }
        // A history may contradict the tree: the revisions are then added one by one, and the one at fault is refused.
        guard (try? merge(lines, by: policy)) != nil, leaves.count <= Self.keptLeaves else {
            self = before
            return nil
        }
        prune(by: policy)
        return areNew
    }

    /// Whether a revision is here with its content, and a history says nothing new about it.
    private func knows(_ history: [RevisionID]) -> Bool {
        guard let id = history.first, nodes[id]?.body != nil else { return false }
        return zip(history, history.dropFirst()).allSatisfy { nodes[$0]?.parent == $1 }
    }

    /// Adds an edit of a leaf, made by a peer of CouchDB's wire. `parent`: nil for the first revision.
    package mutating func insertEdit(
        _ id: RevisionID,
        parent: RevisionID?,
        flags: Flags,
        body: JSONText,
        by policy: TreePolicy
    ) {
        if !keepsBranches, parent == current?.id || parent == nil {
            return insertLocal(id, parent: parent, flags: flags, body: body, by: policy)
        }
        keepBranches()
        nodes[id] = Node(id: id, parent: parent, flags: flags, body: body)
        prune(by: policy)
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
        completeCopies()
        return removed
    }
}

extension TreeKnowledge {
    /// See ``RevisionTree/keepsBranches``.
    package var keepsBranches: Bool { closed.contains(RevisionTree.keptMark) }
}

extension RevisionID {
    /// The place of a revision among those of the same state, as CouchDB ranks them: by generation, then by the digest's bytes, which are
    /// 16 for 32 hexadecimal digits.
    package struct Rank: Comparable {
        let generation: UInt32
        let digest: [UInt8]

        package static func < (one: Self, other: Self) -> Bool {
            guard one.generation == other.generation else { return one.generation < other.generation }
            return one.digest.lexicographicallyPrecedes(other.digest)
        }
    }

    /// See ``Rank``. Making one costs more than comparing two.
    package var rank: Rank { Rank(generation: generation, digest: rankedDigest) }

    /// Whether CouchDB ranks this revision behind another one of the same state.
    package func ranksBehind(_ other: Self) -> Bool {
        guard generation == other.generation else { return generation < other.generation }
        return rank < other.rank
    }

    private var rankedDigest: [UInt8] {
        let text = Array(digest.utf8)
        guard text.count == 32 else { return text }
        let digits = text.compactMap { hexadecimalDigit($0) }
        guard digits.count == 32 else { return text }
        return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
