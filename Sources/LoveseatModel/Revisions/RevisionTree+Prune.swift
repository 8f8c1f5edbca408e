extension RevisionTree {
    /// How many branches that lost are remembered although no remote is known to have them.
    ///
    /// They may be on their way to a remote; and by them a revision is known that comes back after what followed it
    /// has lost. Without that, three revisions of which each beats the next go round among the peers for ever.
    static let closedBranchesKept = 4

    /// Forgets revisions deeper than `depth` below every leaf, and bodies that nobody needs.
    ///
    /// The revision a remote database is known to have stays, with its body: a merge or a delta starts from it.
    package mutating func prune(depth: Int) {
        remotes = remotes.filter { contains($0.value) }
        forgetClosedBranches()
        let marked = Set(remotes.values)
        let leafIDs = Set(leaves.map(\.id))
        let bases = conflictBases.union(deltaBases)
        for index in nodes.indices where nodes[index].body != nil {
            let id = nodes[index].id
            if !leafIDs.contains(id), !marked.contains(id), !bases.contains(id) { nodes[index].body = nil }
        }
        guard nodes.count > depth else { return }
        var kept = marked
        for leaf in leafIDs { kept.formUnion([leaf] + ancestors(of: leaf).prefix(depth - 1)) }
        guard kept.count < nodes.count else { return }
        let all = self
        nodes = all.nodes.compactMap { node in
            guard kept.contains(node.id) else { return nil }
            var node = node
            // The parent that stays is the nearest ancestor that does.
            node.parent = all.ancestors(of: node.id).first { kept.contains($0) }
            return node
        }
    }
}

extension RevisionTree {
    /// What the current branch and those in conflict with it grew from, which their merge needs.
    private var conflictBases: Set<RevisionID> {
        let conflicts = conflicts
        guard !conflicts.isEmpty, let winner else { return [] }
        let mine = Set(ancestors(of: winner.id) + [winner.id])
        return Set(conflicts.compactMap { ancestors(of: $0.id).first { mine.contains($0) } })
    }

    /// Bodies longer than this, in bytes, are not kept for deltas.
    private static let longestDeltaBase = 32 << 10

    /// What a delta to a peer that is a few revisions behind starts from.
    private var deltaBases: Set<RevisionID> {
        guard ancestorBodiesKept > 0, let winner else { return [] }
        let kept = ancestors(of: winner.id).prefix(ancestorBodiesKept)
        return Set(kept.filter { (node($0)?.body?.bytes.count ?? 0) <= Self.longestDeltaBase })
    }

    /// Forgets branches that were given up and that no remote is known to have, but for the highest few.
    private mutating func forgetClosedBranches() {
        let forgotten = leaves.filter { $0.flags.contains(.closed) && $0.id != winner?.id }
            .filter { leaf in
                let own = ownRevisions(ofBranch: leaf.id)
                return !remotes.values.contains { own.contains($0) }
            }
            .sorted { $0.id > $1.id }
            .dropFirst(Self.closedBranchesKept)
        for leaf in forgotten { purgeBranch(leaf.id) }
    }

    /// Takes back a mark that its holder kept elsewhere.
    package mutating func adoptRemote(_ remote: Remote, has id: RevisionID) { remotes[remote] = id }

    /// Drops the mark of a remote, for a holder that keeps it elsewhere.
    package mutating func forgetRemote(_ remote: Remote) { remotes[remote] = nil }
}
