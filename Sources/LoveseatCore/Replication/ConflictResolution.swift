package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Settles one document's conflicts: reads both sides, asks a resolver, and stores its decision (replication.md §13).
package struct ConflictResolution: Sendable {
    package let store: DocumentStore
    package let collection: CollectionHandle
    package let documentID: String
    package let peer: RevisionTree.PeerKind
    /// The revisions that a peer that keeps branches has sent; nil for conflicts of Couchbase's protocol.
    package var pulled: [RevisionID]?

    package init(
        store: DocumentStore,
        collection: CollectionHandle,
        documentID: String,
        peer: RevisionTree.PeerKind
    ) {
        self.peer = peer
        self.store = store
        self.collection = collection
        self.documentID = documentID
    }

    /// The current conflict; nil if there is none any more.
    ///
    /// - Throws: ``LoveseatError/Code/notFound`` if the document is gone.
    package func next() throws -> ConflictCase? {
        guard let record = try store.readRows({ try $0.record(documentID, in: collection) }) else {
            throw LoveseatError(.notFound, "document \"\(documentID)\" was purged while its conflict waited")
        }
        if let pulled { return try nextOfBranches(record, pulled) }
        guard record.hasConflicts else { return nil }
        let tree = try record.tree()
        guard let remote = tree.pending.first, let body = remote.body else { return nil }
        let base = tree.commonAncestor(record.revision, remote.id).flatMap { tree.node($0) }
        let rounds = VerdictName.disagreements(
            about: record.revision,
            and: remote.id,
            in: tree,
            sha1: Hashing.sha1
        )
        func side(_ id: RevisionID, isDeleted: Bool, _ body: JSONText) -> ConflictCase.Side {
            let version = tree.versions.state(of: id).vector.current
            return .init(revision: id, version: version, isDeleted: isDeleted, body: body)
        }
        return ConflictCase(
            documentID: documentID,
            rounds: rounds,
            local: side(record.revision, isDeleted: record.isDeleted, record.body),
            remote: side(remote.id, isDeleted: remote.isDeleted, body),
            base: base.flatMap { node in
                node.body.map { side(node.id, isDeleted: node.isDeleted, $0) }
            },
            comparesVersions: peer == .versions
        )
    }

    /// The conflict of a live branch with the current revision. Deleted branches have lost already.
    private func nextOfBranches(_ record: DocumentRecord, _ pulled: [RevisionID]) throws -> ConflictCase? {
        let branches = try DocumentBranches(of: record)
        let winner = branches.winner
        guard !winner.isDeleted, let other = branches.conflicts.first else {
            return nil
        }
        func side(_ branch: DocumentBranch) -> ConflictCase.Side {
            .init(revision: branch.id, isDeleted: false, body: branch.body ?? .emptyObject)
        }
        let isTheirs = pulled.contains(winner.id) && !pulled.contains(other.id)
        let (local, remote) = isTheirs ? (other, winner) : (winner, other)
        let ancestor = local.history.first(where: remote.history.contains).flatMap { branches.revision($0) }
        let rounds = try VerdictName.disagreements(
            about: local.id,
            and: remote.id,
            in: record.tree(),
            sha1: Hashing.sha1
        )
        return ConflictCase(
            documentID: documentID,
            rounds: rounds,
            local: side(local),
            remote: side(remote),
            base: ancestor.flatMap { branch in
                branch.body.map { .init(revision: branch.id, isDeleted: branch.isDeleted, body: $0) }
            }
        )
    }

    /// Stores a decision; false if the document has changed meanwhile, so that the resolver must be asked again.
    package func store(_ verdict: ConflictVerdict, of conflict: ConflictCase) throws -> Bool {
        if pulled != nil {
            return try store.write(call: "replication") {
                try $0.resolveBranches(
                    of: documentID,
                    in: collection,
                    local: conflict.local.revision,
                    remote: conflict.remote.revision,
                    verdict
                )
            }
        }
        return try store.write(call: "replication") {
            try $0.resolve(
                documentID,
                in: collection,
                local: conflict.local.revision,
                remote: conflict.remote.revision,
                verdict,
                from: peer
            ) != nil
        }
    }

    /// Settles all conflicts with a resolver that may take its time.
    ///
    /// `resolver`: nil for the rule that all peers share.
    package func run(_ resolver: ((ConflictCase) async throws -> Resolution)?) async throws {
        while let conflict = try next() {
            let verdict = try await resolver?(conflict).verdict(on: conflict, with: peer)
            _ = try store(verdict ?? .byRule, of: conflict)
        }
    }

    /// Settles all conflicts at once, for resolvers that only look at the conflict.
    package func runNow(_ resolver: (ConflictCase) throws -> Resolution) throws {
        while let conflict = try next() {
            _ = try store(try resolver(conflict).verdict(on: conflict, with: peer), of: conflict)
        }
    }
}
