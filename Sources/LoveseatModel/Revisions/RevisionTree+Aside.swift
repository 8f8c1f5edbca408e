/// Revisions deep in lines that are kept outside of the tree, and put back when a whole history is requested. So a document that is edited
/// often does not read and write them with every edit (docs/schema.md, `ancestors`).
extension RevisionTree {
    /// A revision that was put aside.
    package struct AsideRevision: Hashable, Sendable {
        package let id: RevisionID
        /// The descendant that was its child then.
        package let child: RevisionID
        package let flags: Flags

        package init(id: RevisionID, child: RevisionID, flags: Flags) {
            (self.id, self.child, self.flags) = (id, child, flags)
        }
    }

    /// The revisions that pruning has put aside.
    package var putAside: [AsideRevision] { aside.value }

    /// Puts revisions back, the highest first. A revision that does not fit any more stays away: no leaf is added, and every revision keeps
    /// its descendants.
    package mutating func putBack(_ revisions: [AsideRevision]) {
        var steps = 200_000
        for revision in revisions {
            guard revision.id.generation < revision.child.generation, nodes[revision.child] != nil else {
                continue
            }
            let isNew = nodes[revision.id] == nil
            if isNew {
                let known = revision.flags.subtracting([.verified, .hasBlobs, .pending])
                nodes[revision.id] = Node(id: revision.id, parent: nil, flags: known, body: nil)
            }
            // Another ancestor of that generation may have come since, or the steps may be used up.
            let fits = (try? link(revision.child, to: revision.id, &steps)) ?? false
            if !fits, isNew { nodes[revision.id] = nil }
        }
    }

    /// Puts the content of a replaced revision back.
    package mutating func putBack(_ body: JSONText, of id: RevisionID) {
        if nodes[id]?.body == nil { nodes[id]?.body = body }
    }
}
