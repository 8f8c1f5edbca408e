import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication

/// Decides how all leaves that the remote lacks are pushed, with their histories (protocol/couchdb.md §3.1, §3.7).
///
/// ```
/// reading ──page──▶ comparing ──▶ writing ──▶ (checking) ──▶ reading ──none──▶ caught up
///                   _revs_diff    _bulk_docs, PUT
/// ```
package struct PushMachine: RequestMachine {
    package enum Request: Sendable {
        /// Which of these leaves the remote lacks.
        case differences([(id: String, revisions: [RevisionID])])
        /// Leaves without content of attachments.
        case bulk([PushedLeaf])
        /// A leaf with its attachments in parts.
        case parts(PushedLeaf)
        /// A leaf with its attachments in JSON.
        case inline(PushedLeaf, RenderedDocument)
        /// Whether the remote takes any documents from this client, after it has refused this.
        indirect case permission(after: Request, RemoteFailure)
        /// Whether the remote answers to this client at all.
        case presence
    }

    package enum Answer: Sendable {
        /// Without the documents of which the remote lacks nothing.
        case differences(DocumentMap<Result<MissingRevisions, LoveseatError>>)
        /// The documents were written, but for these.
        case written([RefusedDocument])
        case refused(RemoteFailure)
        /// The content could not be read here.
        case unreadable(LoveseatError)
        /// Why the remote takes no documents; nil if it does not say so.
        case permission(RemoteFailure?)
        case presence(Bool)
    }

    private enum Stage {
        case reading
        case comparing(PushPage)
        case writing(PushPage, [Outcome])
        /// The remote has refused everything, and is asked whether it answers at all. Otherwise this error ends the session.
        case checking(PushPage, [Outcome], LoveseatError)
        case caughtUp
    }

    /// The result of a leaf, or of a document that was not sent.
    private struct Outcome {
        let id: String
        let bytes: Int
        var error: LoveseatError?
        /// The remote refuses the document, or all that this client sends.
        var isDoubtful = false
    }

    private static let batchSize = 200
    private static let batchBytes = 1 << 20
    private static let requests = 3
    package static let isPush = true

    private let source: any PushSource
    private let replica: any ReplicaCheckpoints
    private let collection: Int
    private var stage = Stage.reading
    private var queue = RequestQueue<Request>()
    package var reports: [SessionReport] = []
    private var isBusy = false
    private var tally = PushTally()
    private var takesParts = true
    /// The local sequences that are done.
    package private(set) var completed = SequenceSet()
    /// The sequences of documents that this session could not push, and that the next one tries again.
    private var heldBack: Set<UInt64> = []

    package init(_ source: any PushSource, _ replica: any ReplicaCheckpoints, collection: Int) {
        (self.source, self.replica, self.collection) = (source, replica, collection)
    }

    /// Sets where the session goes on.
    package mutating func begin(after completed: SequenceSet) { self.completed = completed }

    /// Notes that something was saved.
    package mutating func noteChange() { if case .caughtUp = stage { stage = .reading } }

    package var isCaughtUp: Bool { if case .caughtUp = stage { true } else { false } }

    // MARK: Pages

    package mutating func goOn() throws {
        switch stage {
        case .reading: try read()
        case .writing(let page, let outcomes) where queue.isEmpty: try endWriting(page, outcomes)
        case .comparing, .writing, .checking, .caughtUp: break
        }
        checkInvariants()
    }

    private mutating func read() throws {
        var done = completed
        for sequence in heldBack { done.insert(sequence) }
        guard let page = try source.nextPage(after: done) else {
            stage = .caughtUp
            reports.append(.checkpoint(isLast: true))
            return setBusy(false)
        }
        setBusy(true)
        for document in page.unfit {
            report(document.id, isDeleted: document.isDeleted, document.error)
            if document.isHeldBack { heldBack.insert(document.sequence) }
        }
        if page.documents.isEmpty { return try end(page, []) }
        stage = .comparing(page)
        queue.append([.differences(page.documents.map { ($0.id, $0.leaves) })])
    }

    private mutating func setBusy(_ isBusy: Bool) {
        if self.isBusy != isBusy { reports.append(.busy(isBusy)) }
        self.isBusy = isBusy
    }

    private mutating func compare(
        _ page: PushPage,
        _ answer: DocumentMap<Result<MissingRevisions, LoveseatError>>
    ) {
        var (bulk, singles): ([PushedLeaf], [PushedLeaf]) = ([], [])
        var outcomes: [Outcome] = []
        for (place, document) in page.documents.enumerated() {
            switch answer[ExactText(document.id)] {
            // The remote lacks nothing of it.
            case nil: continue
            case .failure(let error)?: outcomes.append(Outcome(id: document.id, bytes: 0, error: error))
            case .success(let told)?:
                for revision in document.leaves where told.missing.contains(ExactText(revision.text)) {
                    let leaf = rendered(
                        PushedLeaf(
                            place: place,
                            documentID: document.id,
                            revision: revision,
                            known: told.ancestors
                        )
                    )
                    if leaf.text.parts.isEmpty { bulk.append(leaf) } else { singles.append(leaf) }
                }
            }
        }
        reports.append(.found(bulk.count + singles.count, changes: page.documents.count))
        let batches = DocumentBatches.divide(bulk, count: Self.batchSize, bytes: Self.batchBytes) {
            $0.text.length
        }
        queue.append(batches.map { .bulk($0) } + singles.map { .parts($0) })
        stage = .writing(page, outcomes)
    }

    private func rendered(_ leaf: PushedLeaf, isWhole: Bool = false) -> PushedLeaf {
        var leaf = leaf
        leaf.isWhole = isWhole
        leaf.text = source.render(leaf, isInline: false)
        return leaf
    }

    private mutating func endWriting(_ page: PushPage, _ outcomes: [Outcome]) throws {
        if !tally.hasAccepted, let error = outcomes.first(where: \.isDoubtful)?.error {
            stage = .checking(page, outcomes, error)
            return queue.append([.presence])
        }
        try end(page, outcomes)
    }

    /// Reports the outcomes of a page's documents, marks the documents that the remote has, and counts the page's sequences as done, but for
    /// those of documents that the next session tries again.
    private mutating func end(_ page: PushPage, _ outcomes: [Outcome]) throws {
        var errors: DocumentMap<LoveseatError> = [:]
        for outcome in outcomes where outcome.error != nil { errors[ExactText(outcome.id)] = outcome.error }
        let sent = DocumentSet(outcomes.map(\.id))
        for document in page.documents where sent.contains(document.id) {
            let error = errors[ExactText(document.id)]
            if let error, !error.isFinalRefusal { heldBack.insert(document.sequence) }
            reports.append(.finished(0, documents: error == nil ? 1 : 0))
            report(document.id, isDeleted: document.isDeleted, error)
        }
        let marked = page.documents.filter { document in
            errors[ExactText(document.id)] == nil && document.leaves.contains(document.revision)
        }.map { SyncedRevision(documentID: $0.id, revision: $0.revision, sequence: $0.sequence) }
        if !marked.isEmpty { try replica.markSynced(marked) }
        completed.insert(page.range)
        for sequence in heldBack where page.range.contains(sequence) { completed.remove(sequence) }
        stage = .reading
        reports.append(.checkpoint(isLast: false))
    }

    private mutating func report(_ id: String, isDeleted: Bool, _ error: LoveseatError?) {
        reports.append(.document(.pushed(id, in: collection, isDeleted: isDeleted, error)))
    }

    // MARK: Requests

    package mutating func next(atOnce limit: Int) -> RequestQueue<Request>.Numbered? {
        while let request = queue.next(atOnce: min(limit, Self.requests)) {
            guard case .parts(let leaf) = request else { return queue.begin(request) }
            if let lost = leaf.text.parts.first(where: { !source.contains($0.digest) }) {
                note(
                    leaf,
                    LoveseatError(.notFound, "its attachment \(lost.name) is not in this database")
                )
                continue
            }
            if takesParts, !leaf.text.parts.isEmpty { return queue.begin(request) }
            return queue.begin(.inline(leaf, source.render(leaf, isInline: true)))
        }
        return nil
    }

    package mutating func receive(_ answer: Answer, to number: Int) throws {
        // That no such request is under way was reported.
        guard let request = queue.end(number) else { return }
        switch (request, answer, stage) {
        case (.differences, .differences(let differences), .comparing(let page)):
            compare(page, differences)
        case (.bulk(let leaves), .written(let refused), .writing): try written(leaves, refused)
        case (.parts(let leaf), .written, .writing), (.inline(let leaf, _), .written, .writing):
            note(leaf)
            tally.noteAccepted()
        case (.bulk(let leaves), .refused(let failure), .writing): try bulkRefused(leaves, failure)
        case (.parts(let leaf), .refused(let failure), .writing) where failure.status == 415:
            takesParts = false
            queue.prepend([.parts(leaf)])
        case (.parts(let leaf), .refused(let failure), .writing),
            (.inline(let leaf, _), .refused(let failure), .writing):
            try refused(leaf, request, failure)
        case (.parts(let leaf), .unreadable(let error), .writing),
            (.inline(let leaf, _), .unreadable(let error), .writing):
            note(leaf, error)
        case (.permission(let refused, let failure), .permission(let refusal), .writing):
            if let refusal { throw refusal.failure(of: "_bulk_docs") }
            try goOn(after: refused, failure)
        case (.presence, .presence(let answers), .checking(let page, let outcomes, let error)):
            if !answers { throw error }
            try end(page, outcomes)
        default:
            impossible("\(answer) came to \(request)")
            throw LoveseatError(.unexpectedError, "the push begins again in the next session")
        }
        checkInvariants()
    }

    // MARK: Answers

    private mutating func written(_ leaves: [PushedLeaf], _ refused: [RefusedDocument]) throws {
        if let row = refused.first(where: \.lacksSpace) { throw row.failure }
        for leaf in leaves {
            let row = refused.first { row in
                guard row.documentID.isExactly(leaf.documentID) else { return false }
                // A row without a revision that was sent means all leaves of its document.
                let isNamed = leaves.contains {
                    $0.documentID.isExactly(leaf.documentID)
                        && $0.revision.text.isExactly(row.revision ?? "")
                }
                return !isNamed || row.revision.isExactly(leaf.revision.text)
            }
            if let row, row.mayPass {
                try doubt(leaf, row.failure)
            } else {
                note(leaf, row?.failure)
                if row == nil { tally.noteAccepted() }
            }
        }
    }

    /// The batch was refused, perhaps for one of its documents: CouchDB refuses single documents by rows.
    private mutating func bulkRefused(_ leaves: [PushedLeaf], _ failure: RemoteFailure) throws {
        guard
            failure.refusesDocument || failure.isDoubtful || (failure.status == 501 && leaves.count > 1)
        else { throw failure.failure(of: "_bulk_docs") }
        try askOrGoOn(after: .bulk(leaves), failure)
    }

    private mutating func refused(_ leaf: PushedLeaf, _ request: Request, _ failure: RemoteFailure) throws {
        if failure.status == 412, !leaf.isWhole {
            return queue.prepend([.parts(rendered(leaf, isWhole: true))])
        }
        guard failure.refusesDocument || failure.isDoubtful else {
            throw failure.failure(of: "the document \"\(leaf.documentID)\"")
        }
        try askOrGoOn(after: request, failure)
    }

    private mutating func askOrGoOn(after request: Request, _ failure: RemoteFailure) throws {
        guard failure.status == 403, tally.beginQuestion() else { return try goOn(after: request, failure) }
        queue.prepend([.permission(after: request, failure)])
    }

    private mutating func goOn(after refused: Request, _ failure: RemoteFailure) throws {
        switch refused {
        case .bulk(let leaves):
            if let (first, second) = DocumentBatches.halves(leaves) {
                return queue.prepend([.bulk(first), .bulk(second)])
            }
            guard let leaf = leaves.first else { return impossible("a batch without documents was sent") }
            if failure.status == 412 { return queue.prepend([.parts(rendered(leaf, isWhole: true))]) }
            try refuse(leaf, failure)
        case .parts(let leaf), .inline(let leaf, _): try refuse(leaf, failure)
        case .differences, .permission, .presence: impossible("no documents were refused, but \(refused)")
        }
    }

    private mutating func refuse(_ leaf: PushedLeaf, _ failure: RemoteFailure) throws {
        let error = failure.failure(of: "the document")
        if failure.isDoubtful { try doubt(leaf, error) } else { note(leaf, error) }
    }

    /// - Throws: the error of the leaf, if the remote refuses everything.
    private mutating func doubt(_ leaf: PushedLeaf, _ error: LoveseatError) throws {
        note(leaf, error, isDoubtful: true)
        if tally.noteDoubtful() { throw error }
    }

    private mutating func note(_ leaf: PushedLeaf, _ error: LoveseatError? = nil, isDoubtful: Bool = false) {
        guard case .writing(let page, var outcomes) = stage else {
            return impossible("a leaf of \"\(leaf.documentID)\" is done, and none is written")
        }
        // The array is in one place, so that it is not copied.
        stage = .reading
        let bytes = leaf.text.length
        outcomes.append(
            Outcome(id: leaf.documentID, bytes: bytes, error: error, isDoubtful: isDoubtful)
        )
        stage = .writing(page, outcomes)
        reports.append(.finished(1, bytes: bytes))
    }

    private func checkInvariants() {
        switch stage {
        case .reading, .caughtUp: invariant(queue.isEmpty, "a request waits without a page")
        case .comparing, .checking: invariant(!queue.isEmpty, "nothing is asked for")
        case .writing(let page, let outcomes):
            invariant(
                outcomes.count <= page.documents.reduce(0) { $0 + max(1, $1.leaves.count) },
                "\(outcomes.count) outcomes of \(page.documents.count) documents"
            )
            invariant(
                !completed.contains(page.range.lowerBound),
                "a page counts as done whose documents are being written"
            )
        }
        invariant(!heldBack.contains { completed.contains($0) }, "a document counts as done that is not")
    }
}

/// Counts accepted and refused documents of a session, to find out whether the remote accepts anything at all.
private struct PushTally {
    /// A remote that refuses so many documents and takes none refuses all.
    private static let maximumDoubtful = 8

    private(set) var hasAccepted = false
    private var doubtful = 0
    private var isAsked = false

    /// Returns whether to ask the remote if it takes documents at all: once, as long as it has taken none.
    mutating func beginQuestion() -> Bool {
        defer { isAsked = isAsked || !hasAccepted }
        return !hasAccepted && !isAsked
    }

    mutating func noteAccepted() { hasAccepted = true }

    /// Returns whether the remote seems to refuse everything.
    mutating func noteDoubtful() -> Bool {
        doubtful += 1
        return !hasAccepted && doubtful > Self.maximumDoubtful
    }
}
