import LoveseatAssertions
import LoveseatModel
import LoveseatReplication

/// How listed revisions are fetched: many at once, and alone those with attachments and those that fail.
extension PullMachine {
    /// Why changes are fetched.
    enum Purpose {
        /// A part of the feed. `places`: where its rows are that could not be read.
        case page(RemoteSequence, places: [RemoteSequence?])
        case retry([String], ChangesListing, then: Next)
        /// Rows that could not be read in an earlier session. `rest`: the other places.
        case place(RemoteSequence?, ChangesPage, rest: ArraySlice<RemoteSequence?>)
    }

    enum Phase {
        /// `singles`: the leaves that have to be fetched by themselves.
        case bulk(singles: [WantedLeaf])
        /// `doubtful`: the remote refuses these documents, or everything that this client asks for.
        case singles(Gathered, doubtful: [(WantedLeaf, RemoteFailure)])
        case checking(doubtful: [(WantedLeaf, RemoteFailure)])
    }

    /// Revisions of one document, which are stored together: storing one of them reads and writes all of the document's revisions.
    struct Gathered {
        private var fetched: [FetchedRevision] = []
        private var bytes = 0

        /// Adds a revision; returns those that are to be stored now.
        mutating func add(_ revision: FetchedRevision) -> [FetchedRevision] {
            let id = revision.document.id
            let isOther = fetched.last.map { !$0.document.id.isExactly(id) } ?? false
            let due = isOther || fetched.count >= bulkSize || bytes >= bulkBytes ? drain() : []
            fetched.append(revision)
            bytes += revision.document.body.bytes.count
            return due
        }

        mutating func drain() -> [FetchedRevision] {
            defer { (fetched, bytes) = ([], 0) }
            return fetched
        }
    }

    /// Revisions that are asked for at once.
    private static let bulkSize = 100
    /// Bytes of documents with attachments that wait to be stored together.
    private static let bulkBytes = 1 << 20
    /// The maximum of a remote's text in a message, in characters.
    private static let maximumShown = 100

    /// How many requests may be under way.
    var requests: Int { if case .fetching(_, .singles) = stage { 6 } else { 3 } }

    mutating func fetch(_ changes: [RemoteChange], _ purpose: Purpose) throws {
        for change in changes where change.isRevoked {
            try withdraw(change.documentID, change.revisions.first.flatMap { RevisionID($0) })
        }
        let wanted = try store.missing(of: try listed(changes))
        reports.append(.found(wanted.count, changes: changes.count))
        stage = .fetching(purpose, .bulk(singles: []))
        queue.append(
            stride(from: 0, to: wanted.count, by: Self.bulkSize).map {
                .bulk(Array(wanted[$0..<min($0 + Self.bulkSize, wanted.count)]))
            }
        )
    }

    /// The listed leaves that can be stored here.
    private mutating func listed(_ changes: [RemoteChange]) throws -> [(
        id: String, revisions: [RevisionID]
    )] {
        var listed: [(id: String, revisions: [RevisionID])] = []
        for change in changes where !change.isRevoked {
            let id = change.documentID
            if setup.documentIDs?.contains(id) == false { continue }
            if change.isPrincipal { continue }
            do { try IncomingDocument.checkReplicated(id) } catch {
                try refuse(id, "it cannot be stored here: \(error.reason)")
                continue
            }
            var revisions: [RevisionID] = []
            for text in change.revisions {
                do { revisions.append(try RevisionText.parse(text)) } catch {
                    try refuse(
                        id,
                        "the revision \"\(text.prefix(Self.maximumShown))\" cannot be stored here"
                    )
                }
            }
            listed.append((id, revisions))
        }
        return listed
    }

    /// Reports a listed document of which nothing, or not everything, can be stored here.
    private mutating func refuse(_ id: String, _ reason: String) throws {
        let leaf = DocumentLeaf(documentID: id, revision: RevisionID(generation: 1, digest: []))
        try fail(leaf, LoveseatError(.remoteError, reason))
    }

