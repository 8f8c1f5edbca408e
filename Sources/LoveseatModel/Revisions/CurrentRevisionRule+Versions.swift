/// Candidates that are on other lines of the tree than their successors, which only their versions show (docs/decisions/0015).
extension CurrentRevisionRule {
    private struct Rival {
        let id: RevisionID
        /// The version that names the revision.
        let version: Version
        /// The versions that the revision includes.
        let vector: VersionVector
        /// Whether the revision has a vector of its own.
        let isExplicit: Bool

        /// Whether this revision replaces another one, which then is not a candidate.
        ///
        /// Of two revisions with one version the higher one stays: they are the same state under two names. Of two that include each other
        /// that with the greater version stays (version-vectors.md §12.1, R2).
        func replaces(_ other: Rival) -> Bool {
            if version == other.version { return (isExplicit || other.isExplicit) && id > other.id }
            guard vector.includes(other.version) else { return false }
            return !other.vector.includes(version) || version > other.version
        }
    }

    /// The revisions that another one replaces by its version vector, besides those that have descendants.
    ///
    /// It follows from the vectors, which only grow, and not from the order in which they came. It is empty for a document that keeps all leaves
    /// for peers of CouchDB's wire.
    func outdated(besides superseded: Set<RevisionID>) -> Set<RevisionID> {
        if tree.keepsBranches { return [] }
        let open = tree.nodes.values.filter {
            !$0.flags.contains(.pending) && !superseded.contains($0.id) && tree.copies[$0.id] == nil
        }
        guard open.count > 1 else { return [] }
        let rivals = open.compactMap { node -> Rival? in
            guard let version = tree.versions.version(of: node.id) else { return nil }
            return Rival(
                id: node.id,
                version: version,
                vector: tree.versions.state(of: node.id).vector,
                isExplicit: tree.vectors[node.id] != nil
            )
        }
        var outdated: Set<RevisionID> = []
        for rival in rivals where rivals.contains(where: { $0.id != rival.id && $0.replaces(rival) }) {
            outdated.insert(rival.id)
        }
        return outdated
    }
}

extension TreePolicy {
    /// Closes the leaves that another revision replaces by its version vector: its author knew them. So they are forgotten in time, and peers
    /// with trees are told.
    func closeOutdated(in tree: inout RevisionTree) {
        if tree.vectors.isEmpty { return }
        let rule = tree.rule
        tree.closed.formUnion(rule.outdated(besides: rule.replaced))
    }
}
