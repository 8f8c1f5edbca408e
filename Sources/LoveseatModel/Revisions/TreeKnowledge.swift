import LoveseatAssertions

/// The tree of a document as one database sends it to another, if it has more than one line.
package struct TreeKnowledge: Hashable, Sendable {
    /// Revisions with their parents, or the nearest ancestors that the sender keeps.
    package var nodes: [RevisionTree.Node] = []
    package var closed: Set<RevisionID> = []
    package var copies: Set<RevisionID> = []
    /// The version vectors of the revisions that have one.
    package var vectors: [RevisionID: VersionVector] = [:]

    package init() {}

    /// All knowledge of a tree, for another database, with the bodies of open candidates; without pending revisions.
    package init(of tree: RevisionTree) {
        let (candidates, rule) = (tree.candidates, tree.rule)
        closed = tree.closed
        if tree.copies.isEmpty, !tree.nodes.values.contains(where: { $0.flags.contains(.pending) }) {
            // All of it, and each revision is its own original.
            vectors = tree.vectors
            let (superseded, current) = (tree.superseded, rule.current(among: candidates)?.id)
            nodes = tree.nodes.values.map { node in
                guard node.body != nil, superseded.contains(node.id) || tree.closed.contains(node.id),
                    node.id != current
                else { return node }
                var node = node
                node.body = nil
                return node
            }
            return
        }
        copies = Set(tree.copies.keys)
        let open =
            tree.open(among: candidates).map(\.node)
            + [rule.current(among: candidates)].compactMap { $0 }
        let bodies = Dictionary(open.map { ($0.id, $0.body) }) { first, _ in first }
        var seen: Set<RevisionID> = []
        let heads = tree.leaves.filter { !$0.flags.contains(.pending) }.map(\.id) + open.map(\.id)
        for head in heads {
            for id in tree.line(head) where seen.insert(id).inserted {
                guard var node = tree.nodes[id] else {
                    impossible("revision \(id) is on a line, and not in the tree")
                    continue
                }
                node.body = bodies[id] ?? nil
                nodes.append(node)
            }
        }
        if !tree.vectors.isEmpty { vectors = tree.vectors.filter { seen.contains($0.key) } }
    }

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

    /// See ``RevisionTree/keepsBranches``.
    package var keepsBranches: Bool { closed.contains(RevisionTree.keptMark) }

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

extension RevisionTree {
    /// See ``TreeKnowledge/init(of:)``.
    package var knowledge: TreeKnowledge { TreeKnowledge(of: self) }

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
}
