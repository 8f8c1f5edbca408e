import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Documents that could not be stored when they were pulled. They are kept beside the checkpoints, until they come.
extension CollectionReplica {
    /// The maximum number of failures. A peer with more documents that cannot be stored is not a peer to pull from.
    private static let failuresKept = 10_000

    package func failures() throws(LoveseatError) -> [String] {
        guard remote != nil else { return [] }
        let ids = try source.asking { try source.failures(index) }
        failed = DocumentSet(ids)
        return ids
    }

    package func noteFailure(_ revision: DocumentRevision, _ error: LoveseatError) throws(LoveseatError) {
        guard let remote else { return impossible("a passive peer asks for nothing again") }
        failed.insert(revision.documentID)
        guard failed.count <= Self.failuresKept else {
            throw LoveseatError(
                .remoteError,
                "\(Self.failuresKept) documents of the peer could not be stored, the last one because: \(error.message)"
            )
        }
        let failure = DocumentFailure(revision: revision.revision, error: error)
        let key = DocumentFailure.key(.pull, revision.documentID, in: collection, remote: remote)
        try source.asking {
            try store.write(call: "replication") {
                try $0.checkpointTables.saveLocalCheckpoint(key, failure.json)
            }
        }
    }

    /// Forgets the failures of documents that have arrived after all, or that the peer no longer gives.
    package func forgetFailures(_ ids: [String]) throws(LoveseatError) {
        // A passive side notes no failures, and an active one rarely has any.
        guard let remote, !failed.isEmpty else { return }
        let settled = ids.filter(failed.contains)
        if settled.isEmpty { return }
        try source.asking {
            try DocumentFailure.forgetPulls(settled, in: collection, remote: remote, store)
        }
        failed.subtract(DocumentSet(settled))
    }
}

/// The last error of a revision, kept beside the checkpoints.
struct DocumentFailure {
    enum Direction: String {
        /// The names are those of the stored keys.
        case push = "refused"
        case pull = "unpulled"
    }

    /// The revision that was refused; nil for one whose ID cannot be read.
    let revision: RevisionName?
    let error: LoveseatError

    init(revision: RevisionName, error: LoveseatError) { (self.revision, self.error) = (revision, error) }

    static func prefix(_ direction: Direction, in collection: CollectionHandle, remote: Int) -> String {
        "\(prefix(direction, remote: remote))\(collection.number)/"
    }

    /// The beginning of the keys of all collections.
    static func prefix(_ direction: Direction, remote: Int) -> String { "\(direction.rawValue)/\(remote)/" }

    static func key(_ direction: Direction, _ id: String, in collection: CollectionHandle, remote: Int)
        -> String
    {
        prefix(direction, in: collection, remote: remote) + id
    }

    /// The number of the collection and the document's ID, of a key without the prefix of all collections; nil if it is none.
    static func place(_ key: String) -> (collection: Int64, documentID: String)? {
        let bytes = key.utf8
        guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")),
            let number = Int64(key[..<slash])
        else { return nil }
        return (number, String(key[bytes.index(after: slash)...]))
    }

    init?(_ json: JSONText) {
        let element = JSONElement(json)
        guard let code = element["code"]?.int, let message = element["message"]?.string
        else { return nil }
        let domain = element["domain"]?.string.flatMap { LoveseatError.Domain(rawValue: $0) }
        revision = element["revision"]?.string.flatMap { RevisionName(stored: $0) }
        error = LoveseatError(.init(code, domain: domain ?? .couchbaseLite), message)
    }

    var json: JSONText {
        let json: JSONValue = [
            "revision": revision.map { .string($0.text) } ?? .null, "code": JSONValue(error.code.value),
            "domain": .string(error.code.domain.rawValue), "message": .string(error.message),
        ]
        return JSONText(canonical: json)
    }

    /// Forgets why documents could not be pulled.
    static func forgetPulls(
        _ ids: [String],
        in collection: CollectionHandle,
        remote: Int,
        _ store: DocumentStore
    ) throws {
        try store.write(call: "replication") { transaction in
            for id in ids {
                try transaction.checkpointTables.removeLocalCheckpoint(
                    key(.pull, id, in: collection, remote: remote)
                )
            }
        }
    }

    /// Keeps the error of a document's current revision that could not be pushed.
    static func notePush(_ error: LoveseatError, of id: String, _ index: Int, _ setup: ReplicationSetup) {
        let handle = setup.handles[index]
        // The error is only for people to read: if it cannot be kept, nothing else changes.
        try? setup.store.write(call: "replication") { transaction in
            // The document was purged while it was on its way.
            guard let record = try transaction.record(id, in: handle) else { return }
            try transaction.checkpointTables.saveLocalCheckpoint(
                key(.push, id, in: handle, remote: setup.remote),
                DocumentFailure(revision: .revision(record.revision), error: error).json
            )
        }
    }
}
