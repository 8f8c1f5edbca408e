/// A received revision. It becomes part of a tree, with what its sender knows (docs/decisions/0001).
package struct RevisionArrival: Sendable {
    /// Newest first, the revision itself included.
    package var history: [RevisionID]
    package var origin: RevisionID?
    package var flags: RevisionTree.Flags
    package var body: JSONText
    package var sender: RevisionTree.PeerKind
    /// The number under which marks for the sender are kept; nil on the passive side, which keeps none.
    package var remote: RevisionTree.Remote?
    /// The sender's tree; nil if it has only this line.
    package var knowledge: TreeKnowledge?
    /// Whether the app's resolver decides between two versions.
    package var asksResolver = false
    /// The sender has taken a newer revision from here since it announced this one.
    package var isOutdated = false
    /// The announcement may have been about an older state, and not about the sender's current one.
    package var mayBeOld = false
    /// Whether a revision's ID says that it is a copy that was made on top of another revision.
    package var isCopy: (@Sendable (_ id: RevisionID, _ parent: RevisionID) -> Bool)?

    package init(
        history: [RevisionID],
        flags: RevisionTree.Flags,
        body: JSONText,
        sender: RevisionTree.PeerKind
    ) {
        self.history = history
        self.flags = flags
        self.body = body
        self.sender = sender
    }

    /// The result of receiving a revision.
    package enum Outcome: Hashable, Sendable {
        /// The revision is known already.
        case alreadyPresent
        case inserted
        /// It waits beside the current revision for the app's resolver.
        case pending
    }

    /// Adds the revision, and the sender's tree.
    package func insert(
        into tree: inout RevisionTree,
        by policy: TreePolicy
    ) throws(RevisionTree.InsertRefusal) -> Outcome {
        try RevisionTree.check(history)
        let id = history[0]
        let (isNew, before) = (!tree.contains(id) || tree.rule.awaitsBody(of: id), tree.current)
        if sender == .client, try isKnown(&tree, before) { return .alreadyPresent }
        // If the body of a revision below a copy has not arrived, a hub that has fallen back to the revision is asked for it.
        let wasHere = tree.hasForgotten(id) || (tree.contains(id) && sender == .hub && !mayBeOld)
        let copies = newCopies(in: tree)
        let branches = tree.branches
        let isHubsNews = isNew && sender == .hub && !isOutdated
        let isMarked = tree.isMarked(before, at: remote)
        try tree.addLine(history, origin: origin, flags: flags, body: body, by: policy)
        if let knowledge { try tree.merge(knowledge, by: policy) }
        tree.keepTelling(branches)
        if !copies.isEmpty { tree.addCopies(copies) }
        if isHubsNews, let before {
            let conflict = HubConflict(before, with: id, in: tree)
            // Another client's copy of our revision may be higher by now, on the line that has arrived.
            if isMarked || conflict.hasReturned(in: tree),
                tree.current.map({ tree.original($0.id) }) == conflict.mine.original,
                conflict.saysNothingNew(in: tree)
            {
                conflict.giveWay(in: &tree)
            }
        }
        tree.releasePending()
        let isPending = asksResolver && isNew && !passes(before, in: tree) && holdBack(against: before, &tree)
        // A gateway also accepts a revision that it has on a deleted line, and changes nothing. Its earlier announcement may be newer than
        // that: offering our revision again shows it. A revision with the same content as ours is offered only if the mark has other
        // content.
        let isInDoubt =
            isOutdated && sender == .hub && !tree.isOnMarkedLine(id, of: remote) && !tree.isCurrent(id)
        // A Loveseat had the revision that it announced, and a later removal is recognised by this mark.
        let isFirst = sender == .loveseat && remote.map { tree.remotes[$0] == nil } == true
        if !isOutdated || isInDoubt || isFirst { tree.recordMark(of: remote, at: id) }
        // The peer has fallen back to the revision.
        if wasHere, !isOutdated, let remote { tree.remotes[remote] = id }
        policy.prune(&tree)
        return isPending ? .pending : isNew ? .inserted : .alreadyPresent
    }

    /// Whether a client's revision is here already; throws if it does not descend from the current one.
    private func isKnown(
        _ tree: inout RevisionTree,
        _ current: RevisionTree.Node?
    ) throws(RevisionTree.InsertRefusal) -> Bool {
        guard let current else { return false }
        let id = history[0]
        if tree.isAncestor(id, of: current.id) || tree.hasForgotten(id) { return true }
        if history.contains(current.id) { return false }
        // A peer that never had the document may create a deleted document again. An edit beside the deletion is a conflict.
        guard current.isDeleted, !flags.contains(.deleted), !tree.contains(id),
            !history.dropFirst().contains(where: { tree.contains($0) })
        else { throw .conflict }
        tree.closed.insert(tree.original(current.id))
        return false
    }

    /// The new revisions on a hub's line that are copies, by any database, and whether or not their originals are known.
    private func newCopies(in tree: RevisionTree) -> [RevisionID] {
        guard sender == .hub, let isCopy else { return [] }
        return zip(history, history.dropFirst())
            .filter { !tree.contains($0) && isCopy($0, $1) }.map(\.0)
    }

    /// Whether a line skips the generation of the current revision, which its sender had last: then it descends from
    /// the current revision, and the sender has pruned that.
    private func passes(_ current: RevisionTree.Node?, in tree: RevisionTree) -> Bool {
        guard let current, tree.isMarked(current, at: remote),
            !(knowledge?.nodes.contains { $0.id == current.id } ?? false)
        else { return false }
        let line = tree.line(history[0])
        let generation = current.id.generation
        return zip(line, line.dropFirst()).contains {
            $0.generation > generation && $1.generation < generation
        }
    }

    /// Makes a pulled revision pending, if the app's resolver has something to decide.
    private func holdBack(against before: RevisionTree.Node?, _ tree: inout RevisionTree) -> Bool {
        let id = history[0]
        let open = tree.open(among: tree.candidates)
        guard let before, tree.nodes[id]?.body != nil, let theirs = open.first(where: { $0.node.id == id }),
            let mine = open.first(where: { $0.original == tree.original(before.id) }), mine != theirs,
            !mine.node.saysTheSame(as: theirs.node),
            !(mine.node.isDeleted || theirs.node.isDeleted)
                || tree.rule.documents(among: [mine, theirs]).count == 1
        else { return false }
        tree.nodes[id]?.flags.insert(.pending)
        return true
    }
}
