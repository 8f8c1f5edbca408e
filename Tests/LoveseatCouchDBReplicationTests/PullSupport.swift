import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// A replica with a log of what is asked of it.
final class RecordedInbox: RecordedCheckpoints, ReplicaInbox {
    var failed: DocumentSet = []
    var removed: [String] = []

    func failures() throws(LoveseatError) -> [String] { failed.sorted }
    func noteFailure(_ failure: DocumentRevision, _ error: LoveseatError) throws(LoveseatError) {
        failed.insert(failure.documentID)
    }
    func forgetFailures(_ documentIDs: [String]) throws(LoveseatError) {
        for id in documentIDs { failed.remove(id) }
    }
    func removeAccess(_ removals: [AccessRemoval]) throws(LoveseatError) -> [RemovalVerdict] {
        removed += removals.map(\.documentID)
        return []
    }
    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind) throws(LoveseatError)
        -> [ChangeVerdict]
    { [] }
    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind) throws(LoveseatError)
        -> [ProposalVerdict]
    { [] }
    func refusal(of candidate: FilterCandidate) -> LoveseatError? { nil }
    func writeRefusal(of revision: IncomingRevision) throws(LoveseatError) -> LoveseatError? { nil }
    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] { [] }
    func awaitedLeaves(of documentID: String, among leaves: [RevisionID]) throws(LoveseatError)
        -> [RevisionID]
    { [] }
    func body(of revision: RevisionName, _ documentID: String) throws(LoveseatError) -> JSONText? { nil }
}

/// A database of a pull, in memory.
final class StoredDocuments: PullStore {
    var revisions: DocumentMap<[RevisionID]> = [:]
    /// The next results of documents, where they are not stored.
    var results: [String: [PulledResult]] = [:]
    /// How many revisions each transaction stored.
    var transactions: [Int] = []

    func missing(of listed: [(id: String, revisions: [RevisionID])]) throws -> [WantedLeaf] {
        listed.flatMap { id, listed in
            let known = revisions[ExactText(id)] ?? []
            return listed.filter { !known.contains($0) }.map {
                WantedLeaf(leaf: DocumentLeaf(documentID: id, revision: $0), known: known)
            }
        }
    }

    func insert(_ fetched: [FetchedRevision]) throws -> [PulledResult] {
        transactions.append(fetched.count)
        return fetched.map { fetched in
            let id = fetched.document.id
            if let result = results[id]?.first {
                results[id]?.removeFirst()
                if case .stored = result {} else { return result }
                revisions[ExactText(id), default: []] += fetched.document.history.prefix(1)
                return result
            }
            revisions[ExactText(id), default: []] += fetched.document.history.prefix(1)
            return .stored(hasConflict: false)
        }
    }

    func current(_ ids: [String]) throws -> [CurrentRevision] {
        ids.compactMap { id in
            revisions[ExactText(id)]?.last.map {
                CurrentRevision(documentID: id, revision: $0, sequence: 1, isLine: true)
            }
        }
    }
}

/// Whether blobs are here.
final class TestBlobs: BlobHolder {
    let areHere: Bool

    init(areHere: Bool = true) { self.areHere = areHere }

    func hold(_ digest: BlobDigest) -> Bool { areHere }
}

/// A pull whose requests a test answers.
struct Pull {
    typealias Request = PullMachine.Request
    typealias Answer = PullMachine.Answer

    var machine: PullMachine
    let store = StoredDocuments()
    let inbox = RecordedInbox()
    /// The rows of the remote's feed, whose sequences are their places, from 1.
    var rows: [String]
    /// The documents that have to be fetched by themselves.
    var alone: Set<String> = []
    var pageSize = 500
    var reports: [SessionReport] = []
    var log: [String] = []
    private var underWay: [RequestQueue<Request>.Numbered] = []

    /// `ids`: the documents that the remote lists, each with the revision `1-aa`. `since`: where the checkpoint is.
    init(
        _ ids: [String],
        since: Int? = nil,
        isContinuous: Bool = false,
        selection: ChangesQuery.Selection = .all,
        documentIDs: DocumentSet? = nil
    ) {
        rows = ids.map { Self.row($0) }
        let plan = ActivePlan(collections: [], pushes: false, pulls: true, isContinuous: isContinuous)
        machine = PullMachine(
            store,
            inbox,
            collection: 0,
            selection: selection,
            documentIDs: documentIDs,
            heartbeat: 1_000,
            plan
        )
        begin(at: since)
    }

    mutating func begin(at since: Int?) {
        machine.begin(at: RemoteCheckpoint(Checkpoint(remote: since.map(Answers.sequence))))
    }

