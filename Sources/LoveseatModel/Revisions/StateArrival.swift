/// A state that came from a peer with versions. It becomes a revision of a tree (version-vectors.md §11.5, docs/decisions/0015).
package struct StateArrival: Sendable {
    package var documentID: String
    /// The vector, and the revisions of a tree behind it.
    package var state: StateHistory
    package var flags: RevisionTree.Flags
    package var body: JSONText
    /// The number under which marks for the sender are kept; nil on the passive side, which keeps none.
    package var remote: RevisionTree.Remote?
    /// The version over which its author proposed it: the current one here, as far as the author knew. Couchbase Lite does not show in the history
    /// that it has decided against that (version-vectors.md, correction 12).
    package var parent: RevisionName?
    /// Whether a state in conflict with the current one is refused, as on the passive side.
    package var refusesConflicts = false
    /// Whether the app's resolver decides between two states.
    package var asksResolver = false
    /// The sender has taken a newer state from here since it announced this one.
    package var isOutdated = false
    /// A revision without a version that the sender has, or was told of. Couchbase Lite sends a later one without a history.
    package var knownRevision: RevisionID?
    /// The digest for names of versions in trees.
    private let sha256: @Sendable ([UInt8]) -> [UInt8]

    package init(
        documentID: String,
        state: StateHistory,
        flags: RevisionTree.Flags,
        body: JSONText,
        sha256: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        (self.documentID, self.state, self.flags, self.body) = (documentID, state, flags, body)
        self.sha256 = sha256
    }

    /// Adds the state to a tree.
    ///
    /// Versions by others are to be shown to the clock before (``VersionAuthor/see(_:wall:)``). `resolution` settles a conflict that no resolver has
    /// to decide; its author's clock may have moved afterwards.
    ///
    /// - Throws: ``RevisionTree/InsertRefusal``, and errors of `resolution`; the tree is then as before.
    package func insert(
        into tree: inout RevisionTree,
        by resolution: inout StateResolution
    ) throws -> RevisionArrival.Outcome {
        let before = tree
        do { return try add(to: &tree, &resolution) } catch {
            tree = before
            throw error
        }
    }

    /// The state with the current revision below it, if it was proposed over that.
    private func completed(in tree: RevisionTree) -> StateArrival? {
        guard let parent, let current = tree.current, let known = tree.versions.node(named: parent),
            tree.versions.isSame(known, current), !tree.versions.covers(state, current),
            let version = tree.versions.version(of: current.id), let name = state.name,
            state.vector.current != nil, tree.versions.node(named: name) == nil
        else { return nil }
        var arrival = self
        arrival.parent = nil
        let own = tree.versions.state(of: current.id).vector
        let vector = state.vector.including(own.isEmpty ? VersionVector(version) : own)
        guard vector.current == state.vector.current, vector.includes(version) else { return nil }
        arrival.state = StateHistory(vector, revisions: state.revisions)
        return arrival
    }

    private func add(
        to tree: inout RevisionTree,
        _ resolution: inout StateResolution
    ) throws -> RevisionArrival.Outcome {
        if let (id, version) = recognized(in: tree) { tree.addVector(VersionVector(version), of: id) }
        if let arrival = completed(in: tree) { return try arrival.add(to: &tree, &resolution) }
        guard let name = state.name, state.vector.hasValidTimes else {
            throw RevisionTree.InsertRefusal.badHistory
        }
        defer {
            tree.releasePending()
            resolution.policy.prune(&tree)
        }
        var announcement = StateAnnouncement(state, remote: remote)
        announcement.isOutdated = isOutdated
        let isReversal = tree.versions.reverses(state, on: parent)
        if !isReversal, let known = tree.versions.node(named: name) {
            let awaitsBody = tree.rule.awaitsBody(of: known)
            if awaitsBody {
                tree.nodes[known]?.body = body
                tree.nodes[known]?.flags.formUnion(flags)
            }
            try announcement.note(in: &tree, by: &resolution)
            return awaitsBody ? .inserted : .alreadyPresent
        }
        let current = tree.current
        let relation = isReversal ? .newer : tree.versions.relation(ofReceived: state)
        if relation == .older {
            try announcement.note(in: &tree, by: &resolution)
            return .alreadyPresent
        }
        let isNewer =
            relation == .newer
            || current.map { $0.id == predecessor(in: tree) || isRescued($0, in: tree) } ?? true
        let id = try addRevision(to: &tree, isNewer: isNewer, by: resolution.policy)
        if let remote, !isOutdated { tree.remotes[remote] = id }
        guard let current, !isNewer else {
            closeCovered(besides: id, in: &tree)
            if let current { close(current.id, besides: id, in: &tree) }
            if isReversal, let current {
                try resolution.outdo(tree.versions.announcedState(of: current.id).vector, in: &tree)
            }
            try resolution.outdoKnown(in: &tree)
            return .inserted
        }
        return try decide(current, id, &tree, &resolution)
    }

    // MARK: Newer

    /// The revision that a later one without a history continues: that of the peer, which was told of it (version-vectors.md, correction 13).
    private func predecessor(in tree: RevisionTree) -> RevisionID? {
        guard state.vector.isEmpty, state.revisions.count == 1, let known = knownRevision,
            let id = state.revisions.first, id.generation > known.generation, tree.contains(known),
            tree.vectors[known] == nil, remote.map({ tree.remotes[$0] == known }) ?? true
        else { return nil }
        return known
    }

    /// Whether this document was created anew by somebody who did not know the deletion here: on the passive side, or at a peer that had the
    /// deletion (version-vectors.md §11.5, step 4).
    private func isRescued(_ current: RevisionTree.Node, in tree: RevisionTree) -> Bool {
        guard tree.versions.isCreatedAnew(state, over: current) else { return false }
        return remote.map { tree.remotes[$0] == current.id } ?? !flags.contains(.deleted)
    }

    /// Closes the candidates that the state includes. Its author gave them up, or they went into it.
    private func closeCovered(besides id: RevisionID, in tree: inout RevisionTree) {
        if tree.isLine { return }
        for node in tree.candidates.map(\.node) + tree.pending where tree.versions.covers(state, node) {
            close(node.id, besides: id, in: &tree)
        }
    }

    /// Closes a revision that is not on the state's line. In a document with kept branches all leaves stay.
    private func close(_ other: RevisionID, besides id: RevisionID, in tree: inout RevisionTree) {
        if tree.keepsBranches || other == id || tree.isAncestor(other, of: id) { return }
        tree.closed.insert(tree.original(other))
    }

    // MARK: The revision

    /// Adds the state as a revision on top of the newest known one that it includes.
    private func addRevision(
        to tree: inout RevisionTree,
        isNewer: Bool,
        by policy: TreePolicy
    ) throws(RevisionTree.InsertRefusal) -> RevisionID {
        guard state.vector.current != nil else { return try addLine(to: &tree, by: policy) }
        var parent = parent(in: tree, isNewer: isNewer)
        let isLegacy = parent.map { tree.vectors[$0] == nil } ?? true
        if isLegacy, let first = state.revisions.first, isNewer || !lists(tree.current) {
            var grown = tree
            // A list that contradicts what is known says nothing. Lists of Couchbase Lite have gaps.
            if (try? grown.merge(Self.line(state.revisions), by: policy)) != nil {
                tree = grown
                parent = first
            }
        }
        guard let id = versionID(over: parent) else { throw .badHistory }
        var knowledge = TreeKnowledge()
        knowledge.nodes = [RevisionTree.Node(id: id, parent: parent, flags: flags, body: body)]
        knowledge.vectors = [id: state.vector]
        try tree.merge(knowledge, by: policy)
        return id
    }

    /// The revision that has the name of the state's version in trees, but no vector, because it came from a peer that tells no vectors.
    private func recognized(in tree: RevisionTree) -> (RevisionID, Version)? {
        guard let version = state.vector.current, version.source != .revisionTree,
            tree.versions.node(named: .version(version)) == nil
        else { return nil }
        let node = tree.nodes.values.first {
            tree.vectors[$0.id] == nil && $0.id == versionID(over: $0.parent)
        }
        return node.map { ($0.id, version) }
    }

    private func versionID(over parent: RevisionID?) -> RevisionID? {
        state.vector.current.flatMap {
            RevisionID(version: $0, documentID: documentID, parent: parent, sha256: sha256)
        }
    }

    /// Adds a revision of a tree with its history.
    private func addLine(
        to tree: inout RevisionTree,
        by policy: TreePolicy
    ) throws(RevisionTree.InsertRefusal) -> RevisionID {
        let line = state.revisions + (predecessor(in: tree).map { [$0] } ?? [])
        guard let id = line.first else { throw .badHistory }
        var knowledge = Self.line(line)
        knowledge.nodes[0].flags = flags
        knowledge.nodes[0].body = body
        try tree.merge(knowledge, by: policy)
        return id
    }

    /// A list of revisions as a line, without those that never existed.
    private static func line(_ revisions: [RevisionID]) -> TreeKnowledge {
        let line = revisions.prefix(1) + revisions.dropFirst().filter { !$0.isFiller }
        var knowledge = TreeKnowledge()
        for (index, id) in line.enumerated() {
            let parent = index + 1 < line.count ? line[index + 1] : nil
            knowledge.nodes.append(RevisionTree.Node(id: id, parent: parent, flags: [], body: nil))
        }
        return knowledge
    }

    /// The newest revision that the state includes: the current one, if the state is newer than that, or else the one with the greatest version.
    private func parent(in tree: RevisionTree, isNewer: Bool) -> RevisionID? {
        let current = tree.current
        if isNewer, let current, tree.vectors[current.id] != nil || !lists(current) { return current.id }
        let covered = tree.nodes.keys.filter { id in
            tree.copies[id] == nil && (isNewer || id != current?.id) && tree.versions.isCovered(id, by: state)
        }
        let versions = covered.compactMap { id in tree.vectors[id]?.current.map { (version: $0, id: id) } }
        return versions.max { $0 < $1 }?.id ?? covered.max()
    }

    /// Whether a revision stands behind the vector.
    private func lists(_ node: RevisionTree.Node?) -> Bool {
        node.map { state.revisions.contains($0.id) } ?? false
    }

    // MARK: Conflicts

    /// Settles a conflict with the current revision, or leaves it to the app's resolver. Two states with the same content and two that include each
    /// other need none: the greater version wins (version-vectors.md §12.1, R2).
    private func decide(
        _ current: RevisionTree.Node,
        _ id: RevisionID,
        _ tree: inout RevisionTree,
        _ resolution: inout StateResolution
    ) throws -> RevisionArrival.Outcome {
        let includeEachOther =
            tree.versions.covers(state, current)
            && state.name.map { tree.versions.includes($0, in: current.id) } == true
        if includeEachOther || tree.nodes[id]?.saysTheSame(as: current) == true {
            let isRemote = StateResolution.isGreater(id, than: current.id, in: tree)
            let verdict: ConflictVerdict = tree.keepsBranches ? .byRule : isRemote ? .remote : .local
            try resolution.decide(between: current.id, and: id, verdict, in: &tree)
            if isRemote { closeCovered(besides: id, in: &tree) }
            return .inserted
        }
        if refusesConflicts { throw RevisionTree.InsertRefusal.conflict }
        if asksResolver {
            tree.nodes[id]?.flags.insert(.pending)
            return .pending
        }
        try resolution.decide(between: current.id, and: id, .byRule, in: &tree)
        try resolution.outdoKnown(in: &tree)
        return .inserted
    }
}
