/// The deletions among candidates on which an edit may have been made of which only copies are known: to create the document again
/// (docs/decisions/0001).
struct ContinuedDeletions {
    private let tree: RevisionTree
    /// The edits of which only copies are known.
    private let edits: Set<RevisionID>
    /// The copies of each deletion; empty if there is no such edit.
    private let copies: [RevisionID: [RevisionID]]

    init(among candidates: [CurrentRevisionRule.Candidate], in tree: RevisionTree) {
        self.tree = tree
        edits = Set(
            candidates.filter { !$0.node.isDeleted && !tree.contains($0.original) }.map(\.original)
        )
        let deletions = edits.isEmpty ? [] : Set(candidates.filter(\.node.isDeleted).map(\.original))
        copies =
            deletions.isEmpty
            ? [:]
            : Dictionary(
                grouping: tree.copies.keys.filter { deletions.contains(tree.original($0)) },
                by: tree.original
            )
    }

    /// The candidates of one document without the deletions on which an edit of it may have been made.
    ///
    /// Not counted is an edit that a hub's line has below the deletion: a peer that knew only the edit's copies would not have put the deletion
    /// there.
    func standing(among document: [CurrentRevisionRule.Candidate]) -> [CurrentRevisionRule.Candidate] {
        if edits.isEmpty { return document }
        let latest = document.map(\.original).filter(edits.contains).sorted { $0.generation > $1.generation }
        return document.filter { candidate in
            guard candidate.node.isDeleted, let first = latest.first,
                first.generation > candidate.original.generation
            else { return true }
            let below = edits(below: candidate.original)
            let other = latest.first { !below.contains($0) }
            return other.map { $0.generation <= candidate.original.generation } ?? true
        }
    }

    /// The edits that have a copy below a deletion or a copy of it.
    private func edits(below deletion: RevisionID) -> Set<RevisionID> {
        var below: Set<RevisionID> = []
        var seen: Set<RevisionID> = []
        for id in (copies[deletion] ?? []) + [deletion] {
            var next = tree.node(id)?.parent
            while let id = next, seen.insert(id).inserted {
                let original = tree.original(id)
                if edits.contains(original) { below.insert(original) }
                next = tree.node(id)?.parent
            }
        }
        return below
    }
}
