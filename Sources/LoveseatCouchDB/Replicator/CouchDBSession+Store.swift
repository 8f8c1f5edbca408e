import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Stores fetched revisions, and records those that could not be fetched.
extension CouchDBSession {
    private enum Stored: Sendable {
        case stored(hasConflict: Bool)
        case filtered
        /// A stub means an attachment that is not here.
        case lacksAttachments
        case failed(LoveseatError)
    }

    func save(_ fetched: [FetchedRevision], _ lane: Lane) async throws {
        for removed in fetched where removed.document.isRemoved {
            finish(1, isPush: false)
            try takeAway(removed.document.id, removed.document.history.first, lane)
        }
        let fetched = fetched.filter { !$0.document.isRemoved }
        if fetched.isEmpty { return }
        let results = try insert(fetched, lane)
        var stored: DocumentMap<[RevisionID]> = [:]
        var conflicts: DocumentSet = []
        for (fetched, result) in zip(fetched, results) {
            let document = fetched.document
            let leaf = DocumentLeaf(
                documentID: document.id,
                revision: document.history.first ?? RevisionID(generation: 1, digest: [])
            )
            switch result {
            case .stored(let hasConflict):
                finish(1, bytes: document.body.bytes.count, documents: 1, isPush: false)
                // If another of its revisions has failed, only that failure is reported.
                if !lane.unsettled.contains(document.id) {
                    report(document.id, lane, isPush: false, isDeleted: document.isDeleted)
                }
                stored[ExactText(document.id), default: []].append(leaf.revision)
                if hasConflict { conflicts.insert(document.id) }
            case .filtered:
                finish(1, isPush: false)
                report(
                    document.id,
                    lane,
                    isPush: false,
                    isDeleted: document.isDeleted,
                    error: .rejectedByPullFilter
                )
            case .lacksAttachments:
                let whole = try await Self.fetch(
                    WantedLeaf(leaf: leaf, known: []),
                    from: lane.remote,
                    blobs: store.blobs
                )
                switch whole.outcome {
                case .fetched(let again) where !again.document.hasStubs: try await save([again], lane)
                case .fetched:
                    let error = LoveseatError(.remoteError, "the peer does not send all attachments")
                    try fail(leaf, error, lane)
                case .missing: try noteMissing(leaf, lane)
                case .failed(let error): try fail(leaf, error, lane)
                case .doubtful(let failure): try fail(leaf, failure.failure(of: "the document"), lane)
                }
            case .failed(let error): try fail(leaf, error, lane)
            }
        }
        let ids = stored.keys.sorted().map(\.text)
        try lane.replica.forgetFailures(ids.filter { !lane.unsettled.contains($0) })
        let marked = try records(ids, lane).compactMap { record -> SyncedRevision? in
            // Of several branches some may not be there.
            guard stored[ExactText(record.id)]?.contains(record.revision) == true,
                try record.encodedTree == nil || record.tree().isLine
            else { return nil }
            return SyncedRevision(
                documentID: record.id,
                revision: record.revision,
                sequence: record.sequence
            )
        }
        if !marked.isEmpty { try lane.replica.markSynced(marked) }
        for id in conflicts.sorted {
            var notice = ConflictNotice(collection: lane.index, documentID: id, peer: .loveseat)
            notice.pulled = stored[ExactText(id)]
            await resolve(notice, lane)
        }
    }

    private func records(_ ids: [String], _ lane: Lane) throws -> [DocumentRecord] {
        try store.readRows { view in try ids.compactMap { try view.record($0, in: lane.handle) } }
    }

    private func insert(_ fetched: [FetchedRevision], _ lane: Lane) throws -> [Stored] {
        // The app's filter may use the database.
        let admitted = fetched.map { fetched in
            guard let filter = lane.rules.pullFilter else { return true }
            let document = fetched.document
            return filter(
                FilterCandidate(
                    documentID: document.id,
                    revision: document.history.first ?? RevisionID(generation: 1, digest: []),
                    isDeleted: document.isDeleted,
                    body: document.body
                ),
                false
            )
        }
        let accepted = zip(fetched, admitted).filter(\.1).map(\.0.document)
        let asksResolver = lane.rules.asksResolver
        return try store.write(call: "replication") { transaction in
            var results = try DocumentSaving.saveReplicated(accepted, in: lane.handle, transaction)[...]
            let inConflict = asksResolver ? try Self.inConflict(accepted, lane, transaction) : []
            return try zip(fetched, admitted).map { fetched, isAdmitted in
                guard isAdmitted else { return .filtered }
                guard let result = results.popFirst() else {
                    impossible("a revision that was to be saved has no result")
                    return .failed(LoveseatError(.unexpectedError, "it is asked for again in the next run"))
                }
                return try Self.outcome(result, hasConflict: inConflict.contains(fetched.document.id))
            }
        }
    }

