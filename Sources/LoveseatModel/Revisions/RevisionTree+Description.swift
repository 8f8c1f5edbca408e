/// The look of a tree, and the invariants that it violates, for the simulator and for failed tests.
private struct TreeReport {
    let tree: RevisionTree

    /// A line for each revision, the highest first, and the closed ones.
    var description: String {
        let current = tree.current?.id
        let candidates = Set(tree.candidates.map(\.node.id))
        let lines = tree.nodes.values.sorted { $0.id > $1.id }.map { node in
            var words = [node.id.text, "over", node.parent?.text ?? "nothing"]
            if node.isDeleted { words.append("deleted") }
            if node.body == nil { words.append("without body") }
            if node.flags.contains(.pending) { words.append("pending") }
            if let vector = tree.vectors[node.id] { words.append("with \(vector)") }
            if tree.copies[node.id] != nil { words.append("a copy of \(tree.original(node.id))") }
            words.append("of \(tree.origin(of: node.id).text.prefix(8))")
            if candidates.contains(node.id) { words.append("candidate") }
            if tree.closed.contains(tree.original(node.id)) { words.append("closed") }
            if node.id == current { words.append("current") }
            return words.joined(separator: " ")
        }
        let marks = tree.remotes.sorted { $0.key < $1.key }.map { "remote \($0.key) has \($0.value)" }
        return (lines + ["closed: \(tree.closed.map(\.text).sorted().joined(separator: ", "))"] + marks)
            .joined(separator: "\n")
    }

    /// Returns a sentence for each invariant that the tree violates.
    var problems: [String] {
        var problems: [String] = []
        for node in tree.nodes.values.sorted(by: { $0.id > $1.id }) {
            if let parent = node.parent, tree.nodes[parent] == nil || parent.generation >= node.id.generation
            {
                problems.append(
                    "revision \(node.id) has the parent \(parent), which is not here or not older"
                )
            }
            if node.flags.contains(.pending), !tree.isLeaf(node.id) || node.body == nil {
                problems.append("revision \(node.id) waits for a resolver, but is not a leaf or has no body")
            }
        }
        for (remote, id) in tree.remotes where tree.nodes[id] == nil {
            problems.append("remote \(remote) is marked to have \(id), which is not here")
        }
        for id in tree.vectors.keys.sorted(by: >) where tree.nodes[id] == nil {
            problems.append("revision \(id) has a version vector, and is not here")
        }
        for copy in tree.copies.keys.sorted(by: >) where tree.nodes[copy] == nil || CopyName(copy) == nil {
            problems.append(
                "revision \(copy) is written down as a copy, and is not here or says nothing of it"
            )
        }
        return problems
    }
}

extension RevisionTree: CustomStringConvertible {
    /// A line for each revision, the highest first, and the closed ones.
    package var description: String { TreeReport(tree: self).description }

    /// Returns a sentence for each invariant that the tree violates.
    package var problems: [String] { TreeReport(tree: self).problems }
}
