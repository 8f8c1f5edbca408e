import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication

/// Decides how all leaves that are not here are pulled, with their histories (protocol/couchdb.md §3.1, §3.6).
///
/// ```
/// beginning ──▶ rereading ──▶ listing ──▶ asking ──page──▶ fetching ──▶ asking ──none──▶ listing ──▶ caught up,
///               rows that     documents   _changes         _bulk_get                     documents   or asking
///               were not      that could                   and GET                       that were   for what
///               readable      not come                                                   missing     comes next
/// ```
package struct PullMachine: RequestMachine {
    package enum Request: Sendable {
        /// A part of the feed. A feed that waits is left after the delay.
        case changes(ChangesQuery, within: Duration?)
        /// The changes of these documents, each as it is now.
        case listing([String])
        case pause(Duration)
        /// Many leaves at once.
        case bulk([WantedLeaf])
        /// A leaf by itself, with its attachments. `isRepeated`: it has come before, with attachments that were not here.
        case single(WantedLeaf, isRepeated: Bool)
        /// Whether the remote answers to this client at all.
        case presence
    }

    package enum Answer: Sendable {
        case changes(ChangesPage, after: Duration)
        /// The delay is over.
        case timeIsUp
        case listing(ChangesListing)
        /// Those that came, and those that have to be fetched by themselves.
        case bulk([FetchedRevision], singles: [WantedLeaf])
        /// Nil if the remote does not have it any more.
        case single(FetchedRevision?)
        case refused(RemoteFailure)
        /// The answer is not the document.
        case damaged(LoveseatError)
        case presence(Bool)
    }

    enum Stage {
        case beginning
        /// Rows of a place are read again that could not be read in an earlier session. `rest`: the other places.
        case rereading(RemoteSequence?, rest: ArraySlice<RemoteSequence?>)
        case listing([String], then: Next)
        case asking(isWaiting: Bool)
        /// Until the remote is asked again after an answer that cannot be, or after an empty answer of a remote that does not wait.
        case pausing(ChangesPage?, isWaiting: Bool)
        case fetching(Purpose, Phase)
        case caughtUp
    }

    /// How the pull goes on after documents were listed again.
    enum Next {
        case ask
        /// The feed has ended.
        case end
        /// It was time to ask again while the feed waited.
        case wait
    }

    /// The documents that are pulled, and how.
    struct Setup: Sendable {
        let collection: Int
        let selection: ChangesQuery.Selection
        let documentIDs: DocumentSet?
        /// See ``ChangesQuery/heartbeat``.
        let heartbeat: Int
        let autoPurges: Bool
        let isContinuous: Bool
    }

    private static let firstRetryDelay = Duration.seconds(2)
    private static let maximumRetryDelay = Duration.seconds(600)
    /// How often a remote is asked again that lists nothing, although it says that changes follow.
    private static let maximumEmptyAnswers = 4
    package static let isPush = false

    let store: any PullStore
    let replica: any ReplicaInbox & ReplicaCheckpoints
    let setup: Setup
    var stage = Stage.beginning
    var queue = RequestQueue<Request>()
    package var reports: [SessionReport] = []
    /// How far the pull is, without the local sequences.
    package private(set) var progress = RemoteCheckpoint()
    /// How far the remote's list of changes was read; nil for its beginning. The checkpoint is behind it while it is held.
    private var position: RemoteSequence?
    private var repeated = RepeatedPages()
    /// How many answers in succession listed nothing, although changes follow.
    private var emptyAnswers = 0
    /// Documents of which a revision could not be fetched, since they were listed last.
    var unsettled: DocumentSet = []
    /// Documents of which a revision is listed that the remote did not have when it was asked for.
    var missing: DocumentSet = []
    /// When a continuous pull asks again for what could not be fetched; nil if there is nothing.
    private var retryDelay: Duration?

    package init(
        _ store: any PullStore,
        _ replica: any ReplicaInbox & ReplicaCheckpoints,
        collection: Int,
        selection: ChangesQuery.Selection,
        documentIDs: DocumentSet?,
        heartbeat: Int,
        _ plan: ActivePlan
    ) {
        (self.store, self.replica) = (store, replica)
        setup = Setup(
            collection: collection,
            selection: selection,
            documentIDs: documentIDs,
            heartbeat: heartbeat,
            autoPurges: plan.autoPurges,
            isContinuous: plan.isContinuous
        )
    }

    /// Sets where the session goes on.
    package mutating func begin(at start: RemoteCheckpoint) {
        (progress, position) = (start, start.checkpoint.remote)
    }

    package var isCaughtUp: Bool { if case .caughtUp = stage { true } else { false } }

    package mutating func goOn() throws {
        switch stage {
        case .beginning:
            reports.append(.busy(true))
            try reread(progress.unreadable[...])
        case .fetching(let purpose, let phase) where queue.isEmpty: try goOn(purpose, phase)
        case .rereading, .listing, .asking, .pausing, .fetching, .caughtUp: break
        }
        checkInvariants()
    }

    package mutating func next(atOnce limit: Int) -> RequestQueue<Request>.Numbered? {
        queue.next(atOnce: min(limit, requests)).map { queue.begin($0) }
    }

    package mutating func receive(_ answer: Answer, to number: Int) throws {
        // That no such request is under way was reported.
        guard let request = queue.end(number) else { return }
        switch (request, answer, stage) {
        case (.changes(let query, _), .refused(let failure), _):
            // A sequence that the remote does not know any more.
            guard failure.status == 400, query.since != nil, failure.reason.lowercased().contains("since")
            else { throw failure.failure(of: "_changes") }
            (progress, position) = (RemoteCheckpoint(), nil)
            if case .rereading = stage { try beginList() } else { ask(isWaiting: query.heartbeat != nil) }
        case (.changes, .changes(let page, _), .rereading(let place, let rest)):
            try reread(page, at: place, rest)
        case (.changes, .changes(let page, let time), .asking(let isWaiting)):
            try read(page, after: time, isWaiting: isWaiting)
        case (.changes, .timeIsUp, .asking):
            reports.append(.busy(true))
            try list(failures(), then: .wait)
        case (.pause, .timeIsUp, .pausing(let page, let isWaiting)):
            if let page { try end(page, isWaiting: isWaiting) } else { ask(isWaiting: isWaiting) }
        case (.listing(let ids), .listing(let listing), .listing(_, let next)):
            try fetch(listing.changes, .retry(ids, listing, then: next))
        case (.listing, .refused(let failure), _): throw failure.failure(of: "_changes")
        case (_, _, .fetching(let purpose, let phase)): try receive(answer, to: request, purpose, phase)
        default:
            impossible("\(answer) came to \(request)")
            throw LoveseatError(.unexpectedError, "the pull begins again in the next session")
        }
        checkInvariants()
    }

    // MARK: Places that could not be read

    /// Reads the next place again. A place is forgotten once its rows were read, or are gone.
    private mutating func reread(_ places: ArraySlice<RemoteSequence?>) throws {
        guard let place = places.first else { return try beginList() }
        stage = .rereading(place, rest: places.dropFirst())
        // The unreadable rows of a place are at most one page after it.
        let query = ChangesQuery(setup.selection, since: place, limit: ChangesQuery.pageSize)
        queue.append([.changes(query, within: nil)])
    }

    private mutating func reread(
        _ page: ChangesPage,
        at place: RemoteSequence?,
        _ rest: ArraySlice<RemoteSequence?>
    ) throws {
        // The rows after the checkpoint's are listed again.
        let after = page.changes.map(\.sequence).drop { $0 != progress.checkpoint.remote }
        var page = page
        page.unreadable.removeAll { row in after.contains { $0 == row.after } }
        try fetch(page.changes, .place(place, page, rest: rest))
    }

    private mutating func endPlace(
        _ place: RemoteSequence?,
        _ page: ChangesPage,
        _ rest: ArraySlice<RemoteSequence?>
    ) throws {
        let known = progress.unreadable
        if page.isWhole {
            progress.replaceUnreadable(place, with: page.unreadable.map { $0.after ?? place })
        }
        // The rows of other places are reported when these are read.
        let noted = progress.unreadable.filter { !known.contains($0) }
        report(page.unreadable.filter { row in row.after.map { noted.contains($0) } ?? true })
        try reread(rest)
    }

    // MARK: The feed

    private mutating func beginList() throws {
        let earlier = try failures()
        if position == nil {
            // Everything is listed anyway.
            missing.insert(contentsOf: earlier)
            ask(isWaiting: false)
        } else {
            try list(earlier, then: .ask)
        }
    }

    private mutating func ask(isWaiting: Bool) {
        var query = ChangesQuery(setup.selection, since: position, limit: ChangesQuery.pageSize)
        query.asksRevocations = setup.autoPurges
        if isWaiting { query.heartbeat = setup.heartbeat }
        stage = .asking(isWaiting: isWaiting)
        queue.append([.changes(query, within: isWaiting ? retryDelay : nil)])
    }

    private mutating func read(_ page: ChangesPage, after time: Duration, isWaiting: Bool) throws {
        if try lacksRows(page) {
            stage = .pausing(nil, isWaiting: isWaiting)
            return queue.append([.pause(.milliseconds(125 << emptyAnswers))])
        }
        guard page.isEmpty else {
            if isWaiting { reports.append(.busy(true)) }
            return try pull(page)
        }
        guard isWaiting, time < .seconds(1) else { return try end(page, isWaiting: isWaiting) }
        // A remote that does not wait is not asked all the time.
        stage = .pausing(page, isWaiting: isWaiting)
        queue.append([.pause(.seconds(1))])
    }

    /// Whether the remote says that changes follow, but lists none of them. A change may have come while it answered. Where documents are
    /// selected, a remote may also count those that are not (protocol/couchdb-corrections.md 33).
    ///
    /// - Throws: `remoteError` if that is so again and again: what follows would be passed over.
    private mutating func lacksRows(_ page: ChangesPage) throws -> Bool {
        guard page.isEmpty, case .all = setup.selection, let pending = page.end.pending, pending > 0 else {
            emptyAnswers = 0
            return false
        }
        emptyAnswers += 1
        guard emptyAnswers <= Self.maximumEmptyAnswers else {
            throw LoveseatError(
                .remoteError,
                "the peer's list of changes is empty, although the peer says that \(pending.counted("change")) follow"
            )
        }
        return true
    }

    /// Pulls what a page lists, and goes on after it.
    private mutating func pull(_ page: ChangesPage) throws {
        guard let next = page.next, next != position else {
            throw LoveseatError(.remoteError, "the peer's list of changes does not go on")
        }
        try repeated.note(page.changes, page.unreadable)
        report(page.unreadable)
        try fetch(page.changes, .page(next, places: page.unreadable.map { $0.after ?? position }))
    }

    /// Goes on at the end of the feed.
    private mutating func end(_ page: ChangesPage, isWaiting: Bool) throws {
        repeated = RepeatedPages()
        if let next = page.next { advance(to: next, past: []) }
        if isWaiting { ask(isWaiting: true) } else { try list(missing.sorted, then: .end) }
    }

    /// Goes on after a sequence. The checkpoint follows, unless it is held. `places`: where rows are before it that could not be read.
    private mutating func advance(to sequence: RemoteSequence, past places: [RemoteSequence?]) {
        position = sequence
        progress.advance(to: sequence, past: places)
    }

    // MARK: Documents that could not be fetched

    /// The documents that could not be pulled, and that this replication is to pull.
    private func failures() throws -> [String] {
        try replica.failures().filter { setup.documentIDs?.contains($0) ?? true }
    }

    /// Asks again for documents of which a revision could not be fetched or stored.
    private mutating func list(_ ids: [String], then next: Next) throws {
        missing = []
        if ids.isEmpty { return try endList(next) }
        unsettled.subtract(DocumentSet(ids))
        stage = .listing(ids, then: next)
        queue.append([.listing(ids)])
    }

    /// A document is settled once the remote lists no revision of it that is missing here.
    private mutating func endRetry(_ ids: [String], _ listing: ChangesListing) throws {
        for id in missing.sorted {
            let error = LoveseatError(
                .httpNotFound,
                "the peer lists a revision that it does not have now: it is asked for again in the next run"
            )
            report(id, isDeleted: false, error)
        }
        missing = []
        // The row of a document that is not listed may be one that cannot be read.
        let named = DocumentSet(listing.isReadable ? ids : listing.changes.map(\.documentID))
        for id in ids where !named.contains(id) {
            unsettled.insert(id)
            let error = LoveseatError(
                .remoteError,
                "the peer's list of changes cannot be read where this document may be: it is asked for again in the next run"
            )
            report(id, isDeleted: false, error)
        }
        try replica.forgetFailures(ids.filter { !unsettled.contains($0) })
    }

    private mutating func endList(_ next: Next) throws {
        switch next {
        case .ask: return ask(isWaiting: false)
        case .end where !setup.isContinuous:
            stage = .caughtUp
            return reports += [.checkpoint(isLast: true), .busy(false)]
        case .end:
            retryDelay = try failures().isEmpty ? nil : retryDelay ?? Self.firstRetryDelay
        case .wait:
            retryDelay = unsettled.isEmpty ? nil : retryDelay.map { min($0 * 2, Self.maximumRetryDelay) }
        }
        reports += [.checkpoint(isLast: true), .busy(false)]
        ask(isWaiting: true)
    }

    /// Goes on after everything was fetched that can be.
    mutating func endFetching(_ purpose: Purpose) throws {
        switch purpose {
        case .page(let next, let places):
            advance(to: next, past: places)
            reports.append(.checkpoint(isLast: false))
            ask(isWaiting: false)
        case .retry(let ids, let listing, let next):
            try endRetry(ids, listing)
            try endList(next)
        case .place(let place, let page, let rest): try endPlace(place, page, rest)
        }
    }

    private func checkInvariants() {
        switch stage {
        case .rereading, .listing, .asking, .pausing: invariant(!queue.isEmpty, "nothing is asked for")
        case .beginning, .caughtUp: invariant(queue.isEmpty, "a request waits, and nothing is to be done")
        case .fetching: break
        }
        invariant(
            progress.isHeld || progress.checkpoint.remote == position,
            "the checkpoint is at \(progress.checkpoint), and the pull at \(position?.text ?? "the beginning")"
        )
    }
}