    /// Goes on when all requests are answered.
    mutating func goOn(_ purpose: Purpose, _ phase: Phase) throws {
        switch phase {
        case .bulk(let singles):
            stage = .fetching(purpose, .singles(Gathered(), doubtful: []))
            queue.append(singles.map { .single($0, isRepeated: false) })
            // Everything came in bulk.
            if singles.isEmpty { try endFetching(purpose) }
        case .singles(var gathered, let doubtful):
            let due = gathered.drain()
            stage = .fetching(purpose, .singles(gathered, doubtful: doubtful))
            try save(due)
            // Some of them may have to be fetched again.
            guard queue.isEmpty else { return }
            if doubtful.isEmpty { return try endFetching(purpose) }
            stage = .fetching(purpose, .checking(doubtful: doubtful))
            queue.append([.presence])
        case .checking: impossible("a request is lost")
        }
    }

    mutating func receive(_ answer: Answer, to request: Request, _ purpose: Purpose, _ phase: Phase) throws {
        switch (request, answer, phase) {
        case (.bulk, .bulk(let fetched, let others), .bulk(let singles)):
            stage = .fetching(purpose, .bulk(singles: singles + others))
            try save(fetched)
        case (.bulk, .refused(let failure), _): throw failure.failure(of: "_bulk_get")
        case (.single(let wanted, _), .single(nil), _): try noteMissing(wanted.leaf)
        case (.single(let wanted, _), .damaged(let error), _): try fail(wanted.leaf, error)
        case (.single(let wanted, let isRepeated), .single(let fetched?), _):
            try receive(fetched, of: wanted, isRepeated: isRepeated, purpose, phase)
        case (.single(let wanted, let isRepeated), .refused(let failure), _):
            switch failure.status {
            case _ where failure.isLockedOut, 408, 429, 502, 503, 504:
                throw failure.failure(of: "the document \"\(wanted.leaf.documentID)\"")
            case 400, 403, 406, 410, 413, 414: try fail(wanted.leaf, failure.failure(of: "the document"))
            default:
                guard case .singles(let gathered, let doubtful) = phase, !isRepeated else {
                    return try fail(wanted.leaf, failure.failure(of: "the document"))
                }
                let all = doubtful + [(wanted, failure)]
                stage = .fetching(purpose, .singles(gathered, doubtful: all))
            }
        case (.presence, .presence(let answers), .checking(let doubtful)):
            // One document that the remote refuses or fails at must not keep the others back.
            if !answers, let (wanted, failure) = doubtful.first {
                throw failure.failure(of: "the document \"\(wanted.leaf.documentID)\"")
            }
            for (wanted, failure) in doubtful { try fail(wanted.leaf, failure.failure(of: "the document")) }
            try endFetching(purpose)
        default:
            impossible("\(answer) came to \(request)")
            throw LoveseatError(.unexpectedError, "the pull begins again in the next session")
        }
    }

    private mutating func receive(
        _ fetched: FetchedRevision,
        of wanted: WantedLeaf,
        isRepeated: Bool,
        _ purpose: Purpose,
        _ phase: Phase
    ) throws {
        if !wanted.known.isEmpty, fetched.lacksBlobs {
            let whole = WantedLeaf(leaf: wanted.leaf, known: [])
            return queue.prepend([.single(whole, isRepeated: isRepeated)])
        }
        guard wanted.isAnswered(by: fetched.document.history) else {
            let other = fetched.document.history.first?.text ?? "none"
            let reason =
                "the peer answered with another revision, \(other), instead of \(wanted.leaf.revision)"
            return try fail(wanted.leaf, LoveseatError(.remoteError, reason))
        }
        if isRepeated {
            guard !fetched.document.hasStubs else {
                let error = LoveseatError(.remoteError, "the peer does not send all attachments")
                return try fail(wanted.leaf, error)
            }
            return try save([fetched], isRepeated: true)
        }
        guard case .singles(var gathered, let doubtful) = phase else {
            return impossible("a document is fetched by itself among many")
        }
        let due = gathered.add(fetched)
        stage = .fetching(purpose, .singles(gathered, doubtful: doubtful))
        try save(due)
    }
}
