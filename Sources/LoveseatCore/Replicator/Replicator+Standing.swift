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
        guard config.replicatorType != .pull else { return .notPushed }
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping {
            let store = pending.setup.store
            let handle = pending.setup.handles[pending.index]
            let key = Refusal.key(documentID, in: handle, remote: pending.setup.remote)
            let (record, refusal) = try store.read {
                (try $0.record(documentID, in: handle), try $0.localCheckpoint(key).flatMap { Refusal($0) })
            }
            guard let record else { return .notHere }
            if try pending.isAtPeer(record) { return .upToDate }
            if !pending.isListed(documentID) { return .notListed }
            if let refusal, refusal.revision == record.revision { return .refused(refusal.error) }
            if record.hasConflicts { return .inConflict }
            if pending.isExpired(record) { return .expired }
            if !pending.passes(FilterCandidate(record)) { return .filtered }
            return try pending.contains(documentID) ? .pending : .passedOver
        }
    }
}

/// The last error that a revision met, kept beside the checkpoints.
struct Refusal {
    let revision: RevisionID
    let error: LoveseatError

    static func key(_ id: String, in collection: CollectionHandle, remote: Int) -> String {
        "refused/\(remote)/\(collection.number)/\(id)"
    }

    init?(_ json: JSONText) {
        let element = JSONElement(json)
        guard let revision = element["revision"]?.string.flatMap({ RevisionID($0) }),
            let code = element["code"]?.int, let message = element["message"]?.string
        else { return nil }
        let domain = element["domain"]?.string.flatMap { LoveseatError.Domain(rawValue: $0) }
        self.revision = revision
        error = LoveseatError(.init(code, domain: domain ?? .couchbaseLite), message)
    }

    /// Keeps the error of a document's current revision.
    static func note(_ error: LoveseatError, of id: String, _ index: Int, _ setup: ReplicationSetup) {
        let handle = setup.handles[index]
        // Only for people to read: that it cannot be kept changes nothing.
        try? setup.store.write { transaction in
            guard let record = try transaction.record(id, in: handle) else { return }
            let json: JSONValue = [
                "revision": .string(record.revision.text), "code": JSONValue(error.code.value),
                "domain": .string(error.code.domain.rawValue), "message": .string(error.message),
            ]
            try transaction.saveLocalCheckpoint(
                key(id, in: handle, remote: setup.remote),
                JSONText(canonical: json)
            )
        }
    }
}