    static func row(_ id: String, _ revisions: [String] = ["1-aa"], isRevoked: Bool = false) -> String {
        let changes = revisions.map { "{\"rev\":\"\($0)\"}" }.joined(separator: ",")
        return "\"id\":\"\(id)\",\"changes\":[\(changes)]\(isRevoked ? ",\"revoked\":true" : "")"
    }

    /// Runs until nothing is to be done, or the feed waits. `answer`: nil for what an honest remote answers.
    mutating func run(_ answer: (Request) -> Answer? = { _ in nil }) throws {
        while true {
            try machine.goOn()
            reports += machine.drainReports()
            while let next = machine.next(atOnce: 8) {
                log.append(Self.words(next.request))
                underWay.append(next)
            }
            #expect(underWay.count <= 6)
            guard let next = underWay.first else {
                if machine.isCaughtUp { return }
                continue
            }
            let given = answer(next.request)
            if case .changes(let query, _) = next.request, query.heartbeat != nil, given == nil { return }
            underWay.removeFirst()
            try machine.receive(try given ?? honest(next.request), to: next.number)
        }
    }

    private static func words(_ request: Request) -> String {
        switch request {
        case .changes(let query, let delay):
            "changes \(query.since?.text ?? "-")" + (query.heartbeat == nil ? "" : " waiting")
                + (delay.map { " for \($0.components.seconds)" } ?? "")
        case .listing(let ids): "listing \(ids.joined(separator: " "))"
        case .pause(let delay): "pause \(Int(delay / .milliseconds(1)))"
        case .bulk(let wanted): "bulk \(wanted.map(\.leaf.documentID).joined(separator: " "))"
        case .single(let wanted, _):
            "single \(wanted.leaf.documentID)" + (wanted.known.isEmpty ? "" : " known")
        case .presence: "presence"
        }
    }

    /// A page of an answer of `_changes`.
    static func page(_ rows: [String], _ last: Int, pending: Int = 0, after time: Duration = .seconds(5))
        throws
        -> Answer
    {
        var parser = ChangesParser()
        let text =
            "{\"results\":[\(rows.joined(separator: ","))],\"last_seq\":\(last),\"pending\":\(pending)}"
        let changes = try parser.receive(Array(text.utf8))
        let page = ChangesPage(
            changes: changes,
            unreadable: parser.unreadable,
            end: try parser.finish()
        )
        return .changes(page, after: time)
    }

    static func fetched(
        _ id: String,
        _ revision: String = "1-aa",
        _ members: String = "",
        blobs: TestBlobs = TestBlobs()
    ) throws -> FetchedRevision {
        let text = "{\"_id\":\"\(id)\",\"_rev\":\"\(revision)\"\(members)}"
        let incoming = try IncomingDocument(try JSONElement(parsing: Array(text.utf8)))
        var document = PreparedDocument(incoming, id: id)
        document.attachments = incoming.attachments.map { .stub($0) }
        return FetchedRevision(document: document, blobs: blobs)
    }

    func honest(_ request: Request) throws -> Answer {
        switch request {
        case .changes(let query, _):
            let since = query.since.flatMap { Int($0.text) } ?? 0
            let listed = rows.enumerated().dropFirst(since).prefix(pageSize)
            return try Self.page(
                listed.map { "{\"seq\":\($0.offset + 1),\($0.element)}" },
                since + listed.count,
                pending: rows.count - since - listed.count
            )
        case .listing(let ids):
            let listed = rows.enumerated().filter { row in
                ids.contains { row.element.hasPrefix("\"id\":\"\($0)\"") }
            }
            let page = try Self.page(listed.map { "{\"seq\":\($0.offset + 1),\($0.element)}" }, 1)
            var listing = ChangesListing()
            if case .changes(let page, _) = page { listing.changes = page.changes }
            return .listing(listing)
        case .pause: return .timeIsUp
        case .bulk(let wanted):
            let singles = wanted.filter { alone.contains($0.leaf.documentID) }
            let others = wanted.filter { !alone.contains($0.leaf.documentID) }
            return .bulk(
                try others.map { try Self.fetched($0.leaf.documentID, $0.leaf.revision.text) },
                singles: singles
            )
        case .single(let wanted, _):
            return .single(try Self.fetched(wanted.leaf.documentID, wanted.leaf.revision.text))
        case .presence: return .presence(true)
        }
    }

    var pulled: [String] { errors(in: reports).filter { $0.value == nil }.keys.sorted() }
    var failed: [String] { errors(in: reports).filter { $0.value != nil }.keys.sorted() }
    /// The remote sequence that the checkpoint names.
    var checkpoint: String? { machine.progress.checkpoint.remote?.text }
}
