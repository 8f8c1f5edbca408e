import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// What is pulled: all leaves that are not here, with their histories (protocol/couchdb.md §3.1, §3.6).
extension CouchDBSession {
    private static let pageSize = 500
    /// Revisions that are asked for at once, and how many such requests are under way.
    private static let bulkSize = 100
    private static let bulkRequests = 3
    private static let singleRequests = 6
    /// Revisions that are named to the remote so that it leaves out their attachments.
    private static let maximumKnown = 50

    /// A leaf that is not here, and revisions of its document that are.
    struct WantedLeaf: Sendable {
        let leaf: DocumentLeaf
        let known: [RevisionID]
    }

    func pull(_ index: Int) async throws {
        let lane = lanes[index]
        setBusy(true)
        try await pullFailures(lane)
        var isWaiting = false
        while true {
            var query = ChangesQuery(
                lane.selection,
                since: lane.checkpoint.checkpoint.remote,
                limit: Self.pageSize
            )
            if isWaiting { query.heartbeat = heartbeat }
            let begin = ContinuousClock.now
            let page = try await changes(query, of: lane)
            if isWaiting, page.changes.isEmpty, ContinuousClock.now - begin < .seconds(1) {
                // A remote that does not wait is not asked all the time.
                try await Task.sleep(for: .seconds(1))
            }
            let next = page.end.lastSequence ?? page.changes.last?.sequence
            if page.changes.isEmpty {
                lane.checkpoint.advance(to: next)
                if !plan.isContinuous {
                    await saveCheckpoint(lane, isLast: true)
                    return setBusy(false)
                }
                if !isWaiting {
                    await saveCheckpoint(lane, isLast: true)
                    setBusy(false)
                    isWaiting = true
                }
                try Task.checkCancellation()
                continue
            }
            guard next != nil, next != query.since else {
                throw LoveseatError(.remoteError, "the peer's list of changes does not go on")
            }
            if isWaiting { setBusy(true) }
            isWaiting = false
            try await pull(page.changes, lane)
            lane.checkpoint.advance(to: next)
            await saveCheckpoint(lane)
        }
    }

    private func changes(_ query: ChangesQuery, of lane: Lane) async throws -> RemoteDatabase.ChangesPage {
        do { return try await lane.remote.changes(query) } catch let failure as RemoteFailure {
            // A sequence that the remote does not know any more.
            guard failure.status == 400, query.since != nil, failure.reason.lowercased().contains("since")
            else {
                throw failure.failure(of: "_changes")
            }
            lane.checkpoint = RemoteCheckpoint(Checkpoint(completed: lane.checkpoint.checkpoint.completed))
            var query = query
            query.since = nil
            return try await lane.remote.changes(query)
        }
    }

    /// Asks again for documents that could not be stored in earlier sessions.
    private func pullFailures(_ lane: Lane) async throws {
        let ids = try replica.failures(in: lane.index)
        guard !ids.isEmpty, lane.checkpoint.checkpoint.remote != nil else { return }
        let query = ChangesQuery(.documents(ids), since: nil, limit: ids.count)
        let page = try await lane.remote.changes(query)
        let wanted = DocumentSet(ids)
        try await pull(page.changes.filter { wanted.contains($0.documentID) }, lane)
    }

    private func pull(_ changes: [RemoteChange], _ lane: Lane) async throws {
        let wanted = try wanted(of: changes, lane)
        expect(wanted.count)
        var singles: [WantedLeaf] = []
        let batches = stride(from: 0, to: wanted.count, by: Self.bulkSize).map {
            Array(wanted[$0..<min($0 + Self.bulkSize, wanted.count)])
        }
        let (remote, blobs) = (lane.remote, store.blobs)
        try await withThrowingTaskGroup(of: Batch.self) { group in
            var waiting = batches[...]
            func begin() {
                guard let batch = waiting.popFirst() else { return }
                group.addTask { try await Self.fetch(batch, from: remote, blobs: blobs) }
            }
            for _ in 0..<Self.bulkRequests { begin() }
            while let batch = try await group.next() {
                begin()
                singles += batch.singles
                finish(batch.gone, isPush: false)
                try await save(batch.fetched, lane)
            }
        }
        try await withThrowingTaskGroup(of: Single.self) { group in
            var waiting = singles[...]
            func begin() {
                guard let single = waiting.popFirst() else { return }
                group.addTask { try await Self.fetch(single, from: remote, blobs: blobs) }
            }
            for _ in 0..<Self.singleRequests { begin() }
            while let single = try await group.next() {
                begin()
                switch single.result {
                case .success(let fetched?): try await save([fetched], lane)
                case .success(nil): finish(1, isPush: false)
                case .failure(let failure): try fail(single.leaf, failure, lane)
                }
            }
        }
    }

