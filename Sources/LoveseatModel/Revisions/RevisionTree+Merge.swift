import LoveseatAssertions

/// The tree of a document as one database sends it to another, if it has more than one line.
package struct TreeKnowledge: Hashable, Sendable {
    /// Revisions with their parents, or the nearest ancestors that the sender keeps.
    package var nodes: [RevisionTree.Node] = []
    package var closed: Set<RevisionID> = []
    package var copies: Set<RevisionID> = []

    package init() {}

    /// The text that two databases compare, by its digest, to see whether both know the same (docs/extensions.md): the
    /// leaves, the closed revisions and the copies; nil for a single line.
    package var summary: String? { Self.summary(nodes, closed, copies) }

    fileprivate static func summary(
        _ nodes: some Sequence<RevisionTree.Node>,
        _ closed: Set<RevisionID>,
        _ copies: some Collection<RevisionID>
    ) -> String? {
        let inner = Set(nodes.compactMap(\.parent))
        let leaves = nodes.map(\.id).filter { !inner.contains($0) }
        guard leaves.count > 1 || !closed.isEmpty || !copies.isEmpty else { return nil }
        let parts = [leaves.map(\.text), closed.map(\.text), copies.map(\.text)]
        return parts.map { $0.sorted().joined(separator: ",") }.joined(separator: ";")
    }
}

extension RevisionTree {
    /// The reasons to refuse a received revision or tree.
    package enum InsertRefusal: Error, Hashable, Sendable {
        /// It would create a branch, which is not allowed here.
        case conflict
        /// Its history skips generations or does not descend, or contradicts what is known.
        case badHistory
    }

    /// All knowledge, for another database, with the bodies of open candidates; without pending revisions.
    package var knowledge: TreeKnowledge {
        var knowledge = TreeKnowledge()
        let candidates = candidates
        if copies.isEmpty, !nodes.values.contains(where: { $0.flags.contains(.pending) }) {
            // All of it, and each revision is its own original.
            let (superseded, current) = (superseded, rule.current(among: candidates)?.id)
            knowledge.nodes = nodes.values.map { node in
                guard node.body != nil, superseded.contains(node.id) || closed.contains(node.id),
                    node.id != current
                else { return node }
                var node = node
                node.body = nil
                return node
            }
            knowledge.closed = closed
            return knowledge
        }
        let open =
            open(among: candidates).map(\.node)
            + [rule.current(among: candidates)].compactMap { $0 }
        let bodies = Dictionary(open.map { ($0.id, $0.body) }) { first, _ in first }
        var seen: Set<RevisionID> = []
        let heads = leaves.filter { !$0.flags.contains(.pending) }.map(\.id) + open.map(\.id)
        for head in heads {
            for id in line(head) where seen.insert(id).inserted {
                guard var node = nodes[id] else {
                    impossible("revision \(id) is on a line, and not in the tree")
                    continue
                }
                node.body = bodies[id] ?? nil
                knowledge.nodes.append(node)
            }
        }
        knowledge.closed = closed
        knowledge.copies = Set(copies.keys)
        return knowledge
    }

    /// See ``TreeKnowledge/summary``.
    package var summary: String? {
        isLine
            ? nil
            : TreeKnowledge.summary(nodes.values.filter { !$0.flags.contains(.pending) }, closed, copies.keys)
    }

    /// The same for a single line, which is sent if a revision in it was a leaf somewhere.
    package static func summary(ofLine head: RevisionID) -> String { "\(head.text);;" }

    /// Whether the sender of this knows the same; nil for a single line.
    package func agrees(with knowledge: TreeKnowledge?) -> Bool {
        guard !isLine, let knowledge else { return summary == knowledge?.summary }
        // Often everything is equal, which can be seen without making texts.
        if closed == knowledge.closed, copies.isEmpty, knowledge.copies.isEmpty, pending.isEmpty,
            nodes.count == knowledge.nodes.count,
            knowledge.nodes.allSatisfy({ nodes[$0.id].map(\.parent) == .some($0.parent) })
        {
            return true
        }
        return summary == knowledge.summary
    }

    /// Whether this tree has more knowledge, or other knowledge, than another tree of the same document.
    package func hasMoreKnowledge(than other: RevisionTree) -> Bool {
        guard isTold, closed != other.closed || copies != other.copies || !hasSameLines(as: other) else {
            return false
        }
        return summary != other.summary
    }

    /// Whether another tree has the same revisions with the same parents.
    func hasSameLines(as other: RevisionTree) -> Bool {
        nodes.count == other.nodes.count
            && nodes.allSatisfy { other.nodes[$0.key].map(\.parent) == .some($0.value.parent) }
    }

    /// Adds the knowledge of another database. Commutative, associative and idempotent, except for pruning.
    package mutating func merge(_ other: TreeKnowledge, by policy: TreePolicy) throws(InsertRefusal) {
        noteLeaves(other, policy)
        let recalled = forgotten(among: other.nodes)
        if nodes.isEmpty { nodes.reserveCapacity(other.nodes.count) }
        for node in other.nodes { add(node) }
        // A legitimate tree needs far fewer steps; a forged one must not block the writer.
        var steps = 200_000
        for node in other.nodes {
            guard let parent = node.parent else { continue }
            guard parent.generation < node.id.generation, nodes[parent] != nil else { throw .badHistory }
            try link(node.id, to: parent, &steps)
        }
        for (id, isLeaf) in recalled { try recall(id, isLeaf: isLeaf, &steps) }
        closed.formUnion(other.closed)
        if !copies.isEmpty || !other.copies.isEmpty { addCopies(other.copies) }
    }

