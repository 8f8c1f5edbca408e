import LoveseatAssertions

extension RevisionTree {
    /// The maximum number of closed lines that are remembered.
    package static let closedLinesKept = 32
    /// How many more names of closed revisions are remembered, so that a peer that still has one does not bring it back.
    static let closedNamesKept = 512
    /// The maximum number of open candidates. Beyond it, those that decide nothing are closed first. Every database
    /// with the same candidates closes the same ones.
    static let openCandidatesKept = 64
    /// The maximum number of revisions that are kept in the middle of lines because a peer took them for leaves.
    static let jointsKept = 16

    /// Forgets revisions deeper than the policy's depth below every leaf, and bodies that are not needed. The current revision
    /// does not change.
    ///
    /// Kept are candidates, the nearest copies below them, the origin of every line, revisions that a peer took for a
    /// leaf, and the revision that a remote database is known to have, with its body: a merge, a delta or a copy starts
    /// from it.
    package mutating func prune(by policy: TreePolicy) {
        if !remotes.isEmpty { remotes = remotes.filter { contains($0.value) } }
        var isLine = isLine
        if !isLine {
            completeCopies()
            boundCandidates()
            forgetClosedLines()
            isLine = self.isLine
        }
        if nodes.count > policy.depth, !(isLine && shortenLine(by: policy)) {
            pruneLines(isLine: isLine, by: policy)
        }
        formerLeaves.value = []
        // The rest of a pruned line is still a line.
        pruneBodies(isLine: isLine || self.isLine, by: policy)
    }

    /// Forgets the middle of a line in which no revision has to be kept; false if one has to.
    private mutating func shortenLine(by policy: TreePolicy) -> Bool {
        let depth = policy.depth
        guard depth > 0, let highest = nodes.keys.max(by: <) else { return false }
        let line = line(highest)
        let middle = line.dropFirst(depth).dropLast()
        for id in middle {
            guard let node = nodes[id], node.flags.isDisjoint(with: [.deleted, .pending, .joint]),
                !formerLeaves.value.contains(id), !remotes.values.contains(id)
            else { return false }
        }
        var child = line[depth - 1]
        for id in middle {
            guard let node = nodes.removeValue(forKey: id) else {
                impossible("revision \(id) is on a line, and not in the tree")
                continue
            }
            if policy.putsAside {
                aside.value.append(AsideRevision(id: id, child: child, flags: node.flags))
            }
            child = id
            nodes[line[depth - 1]]?.forget(node)
        }
        return true
    }

    private mutating func pruneLines(isLine: Bool, by policy: TreePolicy) {
        let before = isLine ? [] : candidates
        var kept = Set(remotes.values).union(before.map(\.node.id))
        kept.formUnion(pending.map(\.id))
        // The nearest copy says of which document a candidate is.
        kept.formUnion(before.compactMap { line($0.original).first { copies[$0] != nil } })
        for leaf in leaves {
            let line = line(leaf.id)
            kept.formUnion(line.prefix(policy.depth))
            if let origin = line.last { kept.insert(origin) }
        }
        if kept.count >= nodes.count { return }
        kept.formUnion(joints(besides: kept))
        let all = self
        nodes = [:]
        for id in kept {
            guard var node = all.nodes[id] else {
                impossible("revision \(id) is kept, and not in the tree")
                continue
            }
            var child = id
            // The parent that stays is the nearest ancestor that does.
            while let parent = node.parent.flatMap({ all.nodes[$0] }), !kept.contains(parent.id) {
                if policy.putsAside {
                    aside.value.append(AsideRevision(id: parent.id, child: child, flags: parent.flags))
                }
                child = parent.id
                node.forget(parent)
            }
            nodes[id] = node
        }
        completeCopies()
        if !isLine { closeRevived(before) }
    }

    /// Revisions deep in a line that are kept: a peer that has one of them as a leaf could not learn otherwise what
    /// came after it. A tombstone is kept in any case, because it would delete the document that was created again on
    /// top of it.
    private mutating func joints(besides kept: Set<RevisionID>) -> some Sequence<RevisionID> {
        let deleted = nodes.values.filter { $0.isDeleted }.map(\.id)
        for id in formerLeaves.value.union(deleted) where !kept.contains(id) {
            nodes[id]?.flags.insert(.joint)
        }
        let joints = nodes.values.filter { $0.flags.contains(.joint) && !kept.contains($0.id) }.map(\.id)
        return joints.sorted(by: >).prefix(Self.jointsKept)
    }

    /// Closes revisions that only a forgotten revision had superseded.
    private mutating func closeRevived(_ before: [CurrentRevisionRule.Candidate]) {
        if isLine { return }
        // An original that was forgotten is abbreviated again.
        let known = Set(before.flatMap { [$0.original, $0.original.abbreviated] })
        closed.formUnion(candidates.map(\.original).filter { !known.contains($0) })
    }

