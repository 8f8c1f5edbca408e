import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A replication with a database elsewhere, which a replicator does.
struct RemoteReplication: Sendable {
    let id: String
    let local: Databases.Entry
    let remote: ReplicateRequest.Side
    let configuration: ReplicatorConfiguration

    /// Replicates, and returns the answer for the client.
    func run(_ progress: ReplicationJobs.Progress) async throws -> JSONValue {
        var log = try ReplicationLog(
            id,
            hasDocumentIDs: configuration.collections.first?.documentIDs != nil,
            sides: [local]
        )
        let replicator = Replicator(configuration)
        log.begin(at: try position(of: replicator))
        let batches = replicator.documentReplications
        replicator.start()
        log.counts = await withTaskCancellationHandler {
            var counts = ReplicationLog.Counts()
            for await batch in batches {
                let failures = batch.documents.count { $0.error != nil }
                counts.checked += batch.documents.count + batch.missed
                counts.missing = counts.checked
                counts.read = counts.checked
                counts.written += batch.documents.count + batch.missed - failures
                counts.failures += failures
                progress.update(counts)
            }
            return counts
        } onCancel: {
            replicator.stop()
        }
        let status = await replicator.waitToTheEnd()
        log.advance(to: try position(of: replicator))
        if !log.isUnchanged {
            // Saved even if the replication is cancelled.
            try await Task { [log] in
                try await local.store.writeFromTask(within: nil) { try log.save($0) }
            }.value
        }
        if let error = status.error { throw answer(to: error) }
        try Task.checkCancellation()
        return log.answer
    }

    /// How far the replicator is, as a sequence of the source.
    private func position(of replicator: Replicator) throws -> JSONValue {
        guard let saved = try replicator.savedCheckpoint() else { return 0 }
        let checkpoint = RemoteCheckpoint(JSONElement(saved)).checkpoint
        guard configuration.replicatorType == .push else { return checkpoint.remote?.json ?? 0 }
        return JSONValue(checkpoint.completed.completeUpTo ?? 0)
    }

    /// An error of the replicator in CouchDB's words.
    private func answer(to error: LoveseatError) -> CouchDBError {
        switch error.code {
        case .httpNotFound: .cannotOpen(remote.name)
        case .httpAuthRequired where remote.authorization == nil:
            CouchDBError(401, "unauthorized", "\(remote.name) requires a user name and password")
        case .httpAuthRequired: .wrongCredentials(remote.name)
        case .invalidParameter, .invalidURL, .badDocID, .unsupported: .badRequest(error.message)
        default: CouchDBError(500, "error", error.message)
        }
    }
}
