import LoveseatAssertions

/// Pruning: a database with this policy forgets the rest of a tree.
extension TreePolicy {
    /// The maximum number of closed lines that are remembered.
    package static let closedLinesKept = 32
    /// How many more names of closed revisions are remembered, so that a peer that still has one does not bring it back.
    static let closedNamesKept = 512
    /// The maximum number of open candidates. Beyond it, those that decide nothing are closed first. Every database
    /// with the same candidates closes the same ones.
    static let openCandidatesKept = 64
    /// The maximum number of revisions that are kept in the middle of lines because a peer took them for leaves.
    static let jointsKept = 16

    /// Forgets revisions deeper than ``depth`` below every leaf, and bodies that are not needed. The current revision
    /// does not change.
    ///
    /// Kept are candidates, the nearest copies below them, the origin of every line, revisions that a peer took for a
    /// leaf, and the revision that a remote database is known to have, with its body: a merge, a delta or a copy starts
    /// from it.
    package func prune(_ tree: inout RevisionTree) {
        if !tree.remotes.isEmpty { tree.remotes = tree.remotes.filter { tree.contains($0.value) } }
        var isLine = tree.isLine
        if !isLine {
            closeOutdated(in: &tree)
            tree.completeCopies()
            gatherBodies(of: &tree, tree.candidates)
            boundCandidates(of: &tree)
            forgetClosedLines(of: &tree)
            isLine = tree.isLine
        }
        if tree.nodes.count > depth, !(isLine && shortenLine(&tree)) {
            pruneLines(of: &tree, isLine: isLine)
        }
        tree.formerLeaves.value = []
        tree.forgetVectors()
        // The rest of a pruned line is still a line.
        pruneBodies(of: &tree, isLine: isLine || tree.isLine)
    }

    /// Forgets the middle of a line in which no revision has to be kept; false if one has to.
    private func shortenLine(_ tree: inout RevisionTree) -> Bool {
        guard depth > 0, let highest = tree.nodes.keys.max(by: <) else { return false }
        let line = tree.line(highest)
        let middle = line.dropFirst(depth).dropLast()
        for id in middle {
            guard let node = tree.nodes[id], node.flags.isDisjoint(with: [.deleted, .pending, .joint]),
                !tree.formerLeaves.value.contains(id), !tree.remotes.values.contains(id)
            else { return false }
        }
        var child = line[depth - 1]
        for id in middle {
            guard let node = tree.nodes.removeValue(forKey: id) else {
                impossible("revision \(id) is on a line, and not in the tree")
                continue
            }
            if putsAside {
                tree.aside.value.append(RevisionTree.AsideRevision(id: id, child: child, flags: node.flags))
            }
            child = id
            tree.nodes[line[depth - 1]]?.forget(node)
        }
        return true
    }

    private func pruneLines(of tree: inout RevisionTree, isLine: Bool) {
        let before = isLine ? [] : tree.candidates
        var kept = Set(tree.remotes.values).union(before.map(\.node.id))
        kept.formUnion(tree.pending.map(\.id))
        // The nearest copy says of which document a candidate is.
        kept.formUnion(before.compactMap { tree.line($0.original).first { tree.copies[$0] != nil } })
        let originals = tree.copies.isEmpty ? [] : Set(before.map(\.original))
        for leaf in tree.leaves {
            let line = tree.line(leaf.id)
            kept.formUnion(line.prefix(depth))
            kept.formUnion(returns(of: originals, on: line, in: tree))
            if let origin = line.last { kept.insert(origin) }
        }
        if kept.count >= tree.nodes.count { return }
        kept.formUnion(joints(in: &tree, besides: kept))
        let all = tree.nodes
        tree.nodes = [:]
        for id in kept {
            guard var node = all[id] else {
                impossible("revision \(id) is kept, and not in the tree")
                continue
            }
            var child = id
            // The parent that stays is the nearest ancestor that does.
            while let parent = node.parent.flatMap({ all[$0] }), !kept.contains(parent.id) {
                if putsAside {
                    tree.aside.value.append(
                        RevisionTree.AsideRevision(id: parent.id, child: child, flags: parent.flags)
                    )
                }
                child = parent.id
                node.forget(parent)
            }
            tree.nodes[id] = node
        }
        tree.completeCopies()
        if !isLine { closeRevived(in: &tree, before) }
    }

    /// The highest revisions of a line that are candidates or copies of them. How often the line has a candidate decides whether that gives way
    /// (``HubConflict``).
    private func returns(of originals: Set<RevisionID>, on line: [RevisionID], in tree: RevisionTree)
        -> [RevisionID]
    {
        if originals.isEmpty { return [] }
        var counts: [RevisionID: Int] = [:]
        return line.filter { id in
            let original = tree.original(id)
            guard originals.contains(original) else { return false }
            counts[original, default: 0] += 1
            return counts[original, default: 0] <= CurrentRevisionRule.maximumReturns + 1
        }
    }

    /// Revisions deep in a line that are kept: a peer that has one of them as a leaf could not learn otherwise what
    /// came after it. A tombstone is kept in any case, because it would delete the document that was created again on
    /// top of it.
    private func joints(in tree: inout RevisionTree, besides kept: Set<RevisionID>)
        -> some Sequence<RevisionID>
    {
        let deleted = tree.nodes.values.filter { $0.isDeleted }.map(\.id)
        for id in tree.formerLeaves.value.union(deleted) where !kept.contains(id) {
            tree.nodes[id]?.flags.insert(.joint)
        }
        let joints = tree.nodes.values.filter { $0.flags.contains(.joint) && !kept.contains($0.id) }.map(\.id)
        return joints.sorted(by: >).prefix(Self.jointsKept)
    }