    /// Those documents that have conflicts now.
    private static func inConflict(
        _ documents: [PreparedDocument],
        _ lane: Lane,
        _ transaction: StoreWriteTransaction
    ) throws -> DocumentSet {
        DocumentSet(
            try DocumentSet(documents.map(\.id)).sorted.filter { id in
                guard let record = try transaction.record(id, in: lane.handle) else { return false }
                return try !DocumentBranches(of: record).conflicts.isEmpty
            }
        )
    }

    private static func outcome(_ result: Result<RevisionID, any Error>, hasConflict: Bool) throws -> Stored {
        do {
            _ = try result.get()
            return .stored(hasConflict: hasConflict)
        } catch let error as CouchDBError {
            if error.status == 412 { return .lacksAttachments }
            return .failed(LoveseatError(.remoteError, "it cannot be stored here: \(error.reason)"))
        } catch let refusal as RevisionTree.InsertRefusal {
            return .failed(LoveseatError(.remoteError, "its history cannot be stored here: \(refusal)"))
        } catch let error as LoveseatError where error.code == .corruptRevisionData { return .failed(error) }
    }

    func resolve(_ notice: ConflictNotice, _ lane: Lane) async {
        lane.hasResolved = true
        if let error = await hooks.resolve(notice) {
            report(notice.documentID, lane, isPush: false, isDeleted: false, error: error)
        }
    }

    func fail(_ leaf: DocumentLeaf, _ error: LoveseatError, _ lane: Lane) throws {
        finish(1, isPush: false)
        report(leaf.documentID, lane, isPush: false, isDeleted: false, error: error)
        try keep(leaf, error, lane)
    }

    /// The remote lists a revision that it does not have. It may have got a newer one since, or one of its machines lags behind: this is
    /// found out at the end of the list.
    func noteMissing(_ leaf: DocumentLeaf, _ lane: Lane) throws {
        finish(1, isPush: false)
        lane.missing.insert(leaf.documentID)
        try keep(leaf, LoveseatError(.httpNotFound, "the peer does not have it"), lane)
    }

    private func keep(_ leaf: DocumentLeaf, _ error: LoveseatError, _ lane: Lane) throws {
        lane.unsettled.insert(leaf.documentID)
        let failed = DocumentRevision(documentID: leaf.documentID, revision: leaf.revision)
        try lane.replica.noteFailure(failed, error)
    }

    /// A gateway shows the document to this peer no more.
    func takeAway(_ id: String, _ revision: RevisionID?, _ lane: Lane) throws {
        // It lists also what this peer never had.
        guard lane.documentIDs?.contains(id) ?? true, try !records([id], lane).isEmpty else { return }
        var error: LoveseatError?
        if plan.autoPurges {
            let removal = AccessRemoval(documentID: id, revision: revision)
            for verdict in try lane.replica.removeAccess([removal]) {
                error = LoveseatError(keeping: id, verdict)
            }
        }
        hooks.report(
            .document(
                DocumentEvent(
                    collection: lane.index,
                    documentID: id,
                    isPush: false,
                    isDeleted: false,
                    isAccessRemoved: true,
                    error: error
                )
            )
        )
    }
}

extension PreparedDocument {
    /// Whether an attachment came as a stub, other than one for a blob that is here.
    var hasStubs: Bool {
        missingBlob != nil || attachments.contains { if case .stub = $0 { true } else { false } }
    }

    /// Whether the body refers to a blob that is not here. Those that are here are kept.
    func lacksBlobs(keeping pins: BlobPins) -> Bool {
        let digests = BlobReference.all(in: body).map(\.digest)
        for digest in digests { pins.add(digest) }
        return digests.contains { !pins.blobs.contains($0) }
    }
}
