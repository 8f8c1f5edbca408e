/// The rule for the current revision (docs/decisions/0001): equal knowledge gives the same result. It reads the facts of a tree, and changes
/// nothing.
package struct CurrentRevisionRule {
    /// A revision that was not superseded, with its copies.
    package struct Candidate: Hashable, Sendable {
        /// The first revision with this content.
        package let original: RevisionID
        /// The highest of the copies and the original itself, which represents all of them.
        package fileprivate(set) var node: RevisionTree.Node

        /// Of one document a deletion wins, then the higher revision; a copy counts as its original.
        func precedes(_ other: Self) -> Bool {
            if node.isDeleted != other.node.isDeleted { return other.node.isDeleted }
            return original != other.original ? original < other.original : node.id < other.node.id
        }
    }

    /// How often one revision is put on a hub's line against a deletion of another document.
    static let maximumReturns = 3

    let tree: RevisionTree

    /// The current revision; nil if nothing is known.
    ///
    /// A revision whose body has not arrived cannot be shown: then this is the best one with a body. A peer that has
    /// the body sends it when the two databases disagree.
    package var current: RevisionTree.Node? {
        if tree.isLine { return tree.nodes.values.filter { $0.body != nil }.max { $0.id < $1.id } ?? highest }
        return current(among: candidates)
    }

    /// The current revision among these candidates.
    func current(among candidates: [Candidate]) -> RevisionTree.Node? {
        let first = best(of: candidates)
        if let first, first.node.body != nil { return first.node }
        var shown = candidates.filter { $0.node.body != nil }
        // A revision that was given up stands in for a live one only if it is alive itself.
        if first?.node.isDeleted == false, open(among: shown).isEmpty {
            // A remote's revision is preferred: no peer puts a revision that was given up on top of that. A deletion counts if another
            // client puts it there again and again.
            let held = tree.remotes.values.compactMap { tree.nodes[$0] }.filter {
                $0.body != nil
                    && (!$0.isDeleted
                        || tree.returns(of: tree.original($0.id), to: $0.id) > Self.maximumReturns)
            }
            if let held = held.max(by: { $0.id < $1.id }) { return held }
            let live = shown.filter { !$0.node.isDeleted }
            if !live.isEmpty { shown = live }
        }
        if let best = best(of: shown) { return best.node }
        let readable = tree.nodes.values.filter { $0.body != nil && !$0.flags.contains(.pending) }
        return readable.max { $0.id < $1.id } ?? highest
    }

    /// Whether a revision is the current one, or has the same content without being an ancestor of it.
    package func isCurrent(_ id: RevisionID) -> Bool {
        guard let current else { return false }
        if id == current.id || tree.original(id) == tree.original(current.id) { return true }
        guard let node = tree.node(id) else { return false }
        return !tree.isAncestor(id, of: current.id) && node.saysTheSame(as: current)
    }

    private var highest: RevisionTree.Node? { tree.nodes.values.max { $0.id < $1.id } }

    /// Whether the rule chooses a revision whose body has not arrived.
    package var lacksCurrentBody: Bool {
        tree.isLine ? highest?.body == nil : best(of: candidates)?.node.body == nil
    }

    /// Whether a revision may become the current one as soon as its body arrives.
    package func awaitsBody(of id: RevisionID) -> Bool {
        guard let node = tree.nodes[id], node.body == nil else { return false }
        let original = tree.original(id)
        guard !superseded.contains(original) else { return false }
        return !candidates.contains { $0.original == original && $0.node.body != nil }
    }

    /// The revisions that were not superseded, one node for each original.
    package var candidates: [Candidate] {
        guard !tree.copies.isEmpty else {
            // Each revision is its own original.
            let superseded = superseded
            let open = tree.nodes.values.filter {
                !$0.flags.contains(.pending) && !superseded.contains($0.id)
            }
            return (open.isEmpty ? tree.leaves : open).map { Candidate(original: $0.id, node: $0) }
        }
        let candidates = candidatesByOriginal
        // Knowledge that contradicts itself is used as it is.
        return candidates.isEmpty
            ? tree.leaves.map { Candidate(original: $0.id, node: $0) } : Array(candidates.values)
    }

    /// The candidates by their originals; empty if every line loops.
    var candidatesByOriginal: [RevisionID: Candidate] {
        let superseded = superseded
        var found: [RevisionID: Candidate] = [:]
        for node in tree.nodes.values where !node.flags.contains(.pending) {
            let original = tree.original(node.id)
            guard !superseded.contains(original) else { continue }
            guard var candidate = found[original] else {
                found[original] = Candidate(original: original, node: node)
                continue
            }
            // All have the same content, so facts about any of them hold for all.
            let (one, other) = node.id > candidate.node.id ? (node, candidate.node) : (candidate.node, node)
            candidate.node = one
            candidate.node.body = one.body ?? other.body
            candidate.node.flags.formUnion(other.flags.intersection([.deleted, .hasBlobs]))
            found[original] = candidate
        }
        return found
    }

    /// The originals below revisions that are not copies, and those whose versions another candidate includes.
    package var superseded: Set<RevisionID> {
        var below = replaced
        if !tree.vectors.isEmpty { below.formUnion(outdated(besides: below)) }
        return tree.copies.isEmpty ? below : Set(below.map(tree.original))
    }

    /// The revisions below others that are not copies.
    var replaced: Set<RevisionID> {
        var below: Set<RevisionID> = []
        for node in tree.nodes.values where tree.copies[node.id] == nil {
            var next = node.parent
            while let id = next, below.insert(id).inserted { next = tree.nodes[id]?.parent }
        }
        return below
    }

    /// Closed candidates count only if all candidates are closed.
    private func best(of candidates: [Candidate]) -> Candidate? {
        if tree.keepsBranches { return bestKept(of: open(among: candidates)) ?? bestKept(of: candidates) }
        return bestOpen(of: open(among: candidates)) ?? bestOpen(of: candidates)
    }

    /// CouchDB's rule: a live revision wins, then the higher.
    private func bestKept(of candidates: [Candidate]) -> Candidate? {
        guard candidates.count > 1 else { return candidates.first }
        let ranked = candidates.map { (candidate: $0, isDeleted: $0.node.isDeleted, rank: $0.node.id.rank) }
        let best = ranked.max { one, other in
            one.isDeleted == other.isDeleted ? one.rank < other.rank : one.isDeleted
        }
        return best?.candidate
    }

    /// The candidates that are not closed.
    package func open(among candidates: [Candidate]) -> [Candidate] {
        tree.closed.isEmpty ? candidates : candidates.filter { !tree.closed.contains($0.original) }
    }

    /// Of two documents a live one wins, then the higher revision.
    private func bestOpen(of candidates: [Candidate]) -> Candidate? {
        guard candidates.count > 1 else { return candidates.first }
        // Of live ones the higher wins, even of different documents.
        guard candidates.contains(where: \.node.isDeleted) else {
            return candidates.max { $0.precedes($1) }
        }
        let winners = winners(among: candidates)
        let live = winners.filter { !$0.node.isDeleted }
        return (live.isEmpty ? winners : live).max { $0.precedes($1) }
    }

    /// The best candidate of each document.
    func winners(among candidates: [Candidate]) -> [Candidate] {
        let deletions = ContinuedDeletions(among: candidates, in: tree)
        return documents(among: candidates).compactMap { best(ofDocument: $0, deletions) }
    }

    /// The best candidate of one document.
    func best(ofDocument candidates: [Candidate]) -> Candidate? {
        best(ofDocument: candidates, ContinuedDeletions(among: candidates, in: tree))
    }

    /// Of one document a deletion wins, then the higher revision. A deletion on which an unknown edit may have been made counts as
    /// superseded.
    func best(ofDocument candidates: [Candidate], _ deletions: ContinuedDeletions) -> Candidate? {
        deletions.standing(among: candidates).max { $0.precedes($1) }
    }

    /// Candidates that share an origin are of one document. The revision below a copy belongs to another document.
    func documents(among candidates: [Candidate]) -> [[Candidate]] {
        var origins = RevisionTree.Origins(of: tree)
        return Array(Dictionary(grouping: candidates) { origins.origin(of: $0.known(in: tree)) }.values)
    }

    /// The origin of a candidate's content.
    func origin(of candidate: Candidate) -> RevisionID { tree.origin(of: candidate.known(in: tree)) }
}

extension CurrentRevisionRule.Candidate {
    /// The original, or a copy of it while that is not known.
    fileprivate func known(in tree: RevisionTree) -> RevisionID {
        tree.contains(original) ? original : node.id
    }
}

extension RevisionTree {
    /// The rule for the current revision, applied to this tree.
    package var rule: CurrentRevisionRule { CurrentRevisionRule(tree: self) }

    /// See ``CurrentRevisionRule/current``.
    package var current: Node? { rule.current }

    /// See ``CurrentRevisionRule/candidates``.
    package var candidates: [CurrentRevisionRule.Candidate] { rule.candidates }

    /// See ``CurrentRevisionRule/open(among:)``.
    package func open(among candidates: [CurrentRevisionRule.Candidate]) -> [CurrentRevisionRule.Candidate] {
        rule.open(among: candidates)
    }

    /// See ``CurrentRevisionRule/superseded``.
    package var superseded: Set<RevisionID> { rule.superseded }

    /// See ``CurrentRevisionRule/isCurrent(_:)``.
    package func isCurrent(_ id: RevisionID) -> Bool { rule.isCurrent(id) }
}
