import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// How listed revisions are fetched: many at once, and alone those with attachments and those that fail.
extension CouchDBSession {
    /// Revisions that are asked for at once, and how many such requests are under way.
    private static let bulkSize = 100
    /// Bytes of documents with attachments that wait to be stored together.
    private static let bulkBytes = 1 << 20
    private static let bulkRequests = 3
    private static let singleRequests = 6
    /// Revisions that are named to the remote so that it leaves out their attachments.
    private static let maximumKnown = 50
    /// The maximum of a remote's text in a message, in characters.
    private static let maximumShown = 100

    /// A leaf that is not here, and revisions of its document that are.
    struct WantedLeaf: Sendable {
        let leaf: DocumentLeaf
        let known: [RevisionID]

        /// Whether a revision with this history, newest first, is what was asked for, or goes on from it. A peer may have cut the history.
        func isAnswered(by history: [RevisionID]) -> Bool {
            guard let oldest = history.last else { return false }
            return history.contains(leaf.revision) || oldest.generation > leaf.revision.generation
        }
    }

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

    func pull(_ changes: [RemoteChange], _ lane: Lane) async throws {
        for change in changes where change.isRevoked {
            try takeAway(change.documentID, change.revisions.first.flatMap { RevisionID($0) }, lane)
        }
        let wanted = try wanted(of: changes.filter { !$0.isRevoked }, lane)
        expect(wanted.count, among: changes.count)
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
        // The remote refused no document, and failed at none.
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
            if change.isPrincipal { continue }
            do { try IncomingDocument.checkReplicated(change.documentID) } catch {
                try refuse(change.documentID, "it cannot be stored here: \(error.reason)", lane)
                continue
            }
            var revisions: [RevisionID] = []
            for text in change.revisions {
                do { revisions.append(try RevisionText.parse(text)) } catch {
                    try refuse(
                        change.documentID,
                        "the revision \"\(text.prefix(Self.maximumShown))\" cannot be stored here",
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

    /// Reports a listed document of which nothing, or not everything, can be stored here.
    private func refuse(_ id: String, _ reason: String, _ lane: Lane) throws {
        let leaf = DocumentLeaf(documentID: id, revision: RevisionID(generation: 1, digest: []))
        try fail(leaf, LoveseatError(.remoteError, reason), lane)
    }

    private struct Batch: Sendable {
        var fetched: [FetchedRevision] = []
        /// The leaves that have to be fetched by themselves.
        var singles: [WantedLeaf] = []
    }

    /// Revisions of one document, which are stored together: storing one of them reads and writes all of the document's revisions.
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

    struct Single: Sendable {
        enum Outcome: Sendable {
            case fetched(FetchedRevision)
            /// The remote lists it, and does not have it.
            case missing
            case failed(LoveseatError)
            /// The remote refuses this document, or everything that this client asks for.
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
                    guard incoming.attachments.isEmpty, wanted.isAnswered(by: incoming.history),
                        incoming.id?.isExactly(wanted.leaf.documentID) ?? true
                    else { throw CouchDBError.missing }
                    let pins = BlobPins(blobs)
                    let prepared = try DocumentSaving.prepare(
                        incoming,
                        id: wanted.leaf.documentID,
                        pins: pins
                    )
                    found.append(FetchedRevision(document: prepared, pins: pins))
                }
                batch.fetched += found
            } catch { batch.singles.append(wanted) }
        }
        return batch
    }

    /// Fetches a revision by itself, with its attachments.
    static func fetch(_ wanted: WantedLeaf, from remote: RemoteDatabase, blobs: BlobFiles)
        async throws -> Single
    {
        func single(_ outcome: Single.Outcome) -> Single { Single(leaf: wanted.leaf, outcome: outcome) }
        do {
            var fetched = try await remote.revision(wanted.leaf, known: wanted.known, blobs: blobs)
            if let found = fetched, !wanted.known.isEmpty, found.document.lacksBlobs(keeping: found.pins) {
                fetched = try await remote.revision(wanted.leaf, known: [], blobs: blobs)
            }
            guard let fetched else { return single(.missing) }
            guard wanted.isAnswered(by: fetched.document.history) else {
                let other = fetched.document.history.first?.text ?? "none"
                let reason =
                    "the peer answered with another revision, \(other), instead of \(wanted.leaf.revision)"
                return single(.failed(LoveseatError(.remoteError, reason)))
            }
            return single(.fetched(fetched))
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
}
