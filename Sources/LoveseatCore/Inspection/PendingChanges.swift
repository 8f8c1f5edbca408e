package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// A remote database that this one has replicated with, for questions that need no connection.
private struct RememberedRemote: PeerEndpoint {
    let remoteName: String

    func validate() throws(LoveseatError) {}

    func replicate(with request: ReplicationRequest) async throws -> any Replication {
        throw LoveseatError(.unsupported, "\(remoteName) is only remembered: replicate with its endpoint")
    }
}

/// A document that is not at a remote database as it is here.
package struct PendingDocument: Sendable {
    package let collection: String
    package let id: String
    package let state: SyncState
}

/// The documents of a database that are known not to be at a remote database as they are here, for tools.
package struct PendingChanges {
    private let database: Database

    package init(_ database: Database) { self.database = database }

    /// Calls a closure with each document that is known not to be at a remote database as it is here, or the other way round.
    ///
    /// The remote is not asked. Filters of an earlier replicator are not known, so that documents that they leave out count as pending.
    package func forEach(at remote: String, _ body: (PendingDocument) throws -> Void) throws {
        for collection in try DatabaseInspection(database).collections() {
            try replicator(with: remote, collection).forEachPending(body)
        }
    }

    /// The number of documents that have changed after a sequence of a collection; at most `limit`.
    package func changeCount(of collection: CollectionName, after sequence: UInt64, limit: Int) throws -> Int
    {
        try DocumentStore.wrapping {
            try database.store.read { view in
                guard let handle = view.collections.first(where: { $0.name == collection }) else { return 0 }
                return try view.changeCount(in: handle, after: sequence, limit: limit)
            }
        }
    }

    /// Returns whether a remote database has a document as it is here, and if not, why.
    package func syncState(of document: String, in collection: Collection, at remote: String) throws
        -> SyncState
    {
        try replicator(with: remote, collection).syncState(of: document, collection: collection)
    }

    /// Deletions that a remote database with which this one has replicated is not known to have.
    package struct Deletions: Sendable {
        package let remote: String
        fileprivate let documents: [(collection: CollectionHandle, id: String)]
    }

    /// The deletions that are pending at the remote databases, each with any. This reads all documents that changed since they were there.
    package func deletions() throws -> [Deletions] {
        let collections = try DatabaseInspection(database).collections()
        return try PeerRecords(database).remotes(limit: 1_000).compactMap { remote in
            var documents: [(collection: CollectionHandle, id: String)] = []
            for collection in collections {
                let ids = try replicator(with: remote, collection).pendingDocumentIds(collection: collection)
                documents += try deleted(among: ids.map { (collection.handle, $0) })
            }
            return documents.isEmpty ? nil : Deletions(remote: remote, documents: documents)
        }
    }

    /// The number of those deletions that have been forgotten here since.
    package func forgottenCount(of deletions: Deletions) throws -> Int {
        try deletions.documents.count - deleted(among: deletions.documents).count
    }

    private func deleted(among documents: [(collection: CollectionHandle, id: String)]) throws
        -> [(collection: CollectionHandle, id: String)]
    {
        try DocumentStore.wrapping {
            try database.store.readManyRows { view in
                try documents.filter { try view.record($0.id, in: $0.collection)?.isDeleted == true }
            }
        }
    }

    /// The kind of replication with which the remote was used: the one that has a checkpoint.
    private func replicator(with remote: String, _ collection: Collection) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: collection)],
            target: RememberedRemote(remoteName: remote)
        )
        for type in [ReplicatorType.pushAndPull, .push] {
            configuration.replicatorType = type
            let replicator = Replicator(configuration)
            if try replicator.hasCheckpoint() { return replicator }
        }
        configuration.replicatorType = .pushAndPull
        return Replicator(configuration)
    }
}

extension Replicator {
    /// Calls a closure with each document that is known not to be at the peer as it is here, or the other way round, by this configuration.
    package func forEachPending(_ body: (PendingDocument) throws -> Void) throws {
        for collection in config.collections.map(\.collection) {
            func report(_ id: String, _ state: SyncState) throws {
                try body(PendingDocument(collection: collection.fullName, id: id, state: state))
            }
            func report(
                _ errors: [(id: String, error: LoveseatError)],
                _ state: (LoveseatError) -> SyncState
            ) throws {
                for (id, error) in errors.sorted(by: { $0.id.bytesPrecede($1.id) }) {
                    try report(id, state(error))
                }
            }
            if config.replicatorType != .pull {
                for id in try pendingDocumentIds(collection: collection) { try report(id, .pending) }
                let refused = try refusedDocuments(collection: collection).map {
                    (id: $0.documentID, error: $0.error)
                }
                try report(refused) { .refused($0) }
            }
            for id in try CollectionConflicts(collection).unresolvedIDs() { try report(id, .inConflict) }
            if config.replicatorType != .push {
                try report(try pullFailures(collection)) { .notPulled($0) }
            }
        }
    }

    /// The documents that are on their way over the current connection, or wait for their turn; nil if there is no connection.
    package func pending(listing limit: Int, unread: Int) async -> PendingTransfers? {
        await supervisor.replication?.pending(listing: limit, unread: unread)
    }

    fileprivate func hasCheckpoint() throws -> Bool {
        let setup = try ReplicationSetup(config, registersPeer: false)
        return try DocumentStore.wrapping {
            try setup.store.readRows { view in
                try setup.checkpointIDs.contains { try view.localCheckpoint($0) != nil }
            }
        }
    }

    /// The documents that could not be pulled, with the reasons.
    fileprivate func pullFailures(_ collection: Collection) throws -> [(id: String, error: LoveseatError)] {
        let setup = try ReplicationSetup(config, registersPeer: false)
        let prefix = DocumentFailure.prefix(.pull, in: collection.handle, remote: setup.remote)
        let notes = try DocumentStore.wrapping {
            try setup.store.readRows { try $0.localCheckpoints(prefix: prefix) }
        }
        return notes.compactMap { id, note in DocumentFailure(note).map { (id.text, $0.error) } }
    }
}
