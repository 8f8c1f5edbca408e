/// Adding to a tree: knowledge only grows, and the order in which it comes makes no difference.
extension RevisionTree {
    /// The reasons to refuse a received revision or tree.
    package enum InsertRefusal: Error, Hashable, Sendable {
        /// It would create a branch, which is not allowed here.
        case conflict
        /// Its history skips generations or does not descend, or contradicts what is known.
        case badHistory
    }

    /// Whether another tree has the same revisions with the same parents.
    func hasSameLines(as other: RevisionTree) -> Bool {
        nodes.count == other.nodes.count
            && nodes.allSatisfy { other.nodes[$0.key].map(\.parent) == .some($0.value.parent) }
    }

    /// Adds the knowledge of another database. Commutative, associative and idempotent, except for pruning.
    package mutating func merge(_ other: TreeKnowledge, by policy: TreePolicy) throws(InsertRefusal) {
        guard other.vectors.values.allSatisfy(\.hasValidTimes) else { throw .badHistory }
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
        for (id, vector) in other.vectors { addVector(vector, of: id) }
    }

    /// Adds the knowledge of a peer that has another current revision.
    ///
    /// `pulls`: whether a pull can bring the content of other leaves, too.
    /// - Returns: whether the two agree now. They do not if the peer's revision has no body here: a pull brings it.
    package mutating func merge(
        _ knowledge: TreeKnowledge,
        current theirs: RevisionID,
        remote: Remote,
        pulls: Bool = false,
        by policy: TreePolicy
    ) throws(InsertRefusal) -> Bool {
        let known = self
        try merge(knowledge, by: policy)
        keepTelling(known.branches)
        guard contains(theirs) else { throw .badHistory }
        // The body may be lost everywhere; then both show the best of those that are left.
        let awaitsLeaf = pulls && remotes[remote] != theirs && rule.awaitsLeaf(of: knowledge)
        guard !rule.lacksCurrentBody || current?.id == theirs, !awaitsLeaf else {
            self = known
            return false
        }
        releasePending()
        recordMark(of: remote, at: theirs)
        policy.prune(&self)
        return current?.id == theirs
    }

    /// Adds the content of revisions that are here without it, and nothing else.
    package mutating func addContent(of others: [Node], by policy: TreePolicy) {
        for other in others where other.body != nil && nodes[other.id].map({ $0.body == nil }) == true {
            add(other)
        }
        releasePending()
        policy.prune(&self)
    }

    /// Ends the pending state of revisions that were superseded, closed, or found to supersede all others.
    mutating func releasePending() {
        let pending = pending
        if pending.isEmpty { return }
        let isAlone = rule.candidatesByOriginal.isEmpty
        for node in pending where isAlone || closed.contains(original(node.id)) || !isLeaf(node.id) {
            nodes[node.id]?.flags.remove(.pending)
        }
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
