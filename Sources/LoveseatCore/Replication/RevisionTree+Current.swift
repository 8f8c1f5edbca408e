package import LoveseatModel

extension RevisionTree {
    /// Whether a revision is the current one, or has the same content without being an ancestor of it.
    package func isCurrent(_ id: RevisionID) -> Bool {
        guard let current else { return false }
        if id == current.id || original(id) == original(current.id) { return true }
        guard let node = node(id) else { return false }
        return !isAncestor(id, of: current.id) && Self.saysTheSame(node, current)
    }
}