    /// The leaves that are not here.
    private func wanted(of changes: [RemoteChange], _ lane: Lane) throws -> [WantedLeaf] {
        var asked: [(id: String, revisions: [RevisionID])] = []
        for change in changes {
            if let ids = lane.documentIDs, !ids.contains(change.documentID) { continue }
            // Documents that no database can have, such as users of a Sync Gateway.
            guard (try? IncomingDocument.check(change.documentID)) != nil,
                !change.documentID.hasPrefix("_local/")
            else { continue }
            var revisions: [RevisionID] = []
            for text in change.revisions {
                do { revisions.append(try RevisionText.parse(text)) } catch {
                    let leaf = DocumentLeaf(
                        documentID: change.documentID,
                        revision: RevisionID(generation: 1, digest: [])
                    )
                    try fail(
                        leaf,
                        LoveseatError(.remoteError, "the revision \"\(text)\" cannot be stored here"),
                        lane
                    )
                }
            }
            asked.append((change.documentID, revisions))
        }
        return try store.readManyRows { view in
            var wanted: [WantedLeaf] = []
            for (id, revisions) in asked {
                guard let record = try view.record(id, in: lane.handle) else {
                    wanted += revisions.map {
                        WantedLeaf(leaf: DocumentLeaf(documentID: id, revision: $0), known: [])
                    }
                    continue
                }
                let branches = try DocumentBranches(of: record)
                let known = branches.leaves.filter { $0.body != nil }.prefix(Self.maximumKnown).map(\.id)
                for revision in revisions where !branches.contains(revision) {
                    let leaf = DocumentLeaf(documentID: id, revision: revision)
                    wanted.append(WantedLeaf(leaf: leaf, known: known))
                }
            }
            return wanted
        }
    }

    // MARK: Fetching

    private struct Batch: Sendable {
        var fetched: [FetchedRevision] = []
        /// What has to be fetched by itself.
        var singles: [WantedLeaf] = []
        /// How many revisions the remote does not have any more.
        var gone = 0
    }

    private struct Single: Sendable {
        let leaf: DocumentLeaf
        let result: Result<FetchedRevision?, LoveseatError>
    }

    /// Fetches revisions at once, as far as they have no attachments.
    private static func fetch(_ wanted: [WantedLeaf], from remote: RemoteDatabase, blobs: BlobFiles)
        async throws -> Batch
    {
        var batch = Batch()
        guard let items = try await remote.bulkGet(wanted.map(\.leaf)), items.count == wanted.count else {
            batch.singles = wanted
            return batch
        }
        for (item, wanted) in zip(items, wanted) {
            guard item.documentID.isExactly(wanted.leaf.documentID) else {
                batch.singles.append(wanted)
                continue
            }
            guard !item.documents.isEmpty else {
                // Anything but a revision that is gone has a reason that the single request tells.
                if item.error == "not_found" { batch.gone += 1 } else { batch.singles.append(wanted) }
                continue
            }
            do {
                var found: [FetchedRevision] = []
                for document in item.documents {
                    let incoming = try IncomingDocument(document)
                    guard incoming.attachments.isEmpty, !incoming.history.isEmpty else {
                        throw CouchDBError.missing
                    }
                    found.append(
                        FetchedRevision(
                            document: PreparedDocument(incoming, id: wanted.leaf.documentID),
                            pins: BlobPins(blobs)
                        )
                    )
                }
                batch.fetched += found
            } catch { batch.singles.append(wanted) }
        }
        return batch
    }