    /// The leaves of more than one line.
    var branches: [RevisionID] { isLine ? [] : leaves.map(\.id) }

    /// Keeps sending revisions that turned out to be in the middle of a line, because peers may have got them from here
    /// as leaves.
    mutating func keepTelling(_ branches: [RevisionID]) {
        if branches.isEmpty { return }
        let inner = Set(nodes.values.compactMap(\.parent))
        for id in branches where inner.contains(id) { nodes[id]?.flags.insert(.joint) }
    }

    /// Remembers the leaves of both sides until the next pruning, which must not forget their descendants.
    private mutating func noteLeaves(_ other: TreeKnowledge, _ policy: TreePolicy) {
        if nodes.count + other.nodes.count <= policy.depth { return }
        let inner = Set(other.nodes.compactMap(\.parent))
        formerLeaves.value.formUnion(other.nodes.map(\.id).filter { !inner.contains($0) })
        formerLeaves.value.formUnion(leaves.map(\.id))
    }

    /// Adds a revision without its parent, or the body of one that has none here.
    private mutating func add(_ node: Node) {
        if let index = nodes.index(forKey: node.id) {
            nodes.values[index].flags.formUnion(node.flags.subtracting(.ownAffairs))
            if nodes.values[index].body == nil { nodes.values[index].body = node.body }
        } else {
            nodes[node.id] = Node(
                id: node.id,
                parent: nil,
                flags: node.flags.subtracting(.ownAffairs),
                body: node.body
            )
        }
    }

    /// Records that a revision descends from another. The ancestors of a revision are one line, so each has its place in it. A
    /// contradicting record changes nothing.
    ///
    /// - Returns: whether it descends from it now. A revision between the two may be missing.
    @discardableResult
    mutating func link(
        _ child: RevisionID,
        to ancestor: RevisionID,
        _ steps: inout Int
    ) throws(InsertRefusal) -> Bool {
        var (low, high) = (child, ancestor)
        var inserted: [(child: RevisionID, parent: RevisionID)] = []
        while let parent = nodes[low]?.parent, parent != high {
            steps -= 1
            guard parent.generation != high.generation, steps > 0 else { throw .badHistory }
            if parent.generation > high.generation {
                low = parent
            } else {
                // Between the two; revisions above remain above.
                inserted.append((low, high))
                (low, high) = (high, parent)
            }
        }
        guard let isLinked = nodes[low].map({ $0.parent == high }) else { return false }
        for (child, parent) in inserted { setParent(of: child, to: parent) }
        if !isLinked { setParent(of: low, to: high) }
        return true
    }

    /// Adds a received revision with its ancestors, newest first.
    ///
    /// `origin`: the first revision of the line, if the history does not reach it (docs/extensions.md).
    package mutating func addLine(
        _ history: [RevisionID],
        origin: RevisionID?,
        flags: Flags,
        body: JSONText,
        by policy: TreePolicy
    ) throws(InsertRefusal) {
        guard let id = history.first else { throw .badHistory }
        var line = TreeKnowledge()
        var ancestors = history.dropFirst().filter { !$0.isFiller }
        let kept = policy.keptOfLine
        if ancestors.count > kept {
            // Revisions that would be pruned at once, except the beginning of the line and the place where it meets a
            // known one.
            let rest = ancestors.dropFirst(kept)
            let meeting = rest.first { contains($0) }
            ancestors = Array(ancestors.prefix(kept))
            ancestors += Set([meeting, rest.last].compactMap { $0 }).sorted(by: >)
        }
        let parents = ancestors + (origin.map { $0 < (ancestors.last ?? id) ? [$0] : [] } ?? [])
        for (node, parent) in zip([id] + parents, parents.map(Optional.some) + [nil]) {
            let isHead = node == id
            line.nodes.append(
                Node(id: node, parent: parent, flags: isHead ? flags : [], body: isHead ? body : nil)
            )
        }
        try merge(line, by: policy)
    }

    /// Refuses a history that skips generations. If the sender has pruned, a gap is allowed.
    static func check(_ history: [RevisionID]) throws(InsertRefusal) {
        guard !history.isEmpty else { throw .badHistory }
        for (index, pair) in zip(history, history.dropFirst()).enumerated() {
            let (younger, older) = (pair.0.generation, pair.1.generation)
            let mayBeGap = index >= maximumDepth - 2 && younger > older
            guard younger > 0, younger - 1 == older || mayBeGap else { throw .badHistory }
        }
    }
}

extension RevisionID {
    /// Whether the revision was invented to fill a gap in a history. It never existed.
    package var isFiller: Bool { digest.hasPrefix("faded000") }
}

extension TreeKnowledge {
    package mutating func leaveOutBodies(where isMeant: (RevisionTree.Node) -> Bool) {
        for index in nodes.indices where nodes[index].body != nil && isMeant(nodes[index]) {
            nodes[index].body = nil
        }
    }

    /// The same knowledge without any content, except that of one revision.
    package func keepingBody(of id: RevisionID?) -> TreeKnowledge {
        var knowledge = self
        for index in nodes.indices where nodes[index].id != id { knowledge.nodes[index].body = nil }
        return knowledge
    }
}
