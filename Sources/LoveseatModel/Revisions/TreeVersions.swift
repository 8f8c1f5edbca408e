/// The names and states that peers with versions have for the revisions of a tree, and how states that they describe are related to what is known
/// here (version-vectors.md §11, docs/decisions/0015).
///
/// A revision without a vector has an implicit one: the version that stands for its ID (``RevisionID/encodedVersion``), with the vector of its
/// nearest ancestor that has one.
package struct TreeVersions {
    package let tree: RevisionTree

    init(_ tree: RevisionTree) { self.tree = tree }

    // MARK: Names

    /// The version that names a revision; nil if a revision without a vector has an ID that no version stands for.
    package func version(of id: RevisionID) -> Version? { vector(at: id)?.current ?? id.encodedVersion }

    /// The vector that a revision has, or has as a copy: content that was put on a hub's line is the same state as before.
    private func vector(at id: RevisionID) -> VersionVector? {
        if let vector = tree.vectors[id] { return vector }
        // Most trees have no copies.
        guard tree.copies[id] != nil, !tree.vectors.isEmpty else { return nil }
        let original = tree.line(tree.original(id))
        let vector = state(of: original, by: { tree.vectors[$0] }).vector
        // Of the versions that stand for revisions a vector has one only: it would hide the hub's.
        return vector.current.map { $0.source == .revisionTree } ?? true ? nil : vector
    }

    /// The state of the document in a revision, as a peer with versions is told of it.
    ///
    /// Behind a vector stand the ancestors from before the first vector, the newest first. A revision of a document that never had a version is
    /// named by its ID. A revision without a vector on top of one with a vector was made by a peer with trees. It gets the version that stands
    /// for its ID on top of that vector, because to name it by its ID would be a conflict for every peer that has the other one.
    package func state(of id: RevisionID) -> StateHistory {
        let line = tree.line(id)
        let state = state(of: line, by: vector(at:))
        guard tree.copies[id] != nil, tree.vectors[id] == nil, vector(at: id) != nil, line.count > 1,
            let hub = version(of: line[1])
        else { return state }
        // The copy has won over the hub's revision.
        return StateHistory(state.vector.including(VersionVector(hub)), revisions: state.revisions)
    }

    /// The state of the first revision of a line.
    private func state(of line: [RevisionID], by vector: (RevisionID) -> VersionVector?) -> StateHistory {
        let vectors =
            tree.vectors.isEmpty
            ? []
            : line.indices.compactMap { place in
                vector(line[place]).map { (place: place, vector: $0) }
            }
        let copies = vectorsOfCopies(below: line)
        guard let id = line.first, let first = vectors.first?.vector ?? copies.first else {
            return StateHistory(VersionVector(), revisions: line)
        }
        // An ancestor's vector may have grown since the edit was made, and so may the same state under another ID.
        let same = tree.vectors.values.filter { $0.current == first.current }
        let known = (vectors.dropFirst().map(\.vector) + same + copies).reduce(first) { $0.including($1) }
        let older = Array(line[((vectors.last?.place ?? 0) + 1)...])
        if vectors.first?.place == 0 { return StateHistory(known, revisions: older) }
        guard let version = id.encodedVersion,
            let edited = try? known.edited(by: version.source, at: version.time)
        else {
            // The ID has no version, or a later one of these stands in the vector already.
            return StateHistory(VersionVector(), revisions: line)
        }
        return StateHistory(edited, revisions: older)
    }

    /// The vectors of copies of a line's ancestors. A copy is the same state as its original, which the first revision of the line replaces.
    private func vectorsOfCopies(below line: [RevisionID]) -> [VersionVector] {
        // Most trees have no copies.
        if tree.copies.isEmpty || tree.vectors.isEmpty { return [] }
        let copies = tree.copies.keys.filter { tree.vectors[$0] != nil }
        if copies.isEmpty { return [] }
        let ancestors = Set(line.dropFirst())
        return copies.filter { !line.contains($0) && ancestors.contains(tree.original($0)) }.sorted()
            .compactMap { tree.vectors[$0] }
    }

    /// The state of a revision under a name that peers with versions can compare: a version, where one stands for the revision ID.
    package func announcedState(of id: RevisionID) -> StateHistory {
        let state = state(of: id)
        return state.vector.isEmpty
            ? id.encodedVersion.map { StateHistory(VersionVector($0)) } ?? state : state
    }

    /// The vector on which an edit of a revision is made. It is empty for the first revision, which has no parent.
    ///
    /// Over a revision without any vector this is the version that stands for the revision, so that the edit includes it for every peer.
    package func vectorToEdit(_ parent: RevisionID?) -> VersionVector {
        guard let parent else { return VersionVector() }
        let vector = state(of: parent).vector
        return vector.isEmpty ? parent.encodedVersion.map { VersionVector($0) } ?? vector : vector
    }

    /// The revision that a peer means by a name: one that has this version or this ID, or for which one of the two stands. Of several revisions
    /// with one version, which are the same state, the highest.
    package func node(named name: RevisionName) -> RevisionID? {
        let version: Version?
        switch name {
        case .version(let named): version = named
        case .revision(let id):
            if tree.contains(id) { return id }
            version = id.encodedVersion
        }
        guard let version else { return nil }
        if let id = tree.vectors.filter({ $0.value.current == version }).keys.max() { return id }
        // A revision ID that stands for another one of the same generation and the same first digits is not its name.
        guard case .version = name, version.source == .revisionTree else { return nil }
        return tree.nodes.keys.filter { $0.isEncoded(as: version) }.max()
    }

    // MARK: States of peers

    /// The relation of a state that a peer announces to what is known here. `older` and `same`: it is here, or part of what is here. The peer is
    /// asked for any other, but a passive side refuses a `conflict`.
    ///
    /// A name alone does not say what the state includes. Where its history may show that it is newer, it counts as newer.
    package func relation(ofAnnounced state: StateHistory) -> StateRelation {
        let relation = relation(ofReceived: state)
        guard relation == .conflict, let name = state.name, let current = tree.current else {
            return relation
        }
        // Of edits and decisions about the same state, the greater version stays everywhere.
        if covers(state, current), wins(state, over: current.id) { return .newer }
        switch (name, version(of: current.id)) {
        case (.version(let version), let own?)
        where own.source == .revisionTree && version.source == .revisionTree:
            return version > own ? .newer : .conflict
        case (.version, let own) where own?.source == .revisionTree || own == nil:
            // It may have this revision behind it.
            return .newer
        case (.revision(let id), let own?)
        where own.source == .revisionTree && tree.vectors[current.id] != nil:
            return id.encodedVersion.map { $0 > own } == true ? .newer : .conflict
        case (.revision(let id), _) where tree.vectors[current.id] == nil:
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
        // A name alone does not say what the state includes. The revision will.
        if reverses(state, on: parent, isWhole: state.vector.versions.count > 1) { return .newer }
        let relation = relation(ofReceived: state)
        guard relation == .conflict, let current = tree.current else { return relation }
        if let parent, let known = node(named: parent), isSame(known, current) { return .newer }
        if covers(state, current), wins(state, over: current.id) { return .newer }
        return parent == nil && isCreatedAnew(state, over: current) ? .newer : .conflict
    }

    /// Whether a peer that knows the current revision has decided for a state that had lost here: both include each other, and the peer has seen both.
    func reverses(_ state: StateHistory, on parent: RevisionName?, isWhole: Bool = true) -> Bool {
        guard let (known, current) = decision(for: state, on: parent), !replaces(current.id, known) else {
            return false
        }
        return !isWhole || covers(StateHistory(state.vector, revisions: []), current)
    }

    /// Whether a peer that knows the current revision has decided for a state of which that was made. Couchbase Lite does, if the lists of revisions behind
    /// the two differ (version-vectors.md, correction 10). It would undo an edit, and counts for nothing: a newer version would have the same end.
    package func insists(_ state: StateHistory, on parent: RevisionName?) -> Bool {
        decision(for: state, on: parent).map { replaces($0.current.id, $0.known) } ?? false
    }

    /// The state for which a peer has decided that knows the current revision, and that one; nil if it does not know it, or has the same.
    private func decision(for state: StateHistory, on parent: RevisionName?) -> (
        known: RevisionID, current: RevisionTree.Node
    )? {
        guard let parent, let name = state.name, let current = tree.current, let known = node(named: name),
            let decided = node(named: parent), isSame(decided, current), !isSame(known, current)
        else { return nil }
        return (known, current)
    }

    /// Whether a revision was made of another one, in this tree or under another ID of the same version.
    private func replaces(_ id: RevisionID, _ other: RevisionID) -> Bool {
        let (version, otherVersion, original) = (version(of: id), version(of: other), tree.original(other))
        let twins = tree.vectors.filter { $0.value.current == version }.map(\.key)
        return (twins + [id]).contains { twin in
            tree.line(twin).dropFirst().contains { ancestor in
                tree.original(ancestor) == original
                    || otherVersion.map { $0 == self.version(of: ancestor) } ?? false
            }
        }
    }

    /// The relation of a state with its whole history to what is known here.
    package func relation(ofReceived state: StateHistory) -> StateRelation {
        guard let name = state.name else { return .older }
        guard let current = tree.current else { return .newer }
        if let known = node(named: name) {
            if tree.rule.awaitsBody(of: known) { return .newer }
            return isSame(known, current) ? .same : .older
        }
        return StateRelation(covers: covers(state, current), isCovered: includes(name, in: current.id))
    }

    /// Whether a state includes a revision, or the original of which it is a copy.
    func covers(_ state: StateHistory, _ node: RevisionTree.Node) -> Bool {
        isCovered(node.id, by: state)
            || (!tree.copies.isEmpty && isCovered(tree.original(node.id), by: state))
    }

    /// Whether a state includes a revision, by one of its names.
    func isCovered(_ id: RevisionID, by state: StateHistory) -> Bool {
        if state.revisions.contains(id) { return true }
        let names = [tree.vectors[id]?.current, id.encodedVersion].compactMap { $0 }
        return names.contains { version in
            state.vector.includes(version)
                || (version.source == .revisionTree
                    && state.revisions.contains { $0.isEncoded(as: version) })
        }
    }

    /// Whether a revision's state includes the one with a name.
    package func includes(_ name: RevisionName, in id: RevisionID) -> Bool {
        let (state, line) = (state(of: id), tree.line(id))
        switch name {
        case .version(let version):
            return state.vector.includes(version)
                || (version.source == .revisionTree && line.contains { $0.isEncoded(as: version) })
        case .revision(let revision):
            return line.contains { $0 == revision || tree.nodes[$0]?.hasForgotten(revision) == true }
                || revision.encodedVersion.map(state.vector.includes) ?? false
        }
    }

    /// Whether a peer with a state that is part of what is here would not take the current revision for newer, because it compares vectors only:
    /// then this tree alone knows which of the two has won. Of versions that stand for revisions, Couchbase Lite takes the greater one for newer.
    package func losesTo(_ state: StateHistory) -> Bool {
        guard let name = state.name, !state.vector.isEmpty, let current = tree.current, tree.pending.isEmpty
        else { return false }
        if let known = node(named: name) {
            if isSame(known, current) || tree.rule.awaitsBody(of: known) { return false }
        } else if !includes(name, in: current.id) {
            return false
        }
        switch announcedState(of: current.id).vector.relation(to: state.vector) {
        case .same, .newer: return false
        case .older, .conflict: return true
        }
    }

    /// The vectors of states that have lost here and include the current one by their versions, though they were not made of it. A peer that has one of
    /// them takes it for newer.
    package var vectorsOverCurrent: [VersionVector] {
        guard !tree.vectors.isEmpty, tree.pending.isEmpty, let current = tree.current,
            let version = announcedState(of: current.id).vector.current
        else { return [] }
        let over = tree.vectors.filter { $0.value.current != version && $0.value.covers(version) }
        if over.isEmpty { return [] }
        let line = Set(tree.line(current.id))
        return over.filter { id, _ in
            !line.contains(id) && !isSame(id, current) && !replaces(id, current.id)
        }.map(\.value)
    }

    /// Whether two revisions are one state.
    func isSame(_ id: RevisionID, _ current: RevisionTree.Node) -> Bool {
        id == current.id || tree.original(id) == tree.original(current.id)
            || version(of: id).map { $0 == version(of: current.id) } ?? false
    }

    /// The place of a revision among those that are in conflict with it.
    func rank(of id: RevisionID) -> StateRank { StateRank(state(of: id).vector.current, id) }

    /// Whether a state wins over a revision where no resolver is asked: the greater version does (version-vectors.md §12.1, R1).
    private func wins(_ state: StateHistory, over id: RevisionID) -> Bool {
        guard let current = state.vector.current else { return false }
        return version(of: id).map { $0 < current } ?? true
    }

    /// The revisions behind the vector of a peer that has a state. A peer whose vector has a version that stands for a revision of this line was told of
    /// that by this version, and has no list.
    private func list(behind state: StateHistory, of id: RevisionID) -> [RevisionID] {
        let wasTold = state.vector.time(of: .revisionTree).map { time in
            tree.line(id).contains { $0.encodedVersion?.time == time }
        }
        return state.vector.isEmpty || wasTold == true ? [] : state.revisions
    }

    /// Whether a state is a document that was created by somebody who did not know the deletion here (version-vectors.md §11.5, step 4).
    func isCreatedAnew(_ state: StateHistory, over current: RevisionTree.Node) -> Bool {
        guard current.isDeleted else { return false }
        let own = self.state(of: current.id)
        let sources = Set(own.vector.versions.map(\.source))
        let revisions = Set(tree.line(current.id))
        return !state.vector.versions.contains { sources.contains($0.source) }
            && !state.revisions.contains { revisions.contains($0) }
            && !revisions.contains { id in
                id.encodedVersion.map { state.vector.versions.contains($0) } ?? false
            }
    }

    /// The state of a revision in the form that Couchbase Lite takes for a newer one than its own (version-vectors.md, corrections 10 and 12): the
    /// revisions behind a vector begin with that of the peer, if it has one.
    ///
    /// `names`: the names of the states that the peer has, its current one first.
    package func state(of id: RevisionID, toPeerWith names: [RevisionName]) -> StateHistory {
        let state = state(of: id)
        let listed = names.lazy.compactMap(\.treeID).first
        guard !state.vector.isEmpty else {
            // Couchbase Lite ends the history with the revision that the peer named.
            guard let listed, names.first == .revision(listed) else { return state }
            let place = state.revisions.firstIndex(of: listed) ?? state.revisions.count - 1
            return StateHistory(state.vector, revisions: Array(state.revisions[...place]))
        }
        if let listed { return StateHistory(state.vector, revisions: [listed]) }
        // A peer that names nothing has no document, and keeps no list, or it has a tombstone.
        guard let name = names.first else {
            return StateHistory(state.vector, revisions: list(behind: state, of: id))
        }
        guard let known = node(named: name) else { return state }
        return StateHistory(state.vector, revisions: list(behind: self.state(of: known), of: known))
    }
}

extension RevisionTree {
    /// The tree as peers with versions see it.
    package var versions: TreeVersions { TreeVersions(self) }
}
