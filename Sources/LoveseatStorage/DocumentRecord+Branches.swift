package import LoveseatModel

/// A leaf of a document as peers of CouchDB's wire see it.
package struct DocumentBranch: Sendable {
    /// The leaf.
    package let id: RevisionID
    package let isDeleted: Bool
    /// The revision's body; nil if it is not kept. A leaf always has one.
    package let body: JSONText?
    /// The revision and its ancestors, newest first.
    package let history: [RevisionID]
}

/// A document's leaves as peers of CouchDB's wire see them (docs/decisions/0009): the current revision first. Among deletions only, the
/// first one is that which CouchDB's rule chooses.
///
/// Leaves that were given up, and leaves that lost against another one of the same document by the rule between Loveseats, are shown with a
/// tombstone on top, so that CouchDB's rule chooses the same revision. A copy of the current revision is shown as it is. A live leaf of another
/// document is not shown as long as it has only lost. Every leaf can be served: a deletion of which only the ID is here has no content, and a
/// live leaf whose content is not here is left out.
package struct DocumentBranches: Sendable {
    private let tree: RevisionTree?
    private let record: DocumentRecord
    /// The leaves, the winner first, the others as CouchDB ranks them.
    package private(set) var leaves: [DocumentBranch]
    /// The tombstones that are shown on top of leaves, by their IDs.
    private let tombstones: [RevisionID: RevisionID]
    /// The leaves whose content has to come from other peers, and the lines that are not shown: a peer that has one of their revisions as a
    /// leaf has that document, too.
    private let incomplete: Set<RevisionID>
    /// The revisions that a client may know of, and those of them whose content it may not have; nil without restrictions.
    private var visible: (known: Set<RevisionID>, withheld: Set<RevisionID>)?
    /// The number of revisions of a line that are listed (`_revs_limit`). Some more may be here, such as the first one of each line.
    package var listed = Int.max
    /// The places of the leaves; empty if there is one.
    private var indices: [RevisionID: Int] = [:]

    package init(of record: DocumentRecord) throws(LoveseatError) {
        self.record = record
        guard record.encodedTree != nil else {
            tree = nil
            tombstones = [:]
            incomplete = []
            leaves = [
                DocumentBranch(
                    id: record.revision,
                    isDeleted: record.isDeleted,
                    body: record.body,
                    history: [record.revision]
                )
            ]
            return
        }
        let tree = try record.tree()
        self.tree = tree
        var tombstones: [RevisionID: RevisionID] = [:]
        var others: [DocumentBranch] = []
        var incomplete: Set<RevisionID> = []
        if !tree.isLine {
            let (closed, undecided) = (tree.closed, tree.rule.undecidedLeaves)
            let current = tree.original(record.revision)
            incomplete = tree.rule.lines(ofUndecided: undecided)
            for leaf in tree.leaves
            where leaf.id != record.revision && !leaf.flags.contains(.pending) && !undecided.contains(leaf.id)
            {
                guard !tree.isAncestor(record.revision, of: leaf.id) else {
                    if leaf.body == nil, tree.rule.awaitsBody(of: leaf.id) { incomplete.insert(leaf.id) }
                    continue
                }
                let line = tree.line(leaf.id)
                let original = tree.original(leaf.id)
                // A tombstone over a copy, or over its original, replaces both: the document would be deleted.
                let isShown = original == current || tree.keepsBranches && !closed.contains(original)
                if leaf.isDeleted || isShown {
                    let known = leaf.body ?? (original == current ? record.body : nil)
                    if known == nil { incomplete.insert(leaf.id) }
                    guard let body = known ?? (leaf.isDeleted ? .emptyObject : nil) else { continue }
                    others.append(
                        DocumentBranch(id: leaf.id, isDeleted: leaf.isDeleted, body: body, history: line)
                    )
                } else {
                    let tombstone = BodyDigest.closingTombstone(over: leaf.id)
                    tombstones[tombstone] = leaf.id
                    others.append(
                        DocumentBranch(
                            id: tombstone,
                            isDeleted: true,
                            body: .emptyObject,
                            history: [tombstone] + line
                        )
                    )
                }
            }
            others = Self.ranked(others)
        } else if tree.rule.lacksCurrentBody {
            incomplete.formUnion(tree.leaves.map(\.id))
        }
        (self.tombstones, self.incomplete) = (tombstones, incomplete)
        leaves =
            [
                DocumentBranch(
                    id: record.revision,
                    isDeleted: record.isDeleted,
                    body: record.body,
                    history: tree.line(record.revision)
                )
            ] + others
        // The rule between Loveseats chooses one of several deletions; CouchDB's peers expect the highest.
        if leaves.count > 1, leaves.allSatisfy(\.isDeleted) { leaves = Self.ranked(leaves) }
        noteIndices()
    }

    /// Live leaves before deleted ones, as CouchDB ranks them.
    private static func ranked(_ branches: [DocumentBranch]) -> [DocumentBranch] {
        let ranks = branches.map(\.id.rank)
        let order = branches.indices.sorted { one, other in
            branches[one].isDeleted == branches[other].isDeleted
                ? ranks[other] < ranks[one] : branches[other].isDeleted
        }
        return order.map { branches[$0] }
    }

    private mutating func noteIndices() {
        if leaves.count <= 1 { return }
        indices = Dictionary(leaves.enumerated().map { ($1.id, $0) }) { first, _ in first }
    }

    /// The winner.
    package var winner: DocumentBranch { leaves[0] }

    /// The leaves other than the winner that are alive.
    package var conflicts: [DocumentBranch] { leaves.dropFirst().filter { !$0.isDeleted } }

    /// Returns the branches for a client that may read the current revision, but perhaps not everything else. A deletion with content of its own is
    /// decided on by the revision that it deletes, as long as that is here.
    package func restricted(to isAllowed: (DocumentBranch) -> Bool) -> DocumentBranches {
        guard let tree else { return self }
        var restricted = self
        // The winner of several deletions need not be the one by which the client may read the document.
        restricted.leaves = leaves.filter { leaf in
            if leaf.id == record.revision { return true }
            let hasContent = leaf.isDeleted && leaf.body != .emptyObject
            let deleted =
                hasContent ? leaf.history.dropFirst().first { tree.node($0)?.isDeleted == false } : nil
            let decides = deleted.flatMap { content($0, in: tree) }.flatMap { $0.body == nil ? nil : $0 }
            return isAllowed(decides ?? leaf)
        }
        let known = Set(restricted.leaves.flatMap(\.history))
        let shown = Set(restricted.leaves.map(\.id))
        let withheld = known.subtracting(shown).filter { id in
            guard let branch = content(id, in: tree), branch.body != nil else { return false }
            return !isAllowed(branch)
        }
        restricted.visible = (known, Set(withheld))
        restricted.noteIndices()
        return restricted
    }

    private func content(_ id: RevisionID, in tree: RevisionTree) -> DocumentBranch? {
        tree.node(id).map {
            DocumentBranch(id: id, isDeleted: $0.isDeleted, body: $0.body, history: tree.line(id))
        }
    }

    /// Whether a peer need not send a revision.
    package func contains(_ id: RevisionID) -> Bool {
        if incomplete.contains(id) { return false }
        if let visible { return visible.known.contains(id) }
        guard let tree else { return id == record.revision }
        // A peer may know more about a leaf that has only lost: that it was given up.
        if let leaf = tombstones[id] { return tree.closed.contains(tree.original(leaf)) }
        return tree.contains(id) || tree.hasForgotten(id)
    }

    /// A revision whose content is here, leaf or not.
    package func revision(_ id: RevisionID) -> DocumentBranch? {
        if let leaf = leaf(id) { return leaf }
        guard let tree, visible?.known.contains(id) ?? true, visible?.withheld.contains(id) != true else {
            return nil
        }
        return content(id, in: tree)
    }

    /// Whether a revision's content is here, and whether it is a deletion; nil if it is not here, or not for the client. Finds neither its
    /// ancestors nor its content, so that a long line takes no longer than a short one.
    package func state(of id: RevisionID) -> (hasContent: Bool, isDeleted: Bool)? {
        if let leaf = leaf(id) { return (leaf.body != nil, leaf.isDeleted) }
        guard let tree, visible?.known.contains(id) ?? true, visible?.withheld.contains(id) != true else {
            return nil
        }
        return tree.node(id).map { ($0.body != nil, $0.isDeleted) }
    }

    /// The leaves that descend from a revision, or the revision itself if it is one.
    package func leaves(above id: RevisionID) -> [DocumentBranch] {
        if let leaf = leaf(id) { return [leaf] }
        return leaves.filter { $0.history.contains(id) }
    }

    /// A leaf by its ID.
    private func leaf(_ id: RevisionID) -> DocumentBranch? {
        guard leaves.count > 1 else { return leaves.first.flatMap { $0.id == id ? $0 : nil } }
        return indices[id].map { leaves[$0] }
    }
}
