package import LoveseatModel

/// Decisions about conflicts.
extension StoreWriteTransaction {
    /// Settles the conflict between the current revision and one that waits for a resolver.
    ///
    /// - Returns: the current revision afterwards; nil if the document changed since `local` was read.
    package func resolve(
        _ id: String,
        in collection: CollectionHandle,
        local: RevisionID,
        remote: RevisionID,
        _ verdict: ConflictVerdict,
        from peer: RevisionTree.PeerKind
    ) throws -> RevisionID? {
        guard let record = try record(id, in: collection), record.revision == local else { return nil }
        var tree = try record.tree()
        guard tree.pending.contains(where: { $0.id == remote }) else { return nil }
        try versionTable.resolve(remote, verdict, from: peer, of: id, in: &tree)
        try documentTable.store(tree, over: record, in: collection)
        return tree.current?.id
    }

    /// Ends a conflict between two live leaves: the one that lost gets a tombstone, which all peers of the document receive, and the one
    /// that won a new revision.
    ///
    /// - Returns: whether both were live leaves still.
    package func resolveBranches(
        of id: String,
        in collection: CollectionHandle,
        local: RevisionID,
        remote: RevisionID,
        _ verdict: ConflictVerdict
    ) throws -> Bool {
        guard verdict != .byRule, let record = try record(id, in: collection) else { return false }
        let live = try DocumentBranches(of: record).leaves.filter { !$0.isDeleted }.map(\.id)
        guard live.contains(local), live.contains(remote) else { return false }
        var tree = try record.tree()
        try versionTable.deciding(in: &tree) {
            try $0.decide(between: local, and: remote, verdict, from: .loveseat, in: &$1)
        }
        try documentTable.store(tree, over: record, in: collection)
        return true
    }

    /// Ends all conflicts of a document.
    ///
    /// `edit`: the content to put on top of the leaf; nil for its own.
    /// - Returns: the current revision afterwards.
    package func resolve(
        _ record: DocumentRecord,
        in collection: CollectionHandle,
        keeping leaf: RevisionID,
        edit: JSONText?
    ) throws -> RevisionID {
        var tree = try record.tree()
        let kept = tree.node(leaf)?.body
        let made = try versionTable.deciding(in: &tree) {
            try $0.resolve(keeping: leaf, edit: edit?.keepingAttachments(of: kept), in: &$1)
        }
        guard made != nil else { return record.revision }
        try documentTable.store(tree, over: record, in: collection)
        return tree.current?.id ?? record.revision
    }
}

extension RevisionDraft {
    func node(flags: RevisionTree.Flags) throws(LoveseatError) -> RevisionTree.Node {
        // The spelling may differ from peer to peer.
        let edit = try BodyDigest.revisionID(parent: parent, isDeleted: isDeleted, body: body.canonical)
        let id =
            givenUp.isEmpty
            ? edit : VerdictName.id(ofEdit: edit, over: parent, givingUp: givenUp, sha1: Hashing.sha1)
        return RevisionTree.Node(id: id, parent: parent, flags: flags, body: body)
    }
}
