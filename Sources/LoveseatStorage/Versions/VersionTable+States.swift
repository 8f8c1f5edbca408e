import LoveseatAssertions
package import LoveseatModel

/// States of peers with version vectors (version-vectors.md §11, docs/decisions/0015).
extension VersionTable {
    /// Stores a received state as a revision of the document's tree.
    ///
    /// - Throws: ``RevisionTree/InsertRefusal`` if it may not be stored; ``OtherContent``; ``VersionError`` if the clock refuses one of its
    ///   versions.
    package func insert(_ incoming: IncomingState, in collection: CollectionHandle) throws
        -> RevisionArrival.Outcome
    {
        try transaction.requireOpen(collection)
        let id = incoming.documentID
        let record = try transaction.record(id, in: collection)
        // A document that comes back is no longer purged.
        if catalog.remembersPurges, record == nil {
            _ = try transaction.purgeTable.remove(id, in: collection)
        }
        var tree = try record.map { try $0.tree() } ?? RevisionTree()
        if let remote = incoming.remote, let record, incoming.followed?.contains(record.sequence) == false {
            tree.forgetRemote(remote)
        }
        let before = tree
        let known = record.map { _ in before.vectors.values }
        try accept(incoming.state.vector, over: known, of: id, from: Self.name(incoming.remote))
        let flags = transaction.rowFlags(of: incoming.body, isDeleted: incoming.isDeleted).treeFlags
        var isMended = false
        if let id = incoming.state.name.flatMap(tree.versions.node) {
            isMended = try tree.compare([.init(id: id, parent: nil, flags: flags, body: incoming.body)])
        }
        var arrival = StateArrival(
            documentID: id,
            state: incoming.state,
            flags: flags,
            body: incoming.body,
            sha256: Hashing.sha256
        )
        arrival.parent = incoming.parent
        (arrival.remote, arrival.refusesConflicts) = (incoming.remote, incoming.remote == nil)
        (arrival.asksResolver, arrival.isOutdated) = (incoming.asksResolver, incoming.isOutdated)
        // The peer was told of this revision when it was asked for the state.
        arrival.knownRevision = incoming.remote.flatMap { tree.remotes[$0] } ?? tree.current?.id
        let outcome = try withResolution(of: id) { try arrival.insert(into: &tree, by: &$0) }
        try transaction.documentTable.replace(
            before,
            with: &tree,
            over: record,
            id: id,
            in: collection,
            isMended: isMended
        )
        return outcome
    }

    /// Records that a remote has a state that is known here, or a part of what is here.
    ///
    /// - Throws: ``VersionError`` if the clock refuses one of the versions.
    package func note(_ announced: StateAnnouncement, of id: String, in collection: CollectionHandle) throws {
        // The document may have been purged since the announcement was compared.
        guard let record = try transaction.record(id, in: collection) else { return }
        var tree = try record.tree()
        let before = tree
        try accept(
            announced.state.vector,
            over: before.vectors.values,
            of: id,
            from: Self.name(announced.remote)
        )
        try withResolution(of: id) { try announced.record(in: &tree, by: &$0) }
        try transaction.documentTable.replace(before, with: &tree, over: record, id: id, in: collection)
    }

    /// Gives the current revision of a document a new version (``StateResolution/renew(in:)``).
    package func renew(_ id: String, in collection: CollectionHandle) throws {
        // The document may have been purged meanwhile.
        guard let record = try transaction.record(id, in: collection) else { return }
        var tree = try record.tree()
        let before = tree
        try withResolution(of: id) { try $0.renew(in: &tree) }
        transaction.treePolicy.prune(&tree)
        try transaction.documentTable.replace(before, with: &tree, over: record, id: id, in: collection)
    }

    /// Makes the current revision newer than the states that have lost to it here and include it in turn, for peers with versions.
    func outdoKnown(in tree: inout RevisionTree, of id: String) throws {
        // Only a database that makes versions has met such a peer.
        if catalog.versions == nil || tree.versions.vectorsOverCurrent.isEmpty { return }
        try withResolution(of: id) { resolution in
            try resolution.outdoKnown(in: &tree)
            transaction.treePolicy.prune(&tree)
        }
    }

    /// Settles the conflict between the current revision and a pending one.
    func resolve(
        _ pending: RevisionID,
        _ verdict: ConflictVerdict,
        from peer: RevisionTree.PeerKind,
        of id: String,
        in tree: inout RevisionTree
    ) throws {
        if peer == .versions {
            try withResolution(of: id) { try $0.resolve(pending, verdict, in: &tree) }
        } else {
            try deciding(in: &tree) { try $0.resolve(pending, verdict, from: peer, in: &$1) }
        }
    }

    /// Calls a closure with the means to settle conflicts with states of peers with versions.
    private func withResolution<T>(of id: String, _ body: (inout StateResolution) throws -> T) throws -> T {
        let result = try withAuthor { author, wall in
            var resolution = StateResolution(
                author: author,
                wall: wall,
                policy: transaction.treePolicy,
                documentID: id,
                sha1: Hashing.sha1,
                make: makeNode
            )
            defer { author = resolution.author }
            return try body(&resolution)
        }
        guard let result else {
            throw LoveseatError(.assertionFailed, "a database without a source speaks of versions")
        }
        return result
    }

    /// Names a peer; all without marks have the same name.
    private static func name(_ remote: Int?) -> String { remote.map(String.init) ?? "" }
}
