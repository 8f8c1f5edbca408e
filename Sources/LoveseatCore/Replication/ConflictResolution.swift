package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// Settles one document's conflicts: reads both sides, asks a resolver, stores what it says (replication.md §13).
package struct ConflictResolution: Sendable {
    package let store: DocumentStore
    package let collection: CollectionHandle
    package let documentID: String
    package let peer: RevisionTree.PeerKind

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

    /// The conflict as it stands; nil once there is none.
    ///
    /// - Throws: ``LoveseatError/Code/notFound`` if the document is gone.
    package func next() throws -> ConflictCase? {
        guard let record = try store.readRows({ try $0.record(documentID, in: collection) }) else {
            throw LoveseatError(.notFound, "document \"\(documentID)\" was purged while its conflict waited")
        }
        guard record.hasConflicts else { return nil }
        let tree = try record.tree()
        guard let remote = tree.pending.first, let body = remote.body else { return nil }
        let base = tree.commonAncestor(record.revision, remote.id).flatMap { tree.node($0) }
        return ConflictCase(
            documentID: documentID,
            local: .init(revision: record.revision, isDeleted: record.isDeleted, body: record.body),
            remote: .init(revision: remote.id, isDeleted: remote.isDeleted, body: body),
            base: base.flatMap { node in
                node.body.map { .init(revision: node.id, isDeleted: node.isDeleted, body: $0) }
            }
        )
    }

    /// Stores a result; false if the document has changed meanwhile, so that the resolver must look again.
    package func store(_ verdict: RevisionTree.Verdict, of conflict: ConflictCase) throws -> Bool {
        try store.write(call: "replication") {
            try $0.resolve(
                documentID,
                in: collection,
                local: conflict.local.revision,
                remote: conflict.remote.revision,
                verdict
            ) != nil
        }
    }

    /// Settles all of them with a resolver that takes its time.
    ///
    /// `resolver`: nil for the rule that all peers share.
    package func run(_ resolver: ((ConflictCase) async throws -> Resolution)?) async throws {
        while let conflict = try next() {
            let verdict = try await resolver?(conflict).verdict(on: conflict, with: peer)
            _ = try store(verdict ?? .byRule, of: conflict)
        }
    }

    /// Settles all of them at once, for resolvers that only look at the conflict.
    package func runNow(_ resolver: (ConflictCase) throws -> Resolution) throws {
        while let conflict = try next() {
            _ = try store(try resolver(conflict).verdict(on: conflict, with: peer), of: conflict)
        }
    }
}
