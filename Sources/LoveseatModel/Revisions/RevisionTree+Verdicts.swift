import LoveseatAssertions

/// Decisions of resolvers and people about conflicts (docs/decisions/0001 and 0009).
///
/// A verdict adds a new revision on the side that it keeps, whose ID is made of everything that it gives up. So a revision that a verdict
/// gives up is always older than the one that it adds. Of several verdicts on one document, whatever they say, the youngest adds a revision
/// that no other verdict has given up.
extension RevisionTree {
    /// A resolver's decision.
    package enum Verdict: Hashable, Sendable {
        case local
        case remote
        /// A new revision replaces both, as the child of one of them.
        case merged(body: JSONText, isDeleted: Bool, parent: RevisionID)
        /// The rule for the current revision decides.
        case byRule
    }

    /// A revision to be made.
    package struct Draft: Sendable {
        package let parent: RevisionID
        /// The revisions that a verdict gives up for this one; empty for an edit.
        package let givenUp: [RevisionID]
        package let isDeleted: Bool
        package let body: JSONText
    }

    /// Settles the conflict between the current revision and a pending one.
    ///
    /// `peer`: the kind of peer from which the pending one came. `make`: names a new revision.
    package mutating func resolve(
        _ pending: RevisionID,
        _ verdict: Verdict,
        from peer: PeerKind,
        by policy: TreePolicy,
        make: (Draft) throws -> Node
    ) rethrows {
        guard let current, nodes[pending]?.flags.contains(.pending) == true else {
            return impossible("revision \(pending) waits for no verdict")
        }
        nodes[pending]?.flags.remove(.pending)
        try decide(between: current.id, and: pending, verdict, from: peer, by: policy, make: make)
    }

    /// Decides between two leaves.
    package mutating func decide(
        between local: RevisionID,
        and remote: RevisionID,
        _ verdict: Verdict,
        from peer: PeerKind,
        by policy: TreePolicy,
        make: (Draft) throws -> Node
    ) rethrows {
        switch verdict {
        case .byRule: break
        case .local: try keep(local, over: [remote], from: peer, make: make)
        case .remote: try keep(remote, over: [local], from: peer, make: make)
        case .merged(let body, let isDeleted, let parent):
            let other = parent == local ? remote : local
            let givenUp = peer == .hub ? [] : [other]
            let node = try make(Draft(parent: parent, givenUp: givenUp, isDeleted: isDeleted, body: body))
            try giveUp([other], make: make)
            if !keepsBranches { closed.insert(original(parent)) }
            nodes[node.id] = node
        }
        prune(by: policy)
    }

    /// Keeps a leaf over others. From a hub, the kept leaf is the hub's, or goes on top of it, so no new revision is needed. A deletion
    /// that is kept needs none either.
    private mutating func keep(
        _ id: RevisionID,
        over others: [RevisionID],
        from peer: PeerKind,
        make: (Draft) throws -> Node
    ) rethrows {
        var kept: Node?
        if peer != .hub, let node = nodes[id], !node.isDeleted, let body = node.body, id.generation < .max {
            kept = try make(Draft(parent: id, givenUp: others, isDeleted: false, body: body))
        }
        try giveUp(others, make: make)
        if let kept { nodes[kept.id] = kept }
    }

    /// Gives up leaves. If all leaves are kept for peers of CouchDB's wire, each gets a tombstone.
    private mutating func giveUp(_ ids: [RevisionID], make: (Draft) throws -> Node) rethrows {
        for id in ids {
            guard keepsBranches, let node = nodes[id], !node.isDeleted, id.generation < .max else {
                closed.insert(original(id))
                continue
            }
            let draft = Draft(parent: id, givenUp: [], isDeleted: true, body: .emptyObject)
            let tombstone = try make(draft)
            nodes[tombstone.id] = tombstone
        }
    }

    /// Ends all conflicts of the document as a person decides.
    ///
    /// `leaf`: the leaf that is kept. `edit`: the content to put on top of it; nil for its own.
    /// - Returns: the revision that was made; nil if there was nothing to decide.
    package mutating func resolve(
        keeping leaf: RevisionID,
        edit: JSONText?,
        by policy: TreePolicy,
        make: (Draft) throws -> Node
    ) rethrows -> Node? {
        guard let current, let kept = nodes[leaf], let body = edit ?? kept.body else { return nil }
        let open = open(among: candidates).map(\.node)
        var others = pending.map(\.id)
        others += open.filter { !keepsBranches || !$0.isDeleted }.map(\.id)
        // Any other leaf was given up, or lost by the rule: its content is put on top of the winner.
        let isBase =
            leaf == current.id || kept.flags.contains(.pending)
            || (keepsBranches && open.contains { $0.id == leaf })
        let base = isBase ? leaf : current.id
        others.removeAll { original($0) == original(base) }
        guard !others.isEmpty || edit != nil || !isBase else { return nil }
        let node = try make(Draft(parent: base, givenUp: others, isDeleted: false, body: body))
        for id in pending.map(\.id) { nodes[id]?.flags.remove(.pending) }
        try giveUp(others, make: make)
        nodes[node.id] = node
        prune(by: policy)
        return node
    }

    /// How many rounds of contradicting verdicts two leaves have come through. On top of both lines, each of so many revisions was added by
    /// a verdict, although another verdict gave up its parent or added another revision there.
    package func disagreements(
        about one: RevisionID,
        and other: RevisionID,
        sha1: ([UInt8]) -> [UInt8]
    ) -> Int {
        min(disagreements(about: one, sha1: sha1), disagreements(about: other, sha1: sha1))
    }

    private func disagreements(about leaf: RevisionID, sha1: ([UInt8]) -> [UInt8]) -> Int {
        let line = line(leaf)
        return zip(line, line.dropFirst()).prefix { id, parent in
            guard VerdictName.isVerdict(id, over: parent, sha1: sha1) else { return false }
            if closed.contains(original(parent)) { return true }
            return nodes.values.contains { node in
                node.parent == parent && node.id != id
                    && (node.isDeleted || VerdictName.isVerdict(node.id, over: parent, sha1: sha1))
            }
        }.count
    }
}
