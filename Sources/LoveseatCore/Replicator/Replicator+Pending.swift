public import LoveseatModel
import LoveseatReplication
import LoveseatStorage

extension Replicator {
    /// Returns the IDs of documents with changes that this configuration would push and has not pushed, deletions included.
    ///
    /// Documents in conflict are not among them until they are resolved. After a broken connection, a document that the peer has received
    /// may still be among them; the next run finds that out. The push filter is called for each document. This call reads all documents
    /// that changed since the last checkpoint, and blocks the thread meanwhile. It does not need a connection. The IDs are in the order of
    /// their bytes, by which they also differ: two spellings of one text are two.
    ///
    /// - Throws: ``LoveseatError``: `unsupported` for a replicator that only pulls; `notOpen` if the collection is not in the
    ///   configuration, or was deleted or closed.
    public func pendingDocumentIds(collection: Collection) throws(LoveseatError) -> [String] {
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping { try pending.all() }
    }

    /// Returns whether a document has a change that this configuration would push and has not pushed.
    ///
    /// - Throws: ``LoveseatError``, as ``pendingDocumentIds(collection:)``.
    public func isDocumentPending(_ documentID: String, collection: Collection) throws(LoveseatError) -> Bool
    {
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping { try pending.contains(documentID) }
    }

    /// Returns the documents whose current revision the peer forbids (`httpForbidden`), or that are larger than it accepts
    /// (`httpEntityTooLarge`), in the order of their IDs' bytes, with the peer's reasons.
    ///
    /// They are not pending. They are sent again when they change, or after ``start(reset:resetMarks:)`` with a reset.
    ///
    /// - Throws: ``LoveseatError``, as ``pendingDocumentIds(collection:)``.
    public func refusedDocuments(collection: Collection) throws(LoveseatError) -> [(
        documentID: String, error: LoveseatError
    )] {
        let pending = try PendingDocuments(config, collection)
        return try DocumentStore.wrapping { try pending.refused() }
    }
}

extension Replicator {
    /// The number of documents of all collections that the peer refuses (``refusedDocuments(collection:)``).
    package func refusedDocumentCount() throws(LoveseatError) -> Int {
        let notes = try ReplicationSetup.notes(config) { DocumentFailure.prefix(.push, remote: $0) }
        // Nearly always there is none.
        if notes.isEmpty { return 0 }
        let numbers = Set(notes.keys.compactMap { DocumentFailure.place($0.text)?.collection })
        var count = 0
        for entry in config.collections where numbers.contains(entry.collection.handle.number) {
            let pending = try PendingDocuments(config, entry)
            count += try DocumentStore.wrapping { try pending.refused().count }
        }
        return count
    }

    /// The checkpoint of the first collection; nil if there is none yet.
    package func savedCheckpoint() throws(LoveseatError) -> JSONText? {
        try ReplicationSetup(config, registersPeer: false).replicas.replica(of: 0).checkpoint().body
    }
}

/// Compares a collection with the revisions that the peer is known to have.
struct PendingDocuments {
    let setup: ReplicationSetup
    let handle: CollectionHandle
    let rules: CollectionRules

    init(_ config: ReplicatorConfiguration, _ collection: Collection) throws(LoveseatError) {
        guard let entry = config.collections.first(where: { $0.collection == collection }) else {
            throw LoveseatError(
                .notOpen,
                "collection \(collection.fullName) is not in the replicator's configuration"
            )
        }
        try self.init(config, entry)
    }

    init(_ config: ReplicatorConfiguration, _ entry: CollectionConfiguration) throws(LoveseatError) {
        guard config.replicatorType != .pull else {
            throw LoveseatError(
                .unsupported,
                "Pending Document IDs are not supported on pull-only replicators."
            )
        }
        // The other collections say nothing about this one.
        var config = config
        config.collections = [entry]
        setup = try ReplicationSetup(config, registersPeer: false)
        handle = setup.handles[0]
        rules = setup.rules[0]
    }

    /// The assumptions of the next push about the peer.
    struct Known {
        /// The local sequences that the checkpoint covers.
        let completed: SequenceSet
        /// Whether marks for the peer count (docs/decisions/0006-lost-commits.md).
        let believesMarks: Bool

        func covers(_ record: DocumentRecord) -> Bool { completed.contains(record.sequence) }
    }

    func known(_ view: StoreReadTransaction) throws -> Known {
        let id = setup.checkpointIDs[0]
        let marks = try view.marks(of: setup.remote)[handle.number]
        return Known(
            completed: try view.localCheckpoint(id).map { Checkpoint(JSONElement($0)).completed }
                ?? SequenceSet([0...0]),
            believesMarks: marks?.isCovered == true
        )
    }

    func all() throws -> [String] {
        var candidates: [FilterCandidate] = []
        try setup.store.read { view in
            let known = try known(view)
            try view.changes(
                in: handle,
                since: known.completed.completeUpTo ?? 0,
                notSyncedWith: known.believesMarks ? setup.remote : nil
            ) { record in
                if try isPending(record, known) { candidates.append(FilterCandidate(record)) }
                return true
            }
        }
        return DocumentSet(candidates.filter(passes).map(\.documentID)).sorted
    }

    func refused() throws -> [(documentID: String, error: LoveseatError)] {
        return try setup.store.read { view in
            let known = try known(view)
            var refused: DocumentMap<LoveseatError> = [:]
            let notes = try view.localCheckpoints(
                prefix: DocumentFailure.prefix(.push, in: handle, remote: setup.remote)
            )
            for (key, json) in notes {
                let id = key.text
                guard let refusal = DocumentFailure(json), refusal.error.isFinalRefusal, isListed(id),
                    let record = try view.record(id, in: handle),
                    refusal.revision == .revision(record.revision),
                    known.covers(record), try !isAtPeer(record, known)
                else { continue }
                refused[key] = refusal.error
            }
            return refused.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
        }
    }

    func contains(_ id: String) throws -> Bool {
        let candidate = try setup.store.read { view -> FilterCandidate? in
            guard let record = try view.record(id, in: handle),
                try isPending(record, try known(view))
            else { return nil }
            return FilterCandidate(record)
        }
        return candidate.map(passes) ?? false
    }

    private func isPending(_ record: DocumentRecord, _ known: Known) throws -> Bool {
        if known.covers(record) || record.hasConflicts { return false }
        if !isListed(record.id) || isExpired(record) { return false }
        return try !isAtPeer(record, known)
    }

    func isListed(_ id: String) -> Bool { rules.documentIDs?.contains(id) ?? true }

    func isExpired(_ record: DocumentRecord) -> Bool {
        record.expires.map { $0 <= ExpirationTimer.now } ?? false
    }

    /// Whether the peer is known to have the current revision, or the same content under another one.
    func isAtPeer(_ record: DocumentRecord, _ known: Known) throws -> Bool {
        guard known.believesMarks || known.covers(record),
            let mark = try record.remoteAncestor(setup.remote)
        else { return false }
        return try mark == record.revision || record.tree().isCurrent(mark)
    }

    /// The app's code runs outside transactions, since it may use the database.
    func passes(_ candidate: FilterCandidate) -> Bool { rules.pushFilter?(candidate, false) ?? true }
}
