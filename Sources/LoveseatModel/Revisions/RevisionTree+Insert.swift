extension RevisionTree {
    /// How deep a branch may grow before its oldest revisions are forgotten.
    package static let maximumDepth = 50

    /// Why a received revision was refused.
    package enum Refusal: Error, Hashable, Sendable {
        /// It would make a branch where none is allowed.
        case conflict
        /// Its history skips generations or does not descend.
        case badHistory
    }

    /// How a conflict was settled.
    package enum Settlement: Hashable, Sendable {
        /// The conflicting revision becomes the current one.
        case remoteStands
        /// The current revision stays, and the conflicting branch is closed.
        case localStands
        /// A new revision follows the conflicting one.
        case child(body: JSONText, isDeleted: Bool)
    }

    /// What became of a received revision.
    package enum Outcome: Hashable, Sendable {
        /// It was here before.
        case alreadyPresent
        /// It continues the current branch, or starts the document.
        case inserted
        /// It stands beside the current branch until somebody resolves the two.
        case insertedAsConflict
    }

    /// Adds a local edit on top of a leaf, or as the first revision.
    package mutating func insertLocal(_ id: RevisionID, parent: RevisionID?, flags: Flags, body: JSONText) {
        precondition(parent == nil || isLeaf(parent ?? id), "a local edit continues a leaf")
        nodes.append(Node(id: id, parent: parent, flags: flags, body: body))
        finish()
    }

    /// Adds a received revision with its history, newest first, itself included (replication.md §12.2).
    ///
    /// What the less obvious parameters mean:
    /// `remote`: the database it came from, whose current revision it then is.
    /// `deletedBranch`: a tombstone and its ancestors, newest first, with which the sender gave up the branch that is
    ///     current here. The new revision then takes its place without conflict.
    /// `tombstone`: names the tombstone that closes a branch (see ``retire(_:tombstone:)``).
    package mutating func insert(
        history: [RevisionID],
        flags: Flags,
        body: JSONText,
        allowConflict: Bool,
        remote: Remote? = nil,
        deletedBranch: [RevisionID] = [],
        tombstone: (RevisionID) -> RevisionID
    ) throws(Refusal) -> Outcome {
        guard let id = history.first else { throw .badHistory }
        for (index, pair) in zip(history, history.dropFirst()).enumerated() {
            let isSequential = pair.0.generation == pair.1.generation &+ 1
            let mayBeGap = index >= Self.maximumDepth - 2 && pair.0.generation > pair.1.generation
            guard isSequential || mayBeGap else { throw .badHistory }
        }
        let common = history.firstIndex { contains($0) }
        if common == 0 {
            if let winner, winner.id != id {
                // Where two peers that know both do not agree which one lost, the preferred one stands.
                let given = deletedBranch.firstIndex(of: winner.id) ?? 0
                let isHigherDeletion =
                    !allowConflict && flags.contains(.deleted) && isLowerDeletion(winner, than: id)
                if isHigherDeletion
                    || (given > 0 && isPreferred(id, isDeleted: flags.contains(.deleted), to: winner))
                {
                    reopen(id, flags: flags, body: body)
                    if isLeaf(id) {
                        close(winner.id, with: deletedBranch[..<given])
                        noteRemote(remote, has: id, tombstone: tombstone)
                        finish()
                        return .inserted
                    }
                }
                // What lost here cannot be taken for what the sender holds to be current.
                if !allowConflict, given > 0 || !isAncestor(id, of: winner.id) { throw .conflict }
            }
            noteRemote(remote, has: id, tombstone: tombstone)
            finish()
            return .alreadyPresent
        }
        let ancestor = common.flatMap { node(history[$0]) }
        // What continues a branch that was given up here contends with the branch that won.
        var continuesLeaf = ancestor.map { isLeaf($0.id) && !$0.flags.contains(.closed) } ?? nodes.isEmpty
        if !continuesLeaf, let winner, let given = deletedBranch.firstIndex(of: winner.id), given > 0 {
            close(winner.id, with: deletedBranch[..<given])
            continuesLeaf = true
        }
        if !continuesLeaf, !allowConflict, let winner, winner.isDeleted, conflicts.isEmpty {
            // A deleted document may be made anew by a peer that never had it (replication.md §8). Of two deletions the
            // higher stands, as everywhere; else the two peers would swap theirs.
            guard !flags.contains(.deleted) || isLowerDeletion(winner, than: id) else { throw .conflict }
            close(winner.id, with: [])
            continuesLeaf = true
        }
        guard allowConflict || continuesLeaf else { throw .conflict }

        let isConflict = !continuesLeaf || ancestor?.isConflict == true
        let branch = isConflict ? flags.union(.conflict) : flags
        for index in 0..<(common ?? history.count) {
            let parent = index + 1 < history.count ? history[index + 1] : nil
            let nodeFlags: Flags = index == 0 ? branch : (isConflict ? .conflict : [])
            nodes.append(
                Node(id: history[index], parent: parent, flags: nodeFlags, body: index == 0 ? body : nil)
            )
        }
        noteRemote(remote, has: id, tombstone: tombstone)
        finish()
        return node(id)?.isConflict == true ? .insertedAsConflict : .inserted
    }

    /// Takes back the tombstone that closed a revision's branch, if one did.
    private mutating func reopen(_ id: RevisionID, flags: Flags, body: JSONText) {
        for leaf in leaves where leaf.flags.contains(.closed) && leaf.parent == id {
            nodes.removeAll { $0.id == leaf.id }
        }
        guard isLeaf(id), let index = index(of: id) else { return }
        clearConflict(from: id)
        (nodes[index].flags, nodes[index].body) = (flags, body)
    }

    /// Of two deletions the higher stands, at every peer.
    private func isLowerDeletion(_ winner: Node, than id: RevisionID) -> Bool {
        winner.isDeleted && winner.id < id && conflicts.isEmpty
    }

    /// Adds a received tombstone with its ancestors on top of a leaf. A deletion is a tombstone already, and needs none.
    private mutating func close(_ leaf: RevisionID, with branch: ArraySlice<RevisionID>) {
        if branch.isEmpty, let index = index(of: leaf) { nodes[index].flags.insert(.closed) }
        var parent = leaf
        for (index, id) in branch.enumerated().reversed() {
            let isLeaf = index == 0
            nodes.append(
                Node(
                    id: id,
                    parent: parent,
                    flags: isLeaf ? [.deleted, .closed] : [],
                    body: isLeaf ? .emptyObject : nil
                )
            )
            parent = id
        }
    }

    /// Records which revision is the current one at a remote database.
    package mutating func noteRemote(
        _ remote: Remote?,
        has id: RevisionID,
        tombstone: (RevisionID) -> RevisionID
    ) {
        guard let remote, contains(id) else { return }
        if let old = remotes[remote], contains(old), !isAncestor(old, of: id) {
            // The older of two arrived late.
            if isAncestor(id, of: old) { return }
            // The remote switched branches. Without local edits on the old one that is no conflict.
            if isLeaf(old), let oldNode = node(old) {
                remotes[remote] = id
                if oldNode.isConflict {
                    retire(old, tombstone: tombstone)
                } else if winner?.id == old, followsSwitch(from: oldNode, to: id) {
                    clearConflict(from: id)
                    retire(old, tombstone: tombstone)
                }
            }
        }
        remotes[remote] = id
        if let winner, isLowerDeletion(winner, than: id), let index = index(of: id), isLeaf(id),
            nodes[index].isDeleted
        {
            nodes[index].flags.remove(.closed)
            close(winner.id, with: [])
        }
    }

    /// Whether a remote that switched branches is followed without asking anybody.
    ///
    /// With one server in the middle it always could be. Among peers, where each follows another, two branches would
    /// chase each other in a ring for ever; so only the branch that everybody prefers is followed, and the other way
    /// round is a conflict like any other.
    private func followsSwitch(from old: Node, to id: RevisionID) -> Bool {
        node(id).map { isPreferred(id, isDeleted: $0.isDeleted, to: old) } ?? false
    }

    /// The order on which all peers agree: deletions first, then the higher revision.
    private func isPreferred(_ id: RevisionID, isDeleted: Bool, to other: Node) -> Bool {
        isDeleted != other.isDeleted ? isDeleted : id > other.id
    }

    /// Settles a conflict by leaving the current branch as it is and giving up the conflicting one.
    ///
    /// For remotes that take a `deleted_branch`: no new revision is made, so that peers that decide alike agree at once.
    package mutating func keepLocal(over leaf: RevisionID, tombstone: (RevisionID) -> RevisionID) {
        retire(leaf, tombstone: tombstone)
        finish()
    }

    /// Settles the conflict between the current branch and a conflicting leaf (replication.md §13.3).
    ///
    /// The conflicting branch wins, so that this history matches the remote's; the current branch goes down to the
    /// common ancestor. A result other than the conflicting revision itself becomes its child.
    package mutating func resolve(
        conflict leaf: RevisionID,
        child: (id: RevisionID, flags: Flags, body: JSONText)?,
        tombstone: (RevisionID) -> RevisionID
    ) {
        let losers = leaves.filter { $0.id != leaf && !$0.isConflict && !$0.flags.contains(.closed) }.map(
            \.id
        )
        clearConflict(from: leaf)
        for loser in losers { retire(loser, tombstone: tombstone) }
        if let child { nodes.append(Node(id: child.id, parent: leaf, flags: child.flags, body: child.body)) }
        finish()
    }

    /// Makes the current revision's content a child of what a remote has, because the remote does not take it in the
    /// place of a closed branch; false if no branch was closed over `id`.
    package mutating func follow(
        _ id: RevisionID,
        child: RevisionID,
        tombstone: (RevisionID) -> RevisionID
    ) -> Bool {
        guard let winner, let body = winner.body, let branch = deletedBranch(over: id) else { return false }
        nodes.removeAll { branch.dropLast().contains($0.id) }
        resolve(conflict: id, child: (child, winner.flags, body), tombstone: tombstone)
        return true
    }

    /// Gives up a branch: closes it with a tombstone.
    ///
    /// Only with that tombstone can a remote which has the branch be told that it lost (`deleted_branch`, replication.md
    /// §9.1), and only by it is the branch known when somebody brings it again.
    mutating func retire(_ leaf: RevisionID, tombstone: (RevisionID) -> RevisionID) {
        clearConflict(from: leaf)
        guard let node = node(leaf), !node.flags.contains(.closed) else { return }
        close(leaf, with: [tombstone(leaf)])
    }

    /// A leaf and those of its ancestors that no other branch shares.
    func ownRevisions(ofBranch leaf: RevisionID) -> Set<RevisionID> {
        var children: [RevisionID: Int] = [:]
        for node in nodes { if let parent = node.parent { children[parent, default: 0] += 1 } }
        var own: Set<RevisionID> = []
        var next: RevisionID? = leaf
        while let id = next, children[id, default: 0] <= (id == leaf ? 0 : 1) {
            own.insert(id)
            next = node(id)?.parent
        }
        return own
    }

    /// Forgets a leaf and its ancestors down to the first one that another branch shares.
    mutating func purgeBranch(_ leaf: RevisionID) {
        var next: RevisionID? = leaf
        while let id = next, isLeaf(id), let index = index(of: id) {
            next = nodes[index].parent
            nodes.remove(at: index)
        }
    }

    /// Whether a revision leads to the current one, or waits beside it for its conflict to be resolved.
    package func isKnownToFollow(_ id: RevisionID) -> Bool {
        guard let winner, let node = node(id) else { return true }
        return node.isConflict || isAncestor(id, of: winner.id)
    }

    /// Whether a revision takes the place of another: it descends from it, or the other's branch was given up.
    package func supersedes(_ id: RevisionID, _ other: RevisionID) -> Bool {
        contains(id) && contains(other) && (isAncestor(other, of: id) || deletedBranch(over: other) != nil)
    }

    /// The tombstone that closed a revision's branch, and what lies between the two, newest first, the revision last.
    package func deletedBranch(over id: RevisionID) -> [RevisionID]? {
        for leaf in leaves where leaf.flags.contains(.closed) {
            let branch = [leaf.id] + ancestors(of: leaf.id)
            if let index = branch.firstIndex(of: id), index > 0 { return Array(branch[...index]) }
        }
        return nil
    }

    /// Brings a changed tree into the form in which it is stored.
    package mutating func finish() {
        unflagWinner()
        prune(depth: Self.maximumDepth)
    }
}