    // MARK: Bodies

    private mutating func pruneBodies(isLine: Bool, by policy: TreePolicy) {
        if nodes.count <= 1 { return }
        var candidates: Set<RevisionID> = []
        let standing = isLine ? [] : self.candidates
        if !isLine, copies.isEmpty {
            // Often only the candidates have bodies.
            let needed = standing.count { $0.node.body != nil }
            if needed == nodes.values.count(where: { $0.body != nil && !$0.flags.contains(.pending) }) {
                return
            }
        }
        // Even if the rule chooses one whose body has not arrived.
        if let current = isLine ? current : rule.current(among: standing) { candidates.insert(current.id) }
        if !isLine {
            for candidate in standing {
                // All copies have the body of the candidate's node.
                nodes[candidate.node.id] = candidate.node
                candidates.insert(candidate.node.id)
            }
        }
        let marked = Set(remotes.values)
        let bases = pendingBases.union(deltaBases(policy.ancestorBodiesKept))
            .union(policy.keepsDeletedBodies ? deletedBodies(candidates) : [])
        for (id, node) in nodes where node.body != nil && !node.flags.contains(.pending) {
            guard !candidates.contains(id), !marked.contains(id), !bases.contains(id) else { continue }
            nodes[id]?.body = nil
            // The same body may arrive again in another spelling.
            nodes[id]?.flags.remove(.verified)
        }
    }

    /// The common ancestors of the current revision and of pending ones, which a merge needs.
    private var pendingBases: Set<RevisionID> {
        let pending = pending
        guard !pending.isEmpty, let current else { return [] }
        return Set(pending.compactMap { commonAncestor($0.id, current.id) })
    }

    /// The youngest revision that is on both lines.
    package func commonAncestor(_ one: RevisionID, _ other: RevisionID) -> RevisionID? {
        let line = Set(line(one))
        return self.line(other).first { line.contains($0) }
    }

    /// The maximum size of a body that is kept for deltas, in bytes.
    private static let maximumDeltaBase = 32 << 10

    /// The revisions from which deltas to peers that are a few revisions behind start.
    private func deltaBases(_ ancestors: Int) -> Set<RevisionID> {
        guard ancestors > 0, let current else { return [] }
        let kept = self.ancestors(of: current.id).prefix(ancestors)
        return Set(kept.filter { (nodes[$0]?.body?.bytes.count ?? 0) <= Self.maximumDeltaBase })
    }

    /// The revisions about which an access policy is asked instead of tombstones.
    private func deletedBodies(_ candidates: Set<RevisionID>) -> [RevisionID] {
        candidates.compactMap { nodes[$0]?.isDeleted == true ? deleted(by: $0)?.id : nil }
    }

    // MARK: Bounds

    /// The best candidate of each document decides: its deletion, if there is one. Live ones count before deleted ones.
    private mutating func boundCandidates() {
        if nodes.count <= Self.openCandidatesKept || keepsBranches { return }
        let open = open(among: candidates)
        if open.count <= Self.openCandidatesKept { return }
        let winners = Set(rule.documents(among: open).compactMap { rule.best(ofDocument: $0)?.original })
        func rank(_ candidate: CurrentRevisionRule.Candidate) -> Int {
            !winners.contains(candidate.original) ? 0 : candidate.node.isDeleted ? 1 : 2
        }
        let ranked = open.map { (rank($0), $0.original) }.sorted { $0 > $1 }
        closed.formUnion(ranked.dropFirst(Self.openCandidatesKept).map(\.1))
    }

    /// Forgets closed lines except the highest ones, and records about revisions that are not here.
    private mutating func forgetClosedLines() {
        if closed.count <= Self.closedLinesKept || keepsBranches { return }
        let current = current
        let before = candidates
        let lines = leaves.filter { closed.contains(original($0.id)) && $0.id != current?.id }
        let forgotten = lines.sorted { $0.id > $1.id }.dropFirst(Self.closedLinesKept)
        var needed: Set<RevisionID> = []
        for id in remotes.values { needed.formUnion(line(id)) }
        for leaf in leaves where !forgotten.contains(leaf) { needed.formUnion(line(leaf.id)) }
        for leaf in forgotten {
            for id in line(leaf.id) where !needed.contains(id) { nodes[id] = nil }
        }
        completeCopies()
        let named = Set(copies.values)
        let absent = closed.filter { nodes[$0] == nil && !named.contains($0) }.sorted(by: >)
        closed.subtract(absent.dropFirst(Self.closedNamesKept))
        closeRevived(before)
    }
}
