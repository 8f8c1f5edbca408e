package import LoveseatModel

/// A leaf of a document as peers of CouchDB's wire see it.
package struct DocumentBranch: Sendable {
    /// The leaf.
    package let id: RevisionID
    package let isDeleted: Bool
    /// Nil if it is not kept.
    package let body: JSONText?
    /// The revision and its ancestors, newest first.
    package let history: [RevisionID]
}

/// A document's leaves as peers of CouchDB's wire see them (docs/decisions/0009): the current revision first.
///
/// What lost against it by the rule between Loveseats, and what somebody gave up, is shown with a tombstone on top, so that CouchDB's
/// rule chooses the same revision.
package struct DocumentBranches: Sendable {
    private let tree: RevisionTree?
    private let record: DocumentRecord
    /// The leaves, the winner first, the others as CouchDB ranks them.
    package let leaves: [DocumentBranch]
    /// The tombstones that are shown on top of leaves, by their IDs.
    private let tombstones: [RevisionID: RevisionID]

    package init(of record: DocumentRecord) throws(LoveseatError) {
        self.record = record
        guard record.encodedTree != nil else {
            tree = nil
            tombstones = [:]
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
        if !tree.isLine {
            let closed = tree.closedOriginals
            for leaf in tree.leaves where leaf.id != record.revision && !leaf.flags.contains(.pending) {
                guard !tree.isAncestor(record.revision, of: leaf.id) else { continue }
                let line = tree.line(leaf.id)
                let isShown = tree.keepsBranches && !closed.contains(tree.original(leaf.id))
                if leaf.isDeleted || isShown {
                    others.append(
                        DocumentBranch(id: leaf.id, isDeleted: leaf.isDeleted, body: leaf.body, history: line)
                    )
                } else {
                    let tombstone = StoreWriteTransaction.closingTombstone(over: leaf.id)
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
            others.sort { one, other in
                one.isDeleted == other.isDeleted ? other.id.ranksBehind(one.id) : other.isDeleted
            }
        }
        self.tombstones = tombstones
        leaves =
            [
                DocumentBranch(
                    id: record.revision,
                    isDeleted: record.isDeleted,
                    body: record.body,
                    history: tree.line(record.revision)
                )
            ] + others
    }

    /// The winner.
    package var winner: DocumentBranch { leaves[0] }

    /// The leaves other than the winner that are alive.
    package var conflicts: [DocumentBranch] { leaves.dropFirst().filter { !$0.isDeleted } }

    /// Whether a peer need not send a revision.
    package func contains(_ id: RevisionID) -> Bool {
        guard let tree else { return id == record.revision }
        return tree.contains(id) || tombstones[id] != nil || tree.hasForgotten(id)
    }

    /// Any revision whose content is here.
    package func revision(_ id: RevisionID) -> DocumentBranch? {
        if let leaf = leaves.first(where: { $0.id == id }) { return leaf }
        guard let tree, let node = tree.node(id) else { return nil }
        return DocumentBranch(id: id, isDeleted: node.isDeleted, body: node.body, history: tree.line(id))
    }

    /// The leaves that descend from a revision, or are it.
    package func leaves(above id: RevisionID) -> [DocumentBranch] {
        leaves.filter { $0.history.contains(id) }
    }
}
