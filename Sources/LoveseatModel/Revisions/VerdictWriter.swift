import LoveseatAssertions

/// A resolver's decision.
package enum ConflictVerdict: Hashable, Sendable {
    case local
    case remote
    /// A new revision replaces both, as the child of one of them.
    case merged(body: JSONText, isDeleted: Bool, parent: RevisionID)
    /// The rule for the current revision decides.
    case byRule
}

/// A revision that a verdict makes.
package struct RevisionDraft: Sendable {
    package let parent: RevisionID
    /// The revisions that a verdict gives up for this one; empty for an edit.
    package let givenUp: [RevisionID]
    package let isDeleted: Bool
    package let body: JSONText
}

/// Puts decisions of resolvers and people about conflicts into trees (docs/decisions/0001 and 0009).
///
/// A verdict adds a new revision on the side that it keeps, whose ID is made of everything that it gives up. So a revision that a verdict
/// gives up is always older than the one that it adds. Of several verdicts on one document, whatever they say, the youngest adds a revision
/// that no other verdict has given up.
package struct VerdictWriter {
    private let policy: TreePolicy
    /// Names a new revision.
    private let make: (RevisionDraft) throws -> RevisionTree.Node

    package init(policy: TreePolicy, make: @escaping (RevisionDraft) throws -> RevisionTree.Node) {
        (self.policy, self.make) = (policy, make)
    }

    /// Settles the conflict between the current revision and a pending one.
    ///
    /// `peer`: the kind of peer from which the pending one came.
    package func resolve(
        _ pending: RevisionID,
        _ verdict: ConflictVerdict,
        from peer: RevisionTree.PeerKind,
        in tree: inout RevisionTree
    ) throws {
        guard let current = tree.current, tree.nodes[pending]?.flags.contains(.pending) == true else {
            return impossible("revision \(pending) waits for no verdict")
        }
        tree.nodes[pending]?.flags.remove(.pending)
        try decide(between: current.id, and: pending, verdict, from: peer, in: &tree)
    }

    /// Decides between two leaves.
    package func decide(
        between local: RevisionID,
        and remote: RevisionID,
        _ verdict: ConflictVerdict,
        from peer: RevisionTree.PeerKind,
        in tree: inout RevisionTree
    ) throws {
        switch verdict {
        case .byRule: break
        case .local: try keep(local, over: [remote], from: peer, in: &tree)
        case .remote: try keep(remote, over: [local], from: peer, in: &tree)
        case .merged(let body, let isDeleted, let parent):
            let other = parent == local ? remote : local
            let givenUp = peer == .hub ? [] : [other]
            let node = try make(
                RevisionDraft(parent: parent, givenUp: givenUp, isDeleted: isDeleted, body: body)
            )
            try giveUp([other], in: &tree)
            if !tree.keepsBranches { tree.closed.insert(tree.original(parent)) }
            tree.nodes[node.id] = node
        }
        policy.prune(&tree)
    }

    /// Keeps a leaf over others. From a hub, the kept leaf is the hub's, or goes on top of it, so no new revision is needed. A deletion
    /// that is kept needs none either.
    private func keep(
        _ id: RevisionID,
        over others: [RevisionID],
        from peer: RevisionTree.PeerKind,
        in tree: inout RevisionTree
    ) throws {
        var kept: RevisionTree.Node?
        if peer != .hub, let node = tree.nodes[id], !node.isDeleted, let body = node.body,
            id.generation < .max
        {
            kept = try make(RevisionDraft(parent: id, givenUp: others, isDeleted: false, body: body))
        }
        try giveUp(others, in: &tree)
        if let kept { tree.nodes[kept.id] = kept }
    }

    /// Gives up leaves. If all leaves are kept for peers of CouchDB's wire, each gets a tombstone.
    func giveUp(_ ids: [RevisionID], in tree: inout RevisionTree) throws {
        for id in ids {
            guard tree.keepsBranches, let node = tree.nodes[id], !node.isDeleted, id.generation < .max else {
                tree.closed.insert(tree.original(id))
                continue
            }
            let draft = RevisionDraft(parent: id, givenUp: [], isDeleted: true, body: .emptyObject)
            let tombstone = try make(draft)
            tree.nodes[tombstone.id] = tombstone
        }
    }

    /// Ends all conflicts of the document as a person decides.
    ///
    /// `leaf`: the leaf that is kept. `edit`: the content to put on top of it; nil for its own.
    /// - Returns: the revision that was made; nil if there was nothing to decide.
    package func resolve(
        keeping leaf: RevisionID,
        edit: JSONText?,
        in tree: inout RevisionTree
    ) throws -> RevisionTree.Node? {
        guard let current = tree.current, let kept = tree.nodes[leaf], let body = edit ?? kept.body else {
            return nil
        }
        let open = tree.open(among: tree.candidates).map(\.node)
        var others = tree.pending.map(\.id)
        others += open.filter { !tree.keepsBranches || !$0.isDeleted }.map(\.id)
        // Any other leaf was given up, or lost by the rule: its content is put on top of the winner.
        let isBase =
            leaf == current.id || kept.flags.contains(.pending)
            || (tree.keepsBranches && open.contains { $0.id == leaf })
        let base = isBase ? leaf : current.id
        others.removeAll { tree.original($0) == tree.original(base) }
        guard !others.isEmpty || edit != nil || !isBase else { return nil }
        let node = try make(RevisionDraft(parent: base, givenUp: others, isDeleted: false, body: body))
        for id in tree.pending.map(\.id) { tree.nodes[id]?.flags.remove(.pending) }
        try giveUp(others, in: &tree)
        tree.nodes[node.id] = node
        policy.prune(&tree)
        return node
    }
}
