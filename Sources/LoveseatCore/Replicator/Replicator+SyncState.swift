public import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Whether a peer has a document as this database has it, and if not, why.
public enum SyncState: Hashable, Sendable {
    /// The document does not exist in this database.
    case notHere
    /// The peer is known to have the current revision.
    case upToDate
    /// The document has a change that is pushed when the replicator runs.
    case pending
    /// The document has a conflict that was not resolved yet. It is not pushed before that.
    case inConflict
    /// The document is not among ``CollectionConfiguration/documentIDs``.
    case notListed
    /// The push filter leaves the document out.
    case filtered
    /// The peer refused the current revision, or a resolver failed.
    case refused(LoveseatError)
    /// The peer has a revision that could not be stored here. The replicator asks for it again when it runs.
    case notPulled(LoveseatError)
    /// The replicator only pulls, so the document is not pushed.
    case notPushed
    /// The document has expired and is about to be purged.
    case expired
    /// An earlier run passed over the document, for example because of another filter. It is pushed when it changes, or
    /// after a reset.
    case passedOver
}

extension Replicator {
    /// Returns whether the peer has a document as this database has it, and if not, why.
    ///
    /// The answer is from this database; the peer is not asked. The push filter may be called. This call blocks the thread while it reads.
    ///
    /// - Throws: ``LoveseatError``: `notOpen` if the collection is not in the configuration, or was deleted or closed.
    public func syncState(of documentID: String, collection: Collection) throws(LoveseatError)
        -> SyncState
    {
        if config.replicatorType != .push, let error = try pullFailure(of: documentID, collection) {
            return .notPulled(error)
        }
        guard config.replicatorType != .pull else { return .notPushed }
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping {
            let store = pending.setup.store
            let handle = pending.handle
            let key = DocumentFailure.key(.push, documentID, in: handle, remote: pending.setup.remote)
            let (record, refusal, known) = try store.read {
                (
                    try $0.record(documentID, in: handle),
                    try $0.localCheckpoint(key).flatMap { DocumentFailure($0) },
                    try pending.known($0)
                )
            }
            guard let record else { return .notHere }
            if try pending.isAtPeer(record, known) { return .upToDate }
            if !pending.isListed(documentID) { return .notListed }
            if let refusal, refusal.revision == .revision(record.revision) { return .refused(refusal.error) }
            if record.hasConflicts { return .inConflict }
            if pending.isExpired(record) { return .expired }
            if !pending.passes(FilterCandidate(record)) { return .filtered }
            return try pending.contains(documentID) ? .pending : .passedOver
        }
    }

    /// The error with which a document could not be pulled; nil if there was none.
    private func pullFailure(of id: String, _ collection: Collection) throws(LoveseatError) -> LoveseatError?
    {
        guard config.collections.contains(where: { $0.collection == collection }) else { return nil }
        let setup = try ReplicationSetup(config, registersPeer: false)
        let key = DocumentFailure.key(.pull, id, in: collection.handle, remote: setup.remote)
        return try DocumentStore.wrapping {
            try setup.store.readRows { try $0.localCheckpoint(key) }.flatMap { DocumentFailure($0)?.error }
        }
    }
}
