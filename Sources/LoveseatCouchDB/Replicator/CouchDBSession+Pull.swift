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
    /// Bytes of documents with attachments that wait to be stored together.
    private static let bulkBytes = 1 << 20
    private static let bulkRequests = 3
    private static let singleRequests = 6
    /// When a continuous pull asks again for what could not be fetched.
    private static let firstRetryDelay = Duration.seconds(2)
    private static let maximumRetryDelay = Duration.seconds(600)
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
        try await retryUnreadable(lane)
        let earlier = try failures(lane)
        if lane.checkpoint.checkpoint.remote == nil {
            // Everything is listed anyway.
            lane.missing.insert(contentsOf: earlier)
        } else {
            try await retry(earlier, lane)
        }
        var isWaiting = false
        while true {
            var query = ChangesQuery(
                lane.selection,
                since: lane.checkpoint.checkpoint.remote,
                limit: Self.pageSize
            )
            if isWaiting { query.heartbeat = heartbeat }
            let begin = ContinuousClock.now
            guard let page = try await page(query, index, isWaiting: isWaiting) else {
                setBusy(true)
                try await retry(try failures(lane), lane)
                lane.retryDelay = lane.retryDelay.map { min($0 * 2, Self.maximumRetryDelay) }
                if lane.unsettled.isEmpty { lane.retryDelay = nil }
                await saveCheckpoint(lane, isLast: true)
                setBusy(false)
                continue
            }
            if isWaiting, page.isEmpty, ContinuousClock.now - begin < .seconds(1) {
                // A remote that does not wait is not asked all the time.
                try await Task.sleep(for: .seconds(1))
            }
            let next = page.end.lastSequence ?? page.changes.last?.sequence
            if page.isEmpty {
                lane.checkpoint.advance(to: next)
                if !isWaiting { try await retry(lane.missing.sorted, lane) }
                if !plan.isContinuous {
                    await saveCheckpoint(lane, isLast: true)
                    return setBusy(false)
                }
                if !isWaiting {
                    if try failures(lane).isEmpty {
                        lane.retryDelay = nil
                    } else if lane.retryDelay == nil {
                        lane.retryDelay = Self.firstRetryDelay
                    }
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
            note(page.unreadable, since: query.since, lane)
            try await pull(page.changes, lane)
            lane.checkpoint.advance(to: next)
            await saveCheckpoint(lane)
        }
    }

    /// The next part of the feed; nil when it is time to ask again for what could not be fetched.
    private func page(_ query: ChangesQuery, _ index: Int, isWaiting: Bool) async throws
        -> RemoteDatabase.ChangesPage?
    {
        guard isWaiting, let delay = lanes[index].retryDelay else {
            return try await changes(query, at: index)
        }
        let clock = runtime.clock
        return try await withThrowingTaskGroup(of: RemoteDatabase.ChangesPage?.self) { group in
            group.addTask { try await self.changes(query, at: index) }
            group.addTask {
                try await clock.sleep(for: delay)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private func changes(_ query: ChangesQuery, at index: Int) async throws -> RemoteDatabase.ChangesPage {
        try await changes(query, of: lanes[index])
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

    // MARK: What could not be fetched

    /// The documents that could not be pulled, and that this replication is to pull.
    private func failures(_ lane: Lane) throws -> [String] {
        try replica.failures(in: lane.index).filter { lane.documentIDs?.contains($0) ?? true }
    }

    /// Asks again for documents of which a revision could not be fetched or stored. Those of which the remote lists nothing more that is
    /// not here are settled.
    private func retry(_ ids: [String], _ lane: Lane) async throws {
        lane.missing = []
        guard !ids.isEmpty else { return }
        lane.unsettled.subtract(DocumentSet(ids))
        try await pull(try await lane.remote.changes(of: ids), lane)
        for id in lane.missing.sorted {
            let error = LoveseatError(
                .httpNotFound,
                "the peer lists a revision that it does not have now: it is asked for again in the next run"
            )
            report(id, lane, isPush: false, isDeleted: false, error: error)
        }
        lane.missing = []
        try replica.forgetFailures(ids.filter { !lane.unsettled.contains($0) }, in: lane.index)
    }

    /// Reads those places of the feed again where rows could not be read in earlier sessions.
    private func retryUnreadable(_ lane: Lane) async throws {
        let places = lane.checkpoint.unreadable
        lane.checkpoint.unreadable = []
        for place in places {
            let query = ChangesQuery(lane.selection, since: place, limit: 100)
            let page = try await changes(query, of: lane)
            note(page.unreadable, since: place, lane)
            try await pull(page.changes, lane)
        }
    }

    private func note(_ rows: [UnreadableChange], since: RemoteSequence?, _ lane: Lane) {
        for row in rows {
            lane.checkpoint.noteUnreadable(after: row.after ?? since)
            let error = LoveseatError(
                .remoteError,
                "this row of the peer's list of changes cannot be read (\(row.reason)): it is read again in the next run"
            )
            report(row.name, lane, isPush: false, isDeleted: false, error: error)
        }
    }

    // MARK: Fetching

    /// Runs jobs, at most so many at once as the remote takes.
    func run<Job: Sendable, Outcome: Sendable>(
        _ jobs: [Job],
        atOnce limit: Int,
        _ work: @escaping @Sendable (Job) async throws -> Outcome,
        _ done: (Outcome) async throws -> Void
    ) async throws {
        let client = client
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            var (waiting, running) = (jobs[...], 0)
            func begin() {
                while running < min(limit, client.requestsAtOnce), let job = waiting.popFirst() {
                    running += 1
                    group.addTask { try await work(job) }
                }
            }
            begin()
            while let outcome = try await group.next() {
                running -= 1
                begin()
                try await done(outcome)
            }
        }
    }

    private func pull(_ changes: [RemoteChange], _ lane: Lane) async throws {
        let wanted = try wanted(of: changes, lane)
        expect(wanted.count)
        var singles: [WantedLeaf] = []
        let batches = stride(from: 0, to: wanted.count, by: Self.bulkSize).map {
            Array(wanted[$0..<min($0 + Self.bulkSize, wanted.count)])
        }
        let (remote, blobs) = (lane.remote, store.blobs)
        try await run(batches, atOnce: Self.bulkRequests) {
            try await Self.fetch($0, from: remote, blobs: blobs)
        } _: { batch in
            singles += batch.singles
            try await save(batch.fetched, lane)
        }
        var doubtful: [(DocumentLeaf, RemoteFailure)] = []
        var gathered = Gathered()
        try await run(singles, atOnce: Self.singleRequests) {
            try await Self.fetch($0, from: remote, blobs: blobs)
        } _: { single in
            switch single.outcome {
            case .fetched(let fetched):
                let due = gathered.add(fetched)
                if !due.isEmpty { try await save(due, lane) }
            case .missing: try noteMissing(single.leaf, lane)
            case .failed(let failure): try fail(single.leaf, failure, lane)
            case .doubtful(let failure): doubtful.append((single.leaf, failure))
            }
        }
        try await save(gathered.take(), lane)
        guard let (leaf, failure) = doubtful.first else { return }
        // One document that the remote refuses or fails at must not keep the others back.
        guard await remote.answers() else { throw failure.failure(of: "the document \"\(leaf.documentID)\"") }
        for (leaf, failure) in doubtful { try fail(leaf, failure.failure(of: "the document"), lane) }
    }

    /// The leaves that are not here.
    private func wanted(of changes: [RemoteChange], _ lane: Lane) throws -> [WantedLeaf] {
        var asked: [(id: String, revisions: [RevisionID])] = []
        for change in changes {
            if let ids = lane.documentIDs, !ids.contains(change.documentID) { continue }
            // Documents that no database can have, such as users of a Sync Gateway.
            guard (try? IncomingDocument.check(change.documentID)) != nil,
                !change.documentID.beginsExactly(with: "_local/")
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
                let branches = try DocumentBranches(of: view.whole(record, in: lane.handle))
                let known = branches.leaves.prefix(Self.maximumKnown).map(\.id)
                for revision in revisions where !branches.contains(revision) {
                    let leaf = DocumentLeaf(documentID: id, revision: revision)
                    wanted.append(WantedLeaf(leaf: leaf, known: known))
                }
            }
            return wanted
        }
    }

    private struct Batch: Sendable {
        var fetched: [FetchedRevision] = []
        /// What has to be fetched by itself.
        var singles: [WantedLeaf] = []
    }

    /// Revisions of one document that are stored together: each would read and write all of them.
    private struct Gathered {
        private var fetched: [FetchedRevision] = []
        private var bytes = 0

        /// Adds a revision; returns those that are to be stored now.
        mutating func add(_ revision: FetchedRevision) -> [FetchedRevision] {
            let id = revision.document.id
            let isOther = fetched.last.map { !$0.document.id.isExactly(id) } ?? false
            let due = isOther || fetched.count >= bulkSize || bytes >= bulkBytes ? take() : []
            fetched.append(revision)
            bytes += revision.document.body.bytes.count
            return due
        }

        mutating func take() -> [FetchedRevision] {
            defer { (fetched, bytes) = ([], 0) }
            return fetched
        }
    }

    private struct Single: Sendable {
        enum Outcome: Sendable {
            case fetched(FetchedRevision)
            /// The remote lists it, and does not have it.
            case missing
            case failed(LoveseatError)
            /// The document is refused, or all that this client asks for.
            case doubtful(RemoteFailure)
        }

        let leaf: DocumentLeaf
        let outcome: Outcome
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
                // The single request tells the reason.
                batch.singles.append(wanted)
                continue
            }
            do {
                var found: [FetchedRevision] = []
                for document in item.documents {
                    let incoming = try IncomingDocument(document)
                    guard incoming.attachments.isEmpty, !incoming.history.isEmpty,
                        incoming.id?.isExactly(wanted.leaf.documentID) ?? true
                    else { throw CouchDBError.missing }
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
        func single(_ outcome: Single.Outcome) -> Single { Single(leaf: wanted.leaf, outcome: outcome) }
        do {
            var fetched = try await remote.revision(wanted.leaf, known: wanted.known, blobs: blobs)
            if let found = fetched, !wanted.known.isEmpty, found.document.lacksBlobs(keeping: found.pins) {
                fetched = try await remote.revision(wanted.leaf, known: [], blobs: blobs)
            }
            return single(fetched.map { .fetched($0) } ?? .missing)
        } catch let error as CouchDBError {
            return single(.failed(LoveseatError(.remoteError, "the peer sent it damaged: \(error.reason)")))
        } catch let error as MultipartError {
            return single(.failed(LoveseatError(.remoteError, "the peer sent it damaged: \(error)")))
        } catch let failure as RemoteFailure {
            switch failure.status {
            case _ where failure.isLockedOut, 408, 429, 502, 503, 504:
                throw failure.failure(of: "the document \"\(wanted.leaf.documentID)\"")
            case 400, 403, 406, 410, 413, 414: return single(.failed(failure.failure(of: "the document")))
            default: return single(.doubtful(failure))
            }
        } catch let error as AnswerTooLarge { return single(.failed(error.failure)) }
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
        for removed in fetched where removed.document.isRemoved { try takeAway(removed.document, lane) }
        let fetched = fetched.filter { !$0.document.isRemoved }
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
        try replica.forgetFailures(ids.filter { !lane.unsettled.contains($0) }, in: lane.index)
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
        let accepted = zip(fetched, admitted).filter(\.1).map(\.0.document)
        let asksResolver = lane.rules.asksResolver
        return try store.write(call: "replication") { transaction in
            var results = try DocumentSaving.saveReplicated(accepted, in: lane.handle, transaction)[...]
            let inConflict = asksResolver ? try Self.inConflict(accepted, lane, transaction) : []
            return try zip(fetched, admitted).map { fetched, isAdmitted in
                guard isAdmitted, let result = results.popFirst() else { return .filtered }
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
        try keep(leaf, error, lane)
    }

    /// The remote lists a revision that it does not have. It may have got a newer one since, or one of its machines lags behind: this is
    /// found out at the end of the list.
    private func noteMissing(_ leaf: DocumentLeaf, _ lane: Lane) throws {
        finish(1, isPush: false)
        lane.missing.insert(leaf.documentID)
        try keep(leaf, LoveseatError(.httpNotFound, "the peer does not have it"), lane)
    }

    private func keep(_ leaf: DocumentLeaf, _ error: LoveseatError, _ lane: Lane) throws {
        lane.unsettled.insert(leaf.documentID)
        let failed = DocumentRevision(documentID: leaf.documentID, revision: leaf.revision)
        try replica.noteFailure(failed, error, in: lane.index)
    }

    /// A gateway shows the document to this peer no more.
    private func takeAway(_ document: PreparedDocument, _ lane: Lane) throws {
        finish(1, isPush: false)
        var error: LoveseatError?
        if plan.autoPurges {
            let removal = AccessRemoval(documentID: document.id, revision: document.history.first)
            for verdict in try replica.removeAccess([removal], in: lane.index) {
                error = LoveseatError(keeping: document.id, verdict)
            }
        }
        hooks.report(
            .document(
                DocumentEvent(
                    collection: lane.index,
                    documentID: document.id,
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
