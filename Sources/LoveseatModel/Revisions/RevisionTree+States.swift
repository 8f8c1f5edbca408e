/// How states that peers with versions describe are related to what is known here (version-vectors.md §11).
extension RevisionTree {
    /// The relation of a state that a peer announces to what is known here. `older` and `same`: it is here, or part of what is here. The peer is
    /// asked for any other, but a passive side refuses a `conflict`.
    ///
    /// A name alone does not say what the state includes. Where its history may show that it is newer, it counts as newer.
    package func relation(ofAnnounced state: StateHistory) -> StateRelation {
        let relation = relation(ofReceived: state)
        guard relation == .conflict, let name = state.name, let current else { return relation }
        // Of edits and decisions about the same state, the greater version stays everywhere.
        if covers(state, current), wins(state, over: current.id) { return .newer }
        switch (name, version(of: current.id)) {
        case (.version(let version), let own?)
        where own.source == .revisionTree && version.source == .revisionTree:
            return version > own ? .newer : .conflict
        case (.version, let own) where own?.source == .revisionTree || own == nil:
            // It may have this revision behind it.
            return .newer
        case (.revision(let id), let own?) where own.source == .revisionTree && vectors[current.id] != nil:
            return id.encodedVersion.map { $0 > own } == true ? .newer : .conflict
        case (.revision(let id), _) where vectors[current.id] == nil:
            return id.generation > current.id.generation ? .newer : .conflict
        default:
            return .conflict
        }
    }

    /// The relation of a state that a peer proposes to send to what is known here: `newer` is accepted, `conflict` is refused, and otherwise the peer
    /// is told that it is here already.
    ///
    /// `parent`: the state on which the peer made it, or of which it knows that it is the current one here.
    package func relation(ofProposed state: StateHistory, on parent: RevisionName?) -> StateRelation {
        let relation = relation(ofReceived: state)
        guard relation == .conflict, let current else { return relation }
        if let parent, let known = node(named: parent), isSame(known, current) { return .newer }
        if covers(state, current), wins(state, over: current.id) { return .newer }
        return parent == nil && isCreatedAnew(state, over: current) ? .newer : .conflict
    }

    /// The relation of a state with its whole history to what is known here.
    func relation(ofReceived state: StateHistory) -> StateRelation {
        guard let name = state.name else { return .older }
        guard let current else { return .newer }
        if let known = node(named: name) {
            if rule.awaitsBody(of: known) { return .newer }
            return isSame(known, current) ? .same : .older
        }
        return StateRelation(covers: covers(state, current), isCovered: includes(name, in: current.id))
    }

    /// Whether a state includes a revision, or the original of which it is a copy.
    func covers(_ state: StateHistory, _ node: Node) -> Bool {
        isCovered(node.id, by: state) || (!copies.isEmpty && isCovered(original(node.id), by: state))
    }

    /// Whether a state includes a revision, by one of its names.
    func isCovered(_ id: RevisionID, by state: StateHistory) -> Bool {
        if state.revisions.contains(id) { return true }
        let names = [vectors[id]?.current, id.encodedVersion].compactMap { $0 }
        return names.contains { version in
            state.vector.includes(version)
                || (version.source == .revisionTree
                    && state.revisions.contains { $0.encodedVersion == version })
        }
    }

    /// Whether a revision's state includes the one with a name.
    func includes(_ name: RevisionName, in id: RevisionID) -> Bool {
        let (state, line) = (state(of: id), line(id))
        switch name {
        case .version(let version):
            return state.vector.includes(version)
                || (version.source == .revisionTree && line.contains { $0.encodedVersion == version })
        case .revision(let revision):
            return line.contains { $0 == revision || nodes[$0]?.hasForgotten(revision) == true }
                || revision.encodedVersion.map(state.vector.includes) ?? false
        }
    }

    /// Whether two revisions are one state.
    private func isSame(_ id: RevisionID, _ current: Node) -> Bool {
        id == current.id || original(id) == original(current.id)
            || version(of: id).map { $0 == version(of: current.id) } ?? false
    }

    /// Whether a state wins over a revision where no resolver is asked: the greater version does (version-vectors.md §12.1, R1).
    private func wins(_ state: StateHistory, over id: RevisionID) -> Bool {
        guard let current = state.vector.current else { return false }
        return version(of: id).map { $0 < current } ?? true
    }

    /// Whether a state is a document that was created by somebody who did not know the deletion here (version-vectors.md §11.5, step 4).
    func isCreatedAnew(_ state: StateHistory, over current: Node) -> Bool {
        guard current.isDeleted else { return false }
        let own = self.state(of: current.id)
        let sources = Set(own.vector.versions.map(\.source))
        let revisions = Set(line(current.id))
        return !state.vector.versions.contains { sources.contains($0.source) }
            && !state.revisions.contains { revisions.contains($0) }
            && !revisions.contains { id in
                id.encodedVersion.map { state.vector.versions.contains($0) } ?? false
            }
    }

    /// The state of a revision in the form that Couchbase Lite takes for a newer one than its own (version-vectors.md, corrections 10 and 12): the
    /// revisions behind a vector begin with that of the peer, if it has one.
    ///
    /// `name`: the name of the state that the peer has; nil if it has none.
    package func state(of id: RevisionID, toPeerWith name: RevisionName?) -> StateHistory {
        let state = state(of: id)
        switch name {
        case .revision(let known):
            guard state.vector.isEmpty else { return StateHistory(state.vector, revisions: [known]) }
            // Couchbase Lite ends the history with the revision that the peer named.
            let place = state.revisions.firstIndex(of: known) ?? state.revisions.count - 1
            return StateHistory(state.vector, revisions: Array(state.revisions[...place]))
        case .version(let version):
            guard !state.vector.isEmpty, let known = node(named: .version(version)) else { return state }
            let theirs = self.state(of: known)
            return StateHistory(state.vector, revisions: theirs.vector.isEmpty ? [] : theirs.revisions)
        case nil:
            return state.vector.isEmpty ? state : StateHistory(state.vector)
        }
    }
}
