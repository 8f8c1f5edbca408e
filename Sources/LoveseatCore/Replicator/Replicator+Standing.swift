public import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Why a document is at the peer as it is here, or is not.
public enum DocumentStanding: Hashable, Sendable {
    /// There is no such document here.
    case notHere
    /// The peer is known to have the current revision.
    case upToDate
    /// It will be pushed when the replicator runs.
    case pending
    /// Its conflict waits to be resolved; until then it is not pushed.
    case inConflict
    /// It is not among the configuration's documents.
    case notListed
    /// The push filter keeps it here.
    case filtered
    /// The peer refused the current revision, or a resolver failed.
    case refused(LoveseatError)
    /// The peer has a revision that could not be stored here. The replicator asks for it again by its ID when it runs.
    case notPulled(LoveseatError)
    /// The replicator only pulls.
    case notPushed
    /// Its time is up; it is about to be purged.
    case expired
    /// It was looked at and is not to be pushed: a later run pushes what changes after it, or everything after a reset.
    case passedOver
}

extension Replicator {
    /// Why a document is at the peer as it is here, or is not, as far as this database knows.
    ///
    /// - Throws: ``LoveseatError``: `notOpen` for a collection that is not in the configuration or is closed.
    public func standing(of documentID: String, collection: Collection) throws(LoveseatError)
        -> DocumentStanding
    {
        if config.replicatorType != .push, let error = try pullFailure(of: documentID, collection) {
            return .notPulled(error)
        }
        guard config.replicatorType != .pull else { return .notPushed }
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping {
            let store = pending.setup.store
            let handle = pending.setup.handles[pending.index]
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
            if let refusal, refusal.revision == record.revision { return .refused(refusal.error) }
            if record.hasConflicts { return .inConflict }
            if pending.isExpired(record) { return .expired }
            if !pending.passes(FilterCandidate(record)) { return .filtered }
            return try pending.contains(documentID) ? .pending : .passedOver
        }
    }

    /// Why a document could not be pulled; nil if it could, or nobody tried.
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
