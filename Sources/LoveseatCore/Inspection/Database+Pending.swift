import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A remote database that this one has replicated with, for questions that need no connection.
private struct RememberedRemote: PeerEndpoint {
    let remoteName: String

    func validate() throws(LoveseatError) {}

    func replicate(with request: ReplicationRequest) async throws -> any Replication {
        throw LoveseatError(.unsupported, "\(remoteName) is only remembered: replicate with its endpoint")
    }
}

extension Database {
    /// A document that is not at a remote database as it is here.
    package struct PendingDocument: Sendable {
        package let collection: String
        package let id: String
        package let state: SyncState
    }

    /// Calls a closure with each document that is known not to be at a remote database as it is here, or the other way round, until it
    /// returns false.
    ///
    /// The remote is not asked. Filters of an earlier replicator are not known, so that documents that they leave out count as pending.
    package func forEachPending(
        at remote: String,
        _ body: (PendingDocument) throws -> Bool
    ) throws {
        for collection in try currentCollections() {
            let replicator = try replicator(with: remote, collection)
            func report(_ id: String, _ state: SyncState) throws -> Bool {
                try body(PendingDocument(collection: collection.fullName, id: id, state: state))
            }
            for id in try replicator.pendingDocumentIds(collection: collection).sorted() {
                guard try report(id, .pending) else { return }
            }
            for id in try collection.conflictedDocumentIDs() {
                guard try report(id, .inConflict) else { return }
            }
            for (id, error) in try replicator.refusedDocuments(collection: collection).sorted(by: {
                $0.key < $1.key
            }) {
                guard try report(id, .refused(error)) else { return }
            }
            for (id, error) in try replicator.pullFailures(collection).sorted(by: { $0.key < $1.key }) {
                guard try report(id, .notPulled(error)) else { return }
            }
        }
    }

    /// Returns whether a remote database has a document as it is here, and if not, why.
    package func syncState(of document: String, in collection: Collection, at remote: String) throws
        -> SyncState
    {
        try replicator(with: remote, collection).syncState(of: document, collection: collection)
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
    fileprivate func hasCheckpoint() throws -> Bool {
        let setup = try ReplicationSetup(config, registersPeer: false)
        return try DocumentStore.wrapping {
            try setup.store.readRows { view in
                try setup.checkpointIDs.contains { try view.localCheckpoint($0) != nil }
            }
        }
    }

    /// The documents that could not be pulled, with the reasons.
    fileprivate func pullFailures(_ collection: Collection) throws -> [String: LoveseatError] {
        let setup = try ReplicationSetup(config, registersPeer: false)
        let prefix = DocumentFailure.prefix(.pull, in: collection.handle, remote: setup.remote)
        let notes = try DocumentStore.wrapping {
            try setup.store.readRows { try $0.localCheckpoints(prefix: prefix) }
        }
        return notes.compactMapValues { DocumentFailure($0)?.error }
    }
}
