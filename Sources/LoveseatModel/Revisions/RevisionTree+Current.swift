/// The rule for the current revision (docs/decisions/0001): equal knowledge gives the same result.
extension RevisionTree {
    /// A revision that was not superseded, with its copies.
    package struct Candidate: Hashable, Sendable {
        /// The first revision with this content.
        package let original: RevisionID
        /// The highest of the copies and the original itself, which represents all of them.
        package internal(set) var node: Node

        /// Of one document a deletion wins, then the higher; a copy counts as its original.
        func precedes(_ other: Self, _ omissions: Omissions) -> Bool {
            if node.isDeleted != other.node.isDeleted { return other.node.isDeleted }
            if omissions.contains(.rankOfCopy) { return node.id < other.node.id }
            return original != other.original ? original < other.original : node.id < other.node.id
        }
    }

    /// The current revision; nil if nothing is known.
    ///
    /// A revision whose body has not arrived cannot be shown: then this is the best one with a body. A peer that has
    /// the body sends it when the two databases disagree.
    package var current: Node? {
        if isLine { return nodes.values.filter { $0.body != nil }.max { $0.id < $1.id } ?? highest }
        return current(among: candidates)
    }

    /// The current revision among these candidates.
    func current(among candidates: [Candidate]) -> Node? {
        if let best = best(of: candidates), best.node.body != nil { return best.node }
        if let best = best(of: candidates.filter { $0.node.body != nil }) { return best.node }
        return nodes.values.filter { $0.body != nil && !$0.flags.contains(.pending) }.max { $0.id < $1.id }
            ?? highest
    }

    /// Whether a revision is the current one, or has the same content without being an ancestor of it.
    package func isCurrent(_ id: RevisionID) -> Bool {
        guard let current else { return false }
        if id == current.id || original(id) == original(current.id) { return true }
        guard let node = node(id) else { return false }
        return !isAncestor(id, of: current.id) && Self.saysTheSame(node, current)
    }

    private var highest: Node? { nodes.values.max { $0.id < $1.id } }

    /// Whether the rule chooses a revision whose body has not arrived.
    package var lacksCurrentBody: Bool {
        isLine ? highest?.body == nil : best(of: candidates)?.node.body == nil
    }

    /// How many copies of copies are followed to an original. One that comes later was put on a hub again and again, by
    /// databases that hear of each other's copies only after they have taken them for edits; then the last one stands.
    private static let copiesFollowed = 3

    /// The original of a copy, the highest if there are several; otherwise the revision itself. A revision that turned
    /// out to be a copy is not the original of its own copies.
    package func original(_ id: RevisionID) -> RevisionID {
        guard copies[id] != nil else { return id }
        var found: Set<RevisionID> = []
        var next: Set = [id]
        for _ in 0..<Self.copiesFollowed {
            next = Set(next.flatMap { copies[$0] ?? [] }.map(\.original)).subtracting(found)
            found.formUnion(next)
        }
        return found.filter { copies[$0] == nil }.max() ?? found.max() ?? id
    }

    /// The revisions that were not superseded, one node for each original.
    package var candidates: [Candidate] {
        guard !copies.isEmpty else {
            // Each revision is its own original.
            let superseded = superseded
            let open = nodes.values.filter {
                !$0.flags.contains(.pending) && !superseded.contains($0.id)
            }
            return (open.isEmpty ? leaves : open).map { Candidate(original: $0.id, node: $0) }
        }
        let candidates = candidatesByOriginal
        // Knowledge that contradicts itself is used as it is.
        return candidates.isEmpty
            ? leaves.map { Candidate(original: $0.id, node: $0) } : Array(candidates.values)
    }

    /// The candidates by their originals; empty if every line loops.
    var candidatesByOriginal: [RevisionID: Candidate] {
        let superseded = superseded
        var found: [RevisionID: Candidate] = [:]
        for node in nodes.values where !node.flags.contains(.pending) {
            let original = original(node.id)
            guard !superseded.contains(original) else { continue }
            guard var candidate = found[original] else {
                found[original] = Candidate(original: original, node: node)
                continue
            }
            // All have the same content, so the body of any of them is the body of all.
            let body = candidate.node.body ?? node.body
            if node.id > candidate.node.id { candidate.node = node }
            candidate.node.body = candidate.node.body ?? body
            found[original] = candidate
        }
        return found
    }