    /// Fetches a revision by itself, with its attachments.
    private static func fetch(_ wanted: WantedLeaf, from remote: RemoteDatabase, blobs: BlobFiles)
        async throws -> Single
    {
        do {
            var fetched = try await remote.revision(wanted.leaf, known: wanted.known, blobs: blobs)
            if let found = fetched, !wanted.known.isEmpty, found.document.lacksBlobs(keeping: found.pins) {
                fetched = try await remote.revision(wanted.leaf, known: [], blobs: blobs)
            }
            return Single(leaf: wanted.leaf, result: .success(fetched))
        } catch let error as CouchDBError {
            return Single(
                leaf: wanted.leaf,
                result: .failure(LoveseatError(.remoteError, "the peer sent it damaged: \(error.reason)"))
            )
        } catch let error as MultipartError {
            let failure = LoveseatError(.remoteError, "the peer sent it damaged: \(error)")
            return Single(leaf: wanted.leaf, result: .failure(failure))
        } catch let failure as RemoteFailure {
            // One document that the peer cannot give must not keep the others back.
            guard [400, 403, 406, 410, 413, 414].contains(failure.status), !failure.isLockedOut else {
                throw failure.failure(of: "the document \"\(wanted.leaf.documentID)\"")
            }
            return Single(leaf: wanted.leaf, result: .failure(failure.failure(of: "the document")))
        } catch let error as AnswerTooLarge {
            return Single(leaf: wanted.leaf, result: .failure(error.failure))
        }
    }

    // MARK: Storing

    private enum Stored: Sendable {
        case stored(hasConflict: Bool)
        case filtered
        /// A stub means an attachment that is not here.
        case lacksAttachments
        case failed(LoveseatError)
    }

    private func save(_ fetched: [FetchedRevision], _ lane: Lane) async throws {
        guard !fetched.isEmpty else { return }
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
                report(document.id, lane, isPush: false, isDeleted: document.isDeleted)
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
                switch whole.result {
                case .success(let again?) where !again.document.hasStubs: try await save([again], lane)
                case .success(nil): finish(1, isPush: false)
                case .success:
                    let error = LoveseatError(.remoteError, "the peer does not send all attachments")
                    try fail(leaf, error, lane)
                case .failure(let error): try fail(leaf, error, lane)
                }
            case .failed(let error): try fail(leaf, error, lane)
            }
        }
        let ids = stored.keys.map(\.text).sorted()
        try replica.forgetFailures(ids, in: lane.index)
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
        if !marked.isEmpty { try replica.markSynced(marked, in: lane.index) }
        for id in conflicts.sorted { await resolve(id, stored[ExactText(id)] ?? [], lane) }
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
        let asksResolver = lane.rules.asksResolver
        return try store.write(call: "replication") { transaction in
            try zip(fetched, admitted).map { fetched, isAdmitted -> Stored in
                guard isAdmitted else { return .filtered }
                do {
                    _ = try DocumentSaving.save(
                        fetched.document,
                        isNewEdit: false,
                        in: lane.handle,
                        transaction
                    )
                } catch let error as CouchDBError {
                    if error.status == 412 { return .lacksAttachments }
                    return .failed(LoveseatError(.remoteError, "it cannot be stored here: \(error.reason)"))
                } catch let refusal as RevisionTree.InsertRefusal {
                    return .failed(
                        LoveseatError(.remoteError, "its history cannot be stored here: \(refusal)")
                    )
                } catch let error as LoveseatError where error.code == .corruptRevisionData {
                    return .failed(error)
                }
                guard asksResolver,
                    let record = try transaction.record(fetched.document.id, in: lane.handle)
                else { return .stored(hasConflict: false) }
                return .stored(hasConflict: try !DocumentBranches(of: record).conflicts.isEmpty)
            }
        }
    }

    private func resolve(_ id: String, _ pulled: [RevisionID], _ lane: Lane) async {
        var notice = ConflictNotice(collection: lane.index, documentID: id, peer: .loveseat)
        notice.pulled = pulled
        lane.hasResolved = true
        if let error = await hooks.resolve(notice) {
            report(id, lane, isPush: false, isDeleted: false, error: error)
        }
    }

    private func fail(_ leaf: DocumentLeaf, _ error: LoveseatError, _ lane: Lane) throws {
        finish(1, isPush: false)
        report(leaf.documentID, lane, isPush: false, isDeleted: false, error: error)
        let failed = DocumentRevision(documentID: leaf.documentID, revision: leaf.revision)
        try replica.noteFailure(failed, error, in: lane.index)
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
