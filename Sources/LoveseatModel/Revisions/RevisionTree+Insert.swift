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
    /// - Parameter remote: the database it came from, whose current revision it then is.
    package mutating func insert(
        history: [RevisionID],
        flags: Flags,
        body: JSONText,
        allowConflict: Bool,
        remote: Remote? = nil
    ) throws(Refusal) -> Outcome {
        guard let id = history.first else { throw .badHistory }
        for (index, pair) in zip(history, history.dropFirst()).enumerated() {
            let isSequential = pair.0.generation == pair.1.generation &+ 1
            let mayBeGap = index >= Self.maximumDepth - 2 && pair.0.generation > pair.1.generation
            guard isSequential || mayBeGap else { throw .badHistory }
        }
        let common = history.firstIndex { contains($0) }
        if common == 0 {
            noteRemote(remote, has: id)
            finish()
            return .alreadyPresent
        }
        let ancestor = common.flatMap { node(history[$0]) }
        let isDeadDocument = common == nil && winner?.isDeleted == true && conflicts.isEmpty
        let continuesLeaf = ancestor.map { isLeaf($0.id) } ?? (nodes.isEmpty || (!allowConflict && isDeadDocument))
        guard allowConflict || continuesLeaf else { throw .conflict }

        let isConflict = !continuesLeaf || ancestor?.isConflict == true
        let branch = isConflict ? flags.union(.conflict) : flags
        for index in 0..<(common ?? history.count) {
            let parent = index + 1 < history.count ? history[index + 1] : nil
            let nodeFlags: Flags = index == 0 ? branch : (isConflict ? .conflict : [])
            nodes.append(Node(id: history[index], parent: parent, flags: nodeFlags, body: index == 0 ? body : nil))
        }
        noteRemote(remote, has: id)
        finish()
        return node(id)?.isConflict == true ? .insertedAsConflict : .inserted
    }

    /// Records which revision is the current one at a remote database.
    package mutating func noteRemote(_ remote: Remote?, has id: RevisionID) {
        guard let remote, contains(id) else { return }
        if let old = remotes[remote], contains(old), !isAncestor(old, of: id) {
            // The older of two arrived late.
            if isAncestor(id, of: old) { return }
            // The remote switched branches. Without local edits on the old one that is no conflict.
            if isLeaf(old), let oldNode = node(old) {
                if oldNode.isConflict {
                    purgeBranch(old)
                } else if winner?.id == old {
                    clearConflict(from: id)
                    purgeBranch(old)
                }
            }
        }
        remotes[remote] = id
    }

    /// Settles the conflict between the current branch and a conflicting leaf (replication.md §13.3).
    ///
    /// The conflicting branch wins, so that this history matches the remote's; the current branch goes down to the
    /// common ancestor. A result other than the conflicting revision itself becomes its child.
    package mutating func resolve(
        conflict leaf: RevisionID,
        child: (id: RevisionID, flags: Flags, body: JSONText)?
    ) {
        let losers = leaves.filter { $0.id != leaf && !$0.isConflict }.map(\.id)
        for loser in losers { purgeBranch(loser) }
        clearConflict(from: leaf)
        if let child { nodes.append(Node(id: child.id, parent: leaf, flags: child.flags, body: child.body)) }
        finish()
    }

    /// Forgets a leaf and its ancestors down to the first one that another branch shares.
    mutating func purgeBranch(_ leaf: RevisionID) {
        var next: RevisionID? = leaf
        while let id = next, isLeaf(id), let index = index(of: id) {
            next = nodes[index].parent
            nodes.remove(at: index)
        }
    }

    private mutating func finish() {
        unflagWinner()
        prune(depth: Self.maximumDepth)
    }
}
