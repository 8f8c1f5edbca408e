/// A state that a peer with versions has, and that is known here or part of what is here (version-vectors.md §11.1). Its content is not needed.
package struct StateAnnouncement: Sendable {
    /// The vector, as far as it was announced.
    package var state: StateHistory
    /// The number under which marks for the peer are kept; nil on the passive side, which keeps none.
    package var remote: RevisionTree.Remote?
    /// The peer has taken a newer state from here since it announced this one.
    package var isOutdated = false

    package init(_ state: StateHistory, remote: RevisionTree.Remote?) {
        (self.state, self.remote) = (state, remote)
    }

    /// Records what the announcement says.
    ///
    /// The vector of a known revision grows by what was announced. If the current revision does not include the announced one, peers with versions
    /// would refuse it, because only this tree says that it has won. So its vector is made to include it, or the greater version wins. A peer whose
    /// state includes the current one in turn would refuse that too, and gets a new version.
    ///
    /// - Throws: Errors of `resolution`; the tree is then as before.
    package func record(in tree: inout RevisionTree, by resolution: inout StateResolution) throws {
        let before = tree
        do {
            try note(in: &tree, by: &resolution)
            tree.releasePending()
            resolution.policy.prune(&tree)
        } catch {
            tree = before
            throw error
        }
    }

    func note(in tree: inout RevisionTree, by resolution: inout StateResolution) throws {
        // An empty state says nothing.
        guard let name = state.name else { return }
        if let known = tree.versions.node(named: name) {
            try note(name, known, in: &tree, by: &resolution)
        } else {
            noteOlder(name, in: &tree)
        }
        try resolution.outdoKnown(in: &tree)
        if !isOutdated, tree.versions.losesTo(state) { try resolution.outdo(state.vector, in: &tree) }
    }

    private func note(
        _ name: RevisionName,
        _ known: RevisionID,
        in tree: inout RevisionTree,
        by resolution: inout StateResolution
    ) throws {
        let encoded = known.encodedVersion.map { VersionVector($0) } ?? VersionVector()
        let told = state.vector.isEmpty && name == .revision(known) ? encoded : state.vector
        // To a revision without a vector, the version that stands for it says nothing. One that has a vector was made by two people, of whom one gave
        // it no version.
        if told.hasValidTimes, told != encoded || tree.vectors[known] != nil {
            tree.addVector(told, of: known)
        }
        if let remote, !isOutdated { tree.remotes[remote] = known }
        guard let current = tree.current, current.id != known, !tree.versions.includes(name, in: current.id)
        else {
            return
        }
        let rivals = tree.candidates.filter { candidate in
            candidate.node.id != current.id
                && (candidate.node.id == known || tree.isAncestor(known, of: candidate.node.id))
        }
        let open = tree.open(among: rivals)
        let greatest = (open.isEmpty ? rivals : open).map(\.node.id).max { one, other in
            StateResolution.isGreater(other, than: one, in: tree)
        }
        // The current revision is on the line of the announced one.
        guard let greatest else { return }
        let verdict: ConflictVerdict = open.isEmpty && !tree.keepsBranches ? .local : .byRule
        try resolution.decide(between: current.id, and: greatest, verdict, in: &tree)
    }

    /// A peer whose mark includes the state has fallen back to it, or the state is late. It is offered the current revision once more.
    private func noteOlder(_ name: RevisionName, in tree: inout RevisionTree) {
        guard let remote, !isOutdated, let mark = tree.remotes[remote], tree.versions.includes(name, in: mark)
        else {
            return
        }
        tree.forgetRemote(remote)
    }
}
