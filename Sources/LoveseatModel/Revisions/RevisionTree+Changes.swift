/// Changes of a tree: local edits, and what peers know.
extension RevisionTree {
    /// The default number of revisions that are kept of a line.
    package static let maximumDepth = 50

    /// The kinds of peer.
    package enum PeerKind: Hashable, Sendable {
        /// Another Loveseat. Both send each other their trees.
        case loveseat
        /// A passive peer with one line of revisions, which accepts only descendants of its current one.
        case hub
        /// A foreign peer that pushes to this database, for which this one is a hub.
        case client
    }

    /// Adds a local edit on top of the current revision, or as the first one.
    ///
    /// An edit of the current revision decides against all other candidates known here.
    package mutating func insertLocal(
        _ id: RevisionID,
        parent: RevisionID?,
        flags: Flags,
        body: JSONText,
        by policy: TreePolicy
    ) {
        if !isLine, !keepsBranches, let winner = parent.map(original) {
            // A pending revision was not shown to anyone, so it is not closed.
            for candidate in candidates where candidate.original != winner {
                closed.insert(candidate.original)
                setYielded(candidate.original, false)
            }
        }
        nodes[id] = Node(id: id, parent: parent, flags: flags, body: body)
        prune(by: policy)
    }

    /// Closes a revision, which need not be here any more.
    package mutating func giveUp(_ id: RevisionID, by policy: TreePolicy) {
        closed.insert(original(id))
        prune(by: policy)
    }

    /// Adds the knowledge of a peer that has another current revision.
    ///
    /// `pulls`: whether a pull can bring the content of other leaves, too.
    /// - Returns: whether the two agree now. They do not if the peer's revision has no body here: a pull brings it.
    package mutating func merge(
        _ knowledge: TreeKnowledge,
        current theirs: RevisionID,
        remote: Remote,
        pulls: Bool = false,
        by policy: TreePolicy
    ) throws(InsertRefusal) -> Bool {
        let known = self
        try merge(knowledge, by: policy)
        keepTelling(known.branches)
        guard contains(theirs) else { throw .badHistory }
        // The body may be lost everywhere; then both show the best of those that are left.
        let awaitsLeaf = pulls && remotes[remote] != theirs && rule.awaitsLeaf(of: knowledge)
        guard !rule.lacksCurrentBody || current?.id == theirs, !awaitsLeaf else {
            self = known
            return false
        }
        releasePending()
        recordMark(of: remote, at: theirs)
        prune(by: policy)
        return current?.id == theirs
    }

    mutating func setYielded(_ original: RevisionID, _ isYielded: Bool) {
        for id in nodes.keys where self.original(id) == original {
            if isYielded { nodes[id]?.flags.insert(.yielded) } else { nodes[id]?.flags.remove(.yielded) }
        }
    }

    /// Ends the pending state of revisions that were superseded, closed, or found to supersede all others.
    mutating func releasePending() {
        let pending = pending
        if pending.isEmpty { return }
        let isAlone = rule.candidatesByOriginal.isEmpty
        for node in pending where isAlone || closed.contains(original(node.id)) || !isLeaf(node.id) {
            nodes[node.id]?.flags.remove(.pending)
        }
    }
}
