/// Changes of a tree: local edits, received revisions, copies for hubs.
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

    /// A received revision.
    package struct Arrival: Sendable {
        /// Newest first, the revision itself included.
        package var history: [RevisionID]
        package var origin: RevisionID?
        package var flags: Flags
        package var body: JSONText
        package var sender: PeerKind
        /// The number under which marks for the sender are kept; nil on the passive side, which keeps none.
        package var remote: Remote?
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

        package init(history: [RevisionID], flags: Flags, body: JSONText, sender: PeerKind) {
            self.history = history
            self.flags = flags
            self.body = body
            self.sender = sender
        }
    }

    /// The result of receiving a revision.
    package enum Outcome: Hashable, Sendable {
        /// The revision is known already.
        case alreadyPresent
        case inserted
        /// It waits beside the current revision for the app's resolver.
        case pending
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

    /// Adds a received revision, and the sender's tree.
    package mutating func insert(_ arrival: Arrival, by policy: TreePolicy) throws(InsertRefusal) -> Outcome {
        try Self.check(arrival.history)
        let id = arrival.history[0]
        let (isNew, before) = (!contains(id) || rule.awaitsBody(of: id), current)
        if arrival.sender == .client, try isKnown(arrival, before) { return .alreadyPresent }
        // If the body of a revision below a copy has not arrived, a hub that has fallen back to the revision is asked for it.
        let wasHere = hasForgotten(id) || (contains(id) && arrival.sender == .hub && !arrival.mayBeOld)
        let copies = copies(in: arrival)
        let branches = branches
        let isHubsNews = isNew && arrival.sender == .hub && !arrival.isOutdated
        let isMarked = isMarked(before, at: arrival.remote)
        try addLine(
            arrival.history,
            origin: arrival.origin,
            flags: arrival.flags,
            body: arrival.body,
            by: policy
        )
        if let knowledge = arrival.knowledge { try merge(knowledge, by: policy) }
        keepTelling(branches)
        if !copies.isEmpty { addCopies(copies) }
        // Another client's copy of our revision may be higher by now, on the line that has arrived.
        if isHubsNews, let before, isMarked || hasReturned(before, to: id),
            current.map({ original($0.id) }) == original(before.id),
            saysNothingNew(before.id, over: id)
        {
            giveWay(before, to: id)
        }
        releasePending()
        let isPending =
            arrival.asksResolver && isNew && !passes(before, arrival) && holdBack(id, against: before)
        // A gateway also accepts a revision that it has on a deleted line, and changes nothing. Its earlier announcement may be newer than
        // that: offering our revision again shows it. A revision with the same content as ours is offered only if the mark has other
        // content.
        let isInDoubt =
            arrival.isOutdated && arrival.sender == .hub && !isOnMarkedLine(id, of: arrival.remote)
            && !isCurrent(id)
        // A Loveseat had the revision that it announced, and a later removal is recognised by this mark.
        let isFirst = arrival.sender == .loveseat && arrival.remote.map { remotes[$0] == nil } == true
        if !arrival.isOutdated || isInDoubt || isFirst { recordMark(of: arrival.remote, at: id) }
        // The peer has fallen back to the revision.
        if wasHere, !arrival.isOutdated, let remote = arrival.remote { remotes[remote] = id }
        prune(by: policy)
        return isPending ? .pending : isNew ? .inserted : .alreadyPresent
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

    /// Whether a client's revision is here already; throws if it does not descend from the current one.
    private mutating func isKnown(_ arrival: Arrival, _ current: Node?) throws(InsertRefusal) -> Bool {
        guard let current else { return false }
        let id = arrival.history[0]
        if isAncestor(id, of: current.id) || hasForgotten(id) { return true }
        if arrival.history.contains(current.id) { return false }
        // A peer that never had the document may create a deleted document again. An edit beside the deletion is a conflict.
        guard current.isDeleted, !arrival.flags.contains(.deleted), !contains(id),
            !arrival.history.dropFirst().contains(where: contains)
        else { throw .conflict }
        closed.insert(original(current.id))
        return false
    }

    /// The new revisions on a hub's line that are copies, by any database, and whether or not their originals are known.
    private func copies(in arrival: Arrival) -> [RevisionID] {
        guard arrival.sender == .hub, arrival.history.count > 1, let isCopy = arrival.isCopy
        else { return [] }
        return zip(arrival.history, arrival.history.dropFirst())
            .filter { !contains($0) && isCopy($0, $1) }.map(\.0)
    }

    /// Whether a remote is known to have had a revision, or a copy of it, as its current one.
    package func isMarked(_ node: Node?, at remote: Remote?) -> Bool {
        guard let node, let remote, let mark = remotes[remote] else { return false }
        return original(mark) == original(node.id)
    }

    /// Whether a remote is known to have the current revision, a copy of it, or the same content on another line.
    package func hasCurrent(_ remote: Remote) -> Bool { remotes[remote].map(isCurrent) ?? false }

    /// Whether a remote is known to have the content of the current revision, even as an ancestor: a document that is deleted again is
    /// deleted.
    package func agreesInContent(with remote: Remote) -> Bool {
        guard let mark = remotes[remote], let node = nodes[mark], let current else { return false }
        return isCurrent(mark) || Self.saysTheSame(node, current)
    }

    /// Whether a revision and a remote's marked revision are on one line.
    private func isOnMarkedLine(_ id: RevisionID, of remote: Remote?) -> Bool {
        guard let mark = remote.flatMap({ remotes[$0] }) else { return false }
        return mark == id || isAncestor(id, of: mark) || isAncestor(mark, of: id)
    }

    /// Whether our current revision only repeats what a hub had before, while the hub now has something new on another line. A Loveseat
    /// reports the closed revisions itself.
    private func saysNothingNew(_ mine: RevisionID, over id: RevisionID) -> Bool {
        guard original(id) != original(mine), !isAncestor(id, of: mine) else { return false }
        // A copy of something else on top of our revision was made by a peer that knew it.
        return copies[id] != nil || !isAncestor(mine, of: id)
    }

    /// Closes a revision in favour of the hub's, unless only a deletion of another document would be left. This is only known if the
    /// deletion's line reaches its first revision, because a hub trims long histories.
    ///
    /// A peer that puts another revision on top of it each time knows a deletion that is not known here: the line does not show it.
    private mutating func giveWay(_ mine: Node, to id: RevisionID) {
        let before = closed
        let mine = CurrentRevisionRule.Candidate(original: original(mine.id), node: mine)
        let returns = returns(of: mine.original, to: id)
        let isLive = nodes[id]?.isDeleted == false
        if returns > 0, isPutBack(id, inSpiteOf: mine) { return }
        closed.insert(mine.original)
        if isLive { reopen(original(id)) }
        if !mine.node.isDeleted, let current, current.isDeleted, returns < CurrentRevisionRule.maximumReturns,
            line(current.id).last?.generation == 1
        {
            closed = before
        } else {
            setYielded(mine.original, true)
        }
    }

    /// Whether a live revision that the author of a deletion gave up was put beside it, or on top of it, by a peer that cannot know that.
    private func isPutBack(_ id: RevisionID, inSpiteOf mine: CurrentRevisionRule.Candidate) -> Bool {
        mine.node.isDeleted && nodes[id]?.isDeleted == false && wasGivenUp(original(id))
            && returns(of: mine.original, to: id) <= CurrentRevisionRule.maximumReturns
    }

    /// Whether a line shows that a live revision was put there again and again, and that another client did not accept it. This database
    /// need not have been one of those that did.
    private func hasReturned(_ node: Node, to id: RevisionID) -> Bool {
        !node.isDeleted && returns(of: original(node.id), to: id) >= CurrentRevisionRule.maximumReturns
    }

    /// How often a line has a revision, as itself or as a copy.
    func returns(of original: RevisionID, to id: RevisionID) -> Int {
        line(id).count { self.original($0) == original }
    }

    /// Whether a revision was closed by a peer that knew it, and not only by giving way.
    private func wasGivenUp(_ original: RevisionID) -> Bool {
        closed.contains(original)
            && !nodes.values.contains {
                $0.flags.contains(.yielded) && self.original($0.id) == original
            }
    }

    private mutating func setYielded(_ original: RevisionID, _ isYielded: Bool) {
        for id in nodes.keys where self.original(id) == original {
            if isYielded { nodes[id]?.flags.insert(.yielded) } else { nodes[id]?.flags.remove(.yielded) }
        }
    }

    /// How often one revision is put on a hub's line against a deletion of another document.
    static let maximumReturns = 3

    /// Whether a line skips the generation of the current revision, which its sender had last: then it descends from
    /// the current revision, and the sender has pruned that.
    private func passes(_ current: Node?, _ arrival: Arrival) -> Bool {
        guard let current, isMarked(current, at: arrival.remote),
            !(arrival.knowledge?.nodes.contains { $0.id == current.id } ?? false)
        else { return false }
        let line = line(arrival.history[0])
        let generation = current.id.generation
        return zip(line, line.dropFirst()).contains {
            $0.generation > generation && $1.generation < generation
        }
    }

    /// Makes a pulled revision pending, if the app's resolver has something to decide.
    private mutating func holdBack(_ id: RevisionID, against before: Node?) -> Bool {
        let open = open(among: candidates)
        guard let before, nodes[id]?.body != nil, let theirs = open.first(where: { $0.node.id == id }),
            let mine = open.first(where: { $0.original == original(before.id) }), mine != theirs,
            !Self.saysTheSame(mine.node, theirs.node),
            !(mine.node.isDeleted || theirs.node.isDeleted)
                || rule.documents(among: [mine, theirs]).count == 1
        else { return false }
        nodes[id]?.flags.insert(.pending)
        return true
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

    // MARK: Remotes

    /// Records the current revision of a remote database.
    package mutating func recordMark(of remote: Remote?, at id: RevisionID) {
        // The passive side keeps no marks, and a damaged row may name a revision that is not in its tree.
        guard let remote, contains(id) else { return }
        // An older revision arrived late.
        if let old = remotes[remote], old != id, isAncestor(id, of: old) { return }
        remotes[remote] = id
    }

    /// Records a revision that a peer announced and that is known here. It may be older than the mark, if the document
    /// was purged at the peer and came back from another one.
    ///
    /// - Returns: whether the peer has fallen back on the line.
    package mutating func hasFallenBack(_ remote: Remote, to id: RevisionID) -> Bool {
        guard let old = remotes[remote], old != id, isAncestor(id, of: old) else {
            recordMark(of: remote, at: id)
            return false
        }
        remotes[remote] = id
        return true
    }

    /// Records a revision that a hub announced and that is known here. If our current revision is only what the hub had
    /// before, and the hub's live revision is on another line, that one takes over, even if it was closed: a hub
    /// announces it when the winner of several branches was deleted.
    package mutating func follow(_ hub: Remote, to id: RevisionID) {
        let (before, mark) = (current, remotes[hub])
        recordMark(of: hub, at: id)
        // Most often the hub goes on from its own line, or our revision is not the one that it had.
        guard let before, mark == before.id, remotes[hub] == id, let node = nodes[id],
            !node.isDeleted, original(id) != original(before.id), !isAncestor(before.id, of: id),
            !isPutBack(
                id,
                inSpiteOf: CurrentRevisionRule.Candidate(original: original(before.id), node: before)
            )
        else { return }
        var opened = original(id)
        if superseded.contains(opened) {
            // Its edits were closed in favour of the hub's revision, which is deleted by now.
            let edits = candidates.filter { closed.contains($0.original) && isAncestor(id, of: $0.node.id) }
            // Ours may be alive, or no edit with its content may be left.
            guard before.isDeleted, let edit = edits.max(by: { $0.precedes($1) }),
                edit.node.body != nil
            else { return }
            opened = edit.original
        } else if node.body == nil {
            return
        }
        closed.insert(original(before.id))
        reopen(opened)
    }

    /// Makes a closed candidate an open one.
    private mutating func reopen(_ original: RevisionID) {
        closed = closed.filter { self.original($0) != original }
        setYielded(original, false)
    }

    /// Whether a remote's current revision is neither ours nor one of its ancestors.
    package func isContradicted(by remote: Remote) -> Bool {
        guard let mark = remotes[remote], let current else { return false }
        return !isAncestor(mark, of: current.id)
    }

    /// Removes the mark of a remote, for a caller that stores it elsewhere.
    package mutating func forgetRemote(_ remote: Remote) { remotes[remote] = nil }
}