    /// The originals below revisions that are not copies.
    package var superseded: Set<RevisionID> {
        var below: Set<RevisionID> = []
        for node in nodes.values where copies[node.id] == nil {
            var next = node.parent
            while let id = next, below.insert(id).inserted { next = nodes[id]?.parent }
        }
        return copies.isEmpty ? below : Set(below.map(original))
    }

    /// Closed candidates count only if all candidates are closed.
    private func best(of candidates: [Candidate]) -> Candidate? {
        if keepsBranches { return bestKept(of: open(among: candidates)) ?? bestKept(of: candidates) }
        return bestByOrigin(of: candidates)
    }

    /// CouchDB's rule: a live one wins, then the higher.
    private func bestKept(of candidates: [Candidate]) -> Candidate? {
        candidates.max { one, other in
            guard one.node.isDeleted == other.node.isDeleted else { return one.node.isDeleted }
            return one.node.id.ranksBehind(other.node.id)
        }
    }

    private func bestByOrigin(of candidates: [Candidate]) -> Candidate? {
        bestOpen(of: open(among: candidates))
            ?? candidates.max { $0.precedes($1, omissions) }
    }

    /// The candidates that are not closed.
    package func open(among candidates: [Candidate]) -> [Candidate] {
        guard !closed.isEmpty else { return candidates }
        let closed = closedOriginals
        return candidates.filter { !closed.contains($0.original) }
    }

    /// The originals of the closed revisions. A copy may have been closed before it was known as one.
    package var closedOriginals: Set<RevisionID> {
        copies.isEmpty ? closed : Set(closed.map(original))
    }

    /// Of two documents a live one wins, then the higher.
    private func bestOpen(of candidates: [Candidate]) -> Candidate? {
        guard candidates.count > 1 else { return candidates.first }
        // Of live ones the higher wins, even of different documents.
        guard candidates.contains(where: \.node.isDeleted) else {
            return candidates.max { $0.precedes($1, omissions) }
        }
        let winners = documents(among: candidates).compactMap { $0.max { $0.precedes($1, omissions) } }
        let live = winners.filter { !$0.node.isDeleted }
        return (live.isEmpty ? winners : live).max { $0.precedes($1, omissions) }
    }

    /// Candidates that share an origin, directly or through others, are of one document.
    func documents(among candidates: [Candidate]) -> [[Candidate]] {
        if omissions.contains(.origin) { return [candidates] }
        var documents: [(origins: Set<RevisionID>, members: [Candidate])] = []
        for candidate in candidates {
            var mine = (origins: origins(of: candidate), members: [candidate])
            documents = documents.filter { other in
                guard !other.origins.isDisjoint(with: mine.origins) else { return true }
                mine.origins.formUnion(other.origins)
                mine.members += other.members
                return false
            }
            documents.append(mine)
        }
        return documents.map(\.members)
    }

    /// The origins of a candidate's content. What one of its copies was put on top of is another document.
    private func origins(of candidate: Candidate) -> Set<RevisionID> {
        if contains(candidate.original) { return origins(of: candidate.original) }
        let sources = copies[candidate.node.id]?.filter { $0.original == candidate.original } ?? []
        return sources.isEmpty ? origins(of: candidate.node.id) : Set(sources.map { root(of: $0.origin) })
    }

    /// The origins of a revision's content: those of the nearest copy on its line, which the content continues; without
    /// one, that of its line.
    package func origins(of id: RevisionID) -> Set<RevisionID> {
        let line = line(id)
        let sources = copies.isEmpty ? nil : line.lazy.compactMap { copies[$0] }.first
        return sources.map { Set($0.map { root(of: $0.origin) }) } ?? [line.last ?? id]
    }

    /// The origins of everything on a revision's line: that of the line, and those of the lines that were put on top.
    func originsBelow(_ id: RevisionID) -> Set<RevisionID> {
        let line = line(id)
        var origins: Set<RevisionID> = [line.last ?? id]
        for id in line { for source in copies[id] ?? [] { origins.insert(root(of: source.origin)) } }
        return origins
    }

    /// The oldest known revision of a line.
    private func root(of id: RevisionID) -> RevisionID { line(id).last ?? id }

    /// Whether two revisions have the same content: both are deleted, or their bodies are equal.
    package static func saysTheSame(_ one: Node, _ other: Node) -> Bool {
        guard one.isDeleted == other.isDeleted else { return false }
        guard !one.isDeleted else { return true }
        guard let body = one.body, let otherBody = other.body else { return false }
        return body == otherBody || body.canonical == otherBody.canonical
    }
}