    /// Closes revisions that only a forgotten revision had superseded.
    private func closeRevived(
        in tree: inout RevisionTree,
        _ before: [CurrentRevisionRule.Candidate]
    ) {
        if tree.isLine { return }
        // An original that was forgotten is abbreviated again.
        let known = Set(before.flatMap { [$0.original, $0.original.abbreviated] })
        tree.closed.formUnion(tree.candidates.map(\.original).filter { !known.contains($0) })
    }

    // MARK: Bodies

    private func pruneBodies(of tree: inout RevisionTree, isLine: Bool) {
        if tree.nodes.count <= 1 { return }
        var candidates: Set<RevisionID> = []
        let standing = isLine ? [] : tree.candidates
        if !isLine, tree.copies.isEmpty {
            // Often only the candidates have bodies.
            let needed = standing.count { $0.node.body != nil }
            if needed == tree.nodes.values.count(where: { $0.body != nil && !$0.flags.contains(.pending) }) {
                return
            }
        }
        // Even if the rule chooses one whose body has not arrived.
        if let current = isLine ? tree.current : tree.rule.current(among: standing) {
            candidates.insert(current.id)
        }
        if !isLine {
            gatherBodies(of: &tree, standing)
            candidates.formUnion(standing.map(\.node.id))
        }
        let marked = Set(tree.remotes.values)
        let bases = pendingBases(of: tree).union(deltaBases(of: tree))
            .union(keepsDeletedBodies ? deletedBodies(of: tree, candidates) : [])
        for (id, node) in tree.nodes where node.body != nil && !node.flags.contains(.pending) {
            guard !candidates.contains(id), !marked.contains(id), !bases.contains(id) else { continue }
            tree.nodes[id]?.body = nil
            // The same body may arrive again in another spelling.
            tree.nodes[id]?.flags.remove(.verified)
        }
    }

    /// Puts the body of each candidate into the highest of its copies, which stays. The copy that had it may be forgotten.
    private func gatherBodies(of tree: inout RevisionTree, _ candidates: [CurrentRevisionRule.Candidate]) {
        if tree.copies.isEmpty { return }
        for candidate in candidates { tree.nodes[candidate.node.id] = candidate.node }
    }

    /// The common ancestors of the current revision and of pending ones, which a merge needs.
    private func pendingBases(of tree: RevisionTree) -> Set<RevisionID> {
        let pending = tree.pending
        guard !pending.isEmpty, let current = tree.current else { return [] }
        return Set(pending.compactMap { tree.commonAncestor($0.id, current.id) })
    }

    /// The maximum size of a body that is kept for deltas, in bytes.
    private static let maximumDeltaBase = 32 << 10

    /// The revisions from which deltas to peers that are a few revisions behind start.
    private func deltaBases(of tree: RevisionTree) -> Set<RevisionID> {
        guard ancestorBodiesKept > 0, let current = tree.current else { return [] }
        let kept = tree.ancestors(of: current.id).prefix(ancestorBodiesKept)
        return Set(kept.filter { (tree.nodes[$0]?.body?.bytes.count ?? 0) <= Self.maximumDeltaBase })
    }

    /// The revisions about which an access policy is asked instead of tombstones.
    private func deletedBodies(of tree: RevisionTree, _ candidates: Set<RevisionID>) -> [RevisionID] {
        candidates.compactMap { tree.nodes[$0]?.isDeleted == true ? tree.deleted(by: $0)?.id : nil }
    }

    // MARK: Bounds

    /// The best candidate of each document decides: its deletion, if there is one. Live ones count before deleted ones.
    private func boundCandidates(of tree: inout RevisionTree) {
        if tree.nodes.count <= Self.openCandidatesKept || tree.keepsBranches { return }
        let open = tree.open(among: tree.candidates)
        if open.count <= Self.openCandidatesKept { return }
        let winners = Set(tree.rule.winners(among: open).map(\.original))
        func rank(_ candidate: CurrentRevisionRule.Candidate) -> Int {
            !winners.contains(candidate.original) ? 0 : candidate.node.isDeleted ? 1 : 2
        }
        let ranked = open.map { (rank($0), $0.original) }.sorted { $0 > $1 }
        tree.closed.formUnion(ranked.dropFirst(Self.openCandidatesKept).map(\.1))
    }

    /// Forgets closed lines except the highest ones, and records about revisions that are not here.
    private func forgetClosedLines(of tree: inout RevisionTree) {
        if tree.closed.count <= Self.closedLinesKept || tree.keepsBranches { return }
        let current = tree.current
        let before = tree.candidates
        let lines = tree.leaves.filter { tree.closed.contains(tree.original($0.id)) && $0.id != current?.id }
        let forgotten = lines.sorted { $0.id > $1.id }.dropFirst(Self.closedLinesKept)
        var needed: Set<RevisionID> = []
        for id in tree.remotes.values { needed.formUnion(tree.line(id)) }
        for leaf in tree.leaves where !forgotten.contains(leaf) { needed.formUnion(tree.line(leaf.id)) }
        for leaf in forgotten {
            for id in tree.line(leaf.id) where !needed.contains(id) { tree.nodes[id] = nil }
        }
        tree.completeCopies()
        let named = Set(tree.copies.values)
        let absent = tree.closed.filter { tree.nodes[$0] == nil && !named.contains($0) }.sorted(by: >)
        tree.closed.subtract(absent.dropFirst(Self.closedNamesKept))
        closeRevived(in: &tree, before)
    }
}
