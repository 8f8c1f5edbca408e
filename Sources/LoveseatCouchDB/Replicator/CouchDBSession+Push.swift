import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Synchronization

/// Pushes all leaves that the remote lacks, with their histories (protocol/couchdb.md §3.1, §3.7).
extension CouchDBSession {
    private static let pageSize = 500
    private static let pageBytes = 8 << 20
    private static let batchSize = 200
    private static let batchBytes = 1 << 20
    private static let requests = 3

    /// A changed document.
    private struct LocalDocument: Sendable {
        let record: DocumentRecord
        let branches: DocumentBranches
        /// The leaves that the app's filter lets out.
        let leaves: [DocumentBranch]
    }

    private struct LocalPage: Sendable {
        var documents: [LocalDocument] = []
        /// The sequences that were looked at.
        var range: ClosedRange<UInt64>
    }

    /// A leaf that the remote lacks.
    private struct PushedLeaf: Sendable {
        let document: LocalDocument
        let branch: DocumentBranch
        /// Revisions that the remote has.
        let known: [RevisionID]
        var text = RenderedDocument()

        var id: String { document.record.id }
    }

    func push(_ index: Int) async throws {
        let lane = lanes[index]
        let (signals, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = store.changes.subscribe(
            collection: lane.handle.number,
            onClose: { signal.finish() },
            { _ in signal.yield() }
        )
        defer { store.changes.unsubscribe(token) }
        var isBusy = false
        var waiting = signals.makeAsyncIterator()
        while true {
            while let page = try nextPage(lane) {
                if !isBusy { setBusy(true) }
                isBusy = true
                try await push(page, lane)
                complete(page.range, lane)
                await saveCheckpoint(lane)
            }
            await saveCheckpoint(lane, isLast: true)
            if isBusy { setBusy(false) }
            isBusy = false
            guard plan.isContinuous, await waiting.next(isolation: self) != nil else {
                return try Task.checkCancellation()
            }
            try Task.checkCancellation()
        }
    }

    /// Counts sequences as done, but for those of documents that the next session tries again.
    private func complete(_ range: ClosedRange<UInt64>, _ lane: Lane) {
        lane.checkpoint.checkpoint.completed.insert(range)
        for sequence in lane.heldBack where range.contains(sequence) {
            lane.checkpoint.checkpoint.completed.remove(sequence)
        }
    }

    /// The next changes that are not done; nil if there are none.
    private func nextPage(_ lane: Lane) throws -> LocalPage? {
        var completed = lane.checkpoint.checkpoint.completed
        for sequence in lane.heldBack { completed.insert(sequence) }
        let since = completed.completeUpTo ?? 0
        let end = store.lastSequence(lane.handle)
        guard end > since else { return nil }
        let now = runtimeMilliseconds
        var (records, bytes, isFull): ([DocumentRecord], Int, Bool) = ([], 0, false)
        try store.read { view in
            try view.changes(in: lane.handle, since: since) { record in
                guard record.sequence <= end else { return false }
                records.append(record)
                bytes += record.body.bytes.count
                isFull = records.count >= Self.pageSize || bytes >= Self.pageBytes
                return !isFull
            }
        }
        var page = LocalPage(range: since + 1...(isFull ? records.last?.sequence ?? end : end))
        for record in records {
            if completed.contains(record.sequence) || record.expires.map({ $0 <= now }) ?? false { continue }
            if let ids = lane.documentIDs, !ids.contains(record.id) { continue }
            guard (try? IncomingDocument.checkReplicated(record.id)) != nil else {
                report(
                    record.id,
                    lane,
                    isPush: true,
                    isDeleted: record.isDeleted,
                    error: LoveseatError(
                        .badDocID,
                        "a CouchDB has no documents whose IDs begin with an underscore: rename it"
                    )
                )
                continue
            }
            let tree = try record.encodedTree.map { _ in try record.tree() }
            guard !record.isDamaged(in: tree) else {
                report(record.id, lane, isPush: true, isDeleted: record.isDeleted, error: record.damage)
                lane.heldBack.insert(record.sequence)
                continue
            }
            let branches = try DocumentBranches(of: store.whole(record, in: lane.handle))
            let leaves = branches.leaves.filter { passes($0, of: record.id, lane) }
            if !leaves.isEmpty {
                page.documents.append(LocalDocument(record: record, branches: branches, leaves: leaves))
            }
        }
        return page
    }

    private var runtimeMilliseconds: Int64 { replicas.nowMilliseconds() }

    /// The app's filter, and the endpoint's selector.
    private func passes(_ branch: DocumentBranch, of id: String, _ lane: Lane) -> Bool {
        let body = branch.body ?? .emptyObject
        if let selector {
            guard case .object(var object) = JSONElement(body).value else { return false }
            object["_id"] = .string(id)
            guard selector.matches(.object(object)) else { return false }
        }
        let candidate = FilterCandidate(
            documentID: id,
            revision: branch.id,
            isDeleted: branch.isDeleted,
            body: body
        )
        return lane.rules.pushFilter?(candidate, false) ?? true
    }

    private func push(_ page: LocalPage, _ lane: Lane) async throws {
        let answer = try await lane.remote.differences(
            page.documents.map { ($0.record.id, $0.leaves.map(\.id)) }
        )
        var bulk: [PushedLeaf] = []
        var singles: [PushedLeaf] = []
        var outcomes: [Outcome] = []
        for document in page.documents {
            let missing: MissingRevisions
            switch answer[ExactText(document.record.id)] {
            // The remote lacks nothing of it.
            case nil: continue
            case .failure(let error)?:
                outcomes.append(Outcome(document.record.id, error))
                continue
            case .success(let told)?: missing = told
            }
            for branch in document.leaves where missing.missing.contains(ExactText(branch.id.text)) {
                var leaf = PushedLeaf(document: document, branch: branch, known: missing.ancestors)
                leaf.text = Self.render(leaf, form: .parts, store.blobs)
                if leaf.text.parts.isEmpty { bulk.append(leaf) } else { singles.append(leaf) }
            }
        }
        expect(bulk.count + singles.count, among: page.documents.count)
        let batches = DocumentBatches.divide(bulk, count: Self.batchSize, bytes: Self.batchBytes) {
            $0.text.bytes.count
        }
        let jobs = batches + singles.map { [$0] }
        let target = PushTarget(remote: lane.remote, blobs: store.blobs, tally: lane.tally)
        try await run(jobs, atOnce: Self.requests) {
            try await Self.write($0, to: target)
        } _: {
            done in
            outcomes += done
            finish(done.count, bytes: done.reduce(0) { $0 + $1.bytes }, isPush: true)
        }
        if !target.tally.hasAccepted, let error = outcomes.first(where: \.isDoubtful)?.error,
            await !lane.remote.answers()
        {
            throw error
        }
        try note(outcomes, page, lane)
    }

    /// Reports the outcomes of a page's documents, and marks the documents that the remote has.
    private func note(_ outcomes: [Outcome], _ page: LocalPage, _ lane: Lane) throws {
        var errors: DocumentMap<LoveseatError> = [:]
        for outcome in outcomes where outcome.error != nil { errors[ExactText(outcome.id)] = outcome.error }
        let sent = DocumentSet(outcomes.map(\.id))
        for document in page.documents where sent.contains(document.record.id) {
            let error = errors[ExactText(document.record.id)]
            if let error, !error.isFinalRefusal { lane.heldBack.insert(document.record.sequence) }
            finish(0, documents: error == nil ? 1 : 0, isPush: true)
            report(
                document.record.id,
                lane,
                isPush: true,
                isDeleted: document.record.isDeleted,
                error: error
            )
        }
        let marked = page.documents.compactMap { document -> SyncedRevision? in
            let record = document.record
            guard errors[ExactText(record.id)] == nil,
                document.leaves.contains(where: { $0.id == record.revision })
            else {
                return nil
            }
            return SyncedRevision(
                documentID: record.id,
                revision: record.revision,
                sequence: record.sequence
            )
        }
        if !marked.isEmpty { try lane.replica.markSynced(marked) }
    }

    // MARK: Writing

    private struct Outcome: Sendable {
        let id: String
        let bytes: Int
        var error: LoveseatError?
        /// The remote refuses the document, or all that this client sends.
        var isDoubtful = false

        init(_ leaf: PushedLeaf, bytes: Int? = nil, _ error: LoveseatError? = nil, isDoubtful: Bool = false) {
            id = leaf.id
            self.bytes = bytes ?? leaf.text.bytes.count
            (self.error, self.isDoubtful) = (error, isDoubtful)
        }

        /// A document that was not sent.
        init(_ id: String, _ error: LoveseatError) { (self.id, bytes, self.error) = (id, 0, error) }
    }

    private struct PushTarget: Sendable {
        let remote: RemoteDatabase
        let blobs: BlobFiles
        let tally: PushTally
    }

    private static func render(
        _ leaf: PushedLeaf,
        form: DocumentRenderer.Form,
        whole: Bool = false,
        _ blobs: BlobFiles
    ) -> RenderedDocument {
        var options = DocumentOptions()
        options.withRevisions = true
        if whole || leaf.known.isEmpty {
            options.withAttachments = true
        } else {
            options.attachmentsSince = leaf.known
        }
        let renderer = DocumentRenderer(options: options, form: form, blobs: blobs)
        return renderer.render(leaf.branch, of: leaf.id, in: leaf.document.branches)
    }

    private static func write(_ leaves: [PushedLeaf], to target: PushTarget) async throws -> [Outcome] {
        if let leaf = leaves.first, leaves.count == 1, !leaf.text.parts.isEmpty {
            return [try await writeAlone(leaf, leaf.text, to: target)]
        }
        do {
            let refused = try await target.remote.write(
                leaves.map(\.text.bytes),
                of: DocumentSet(leaves.map(\.id))
            )
            if let row = refused.first(where: \.lacksSpace) { throw row.failure }
            let outcomes = leaves.map { leaf in
                let row = refused.first { row in
                    guard row.documentID.isExactly(leaf.id) else { return false }
                    // A row without a revision that was sent means all leaves of its document.
                    let isNamed = leaves.contains {
                        $0.id.isExactly(leaf.id) && $0.branch.id.text.isExactly(row.revision ?? "")
                    }
                    return !isNamed || row.revision.isExactly(leaf.branch.id.text)
                }
                return Outcome(leaf, row?.failure, isDoubtful: row?.mayPass ?? false)
            }
            for outcome in outcomes { try count(outcome, target) }
            return outcomes
        } catch let failure as RemoteFailure {
            // CouchDB refuses single documents by rows.
            if failure.status == 403, target.tally.beginQuestion(),
                let refusal = try await target.remote.refusalOfWrites()
            {
                throw refusal.failure(of: "_bulk_docs")
            }
            if let (first, second) = DocumentBatches.halves(leaves) {
                let one = try await write(first, to: target)
                return try await one + write(second, to: target)
            }
            guard let leaf = leaves.first else { return [] }
            if failure.status == 412 {
                let whole = render(leaf, form: .parts, whole: true, target.blobs)
                return [try await writeAlone(leaf, whole, to: target, isWhole: true)]
            }
            return [try count(outcome(leaf, failure), target)]
        }
    }

    private static func outcome(_ leaf: PushedLeaf, bytes: Int? = nil, _ failure: RemoteFailure) -> Outcome {
        Outcome(leaf, bytes: bytes, failure.failure(of: "the document"), isDoubtful: failure.isDoubtful)
    }

    /// - Throws: the error of the document, if the remote refuses everything.
    @discardableResult
    private static func count(_ outcome: Outcome, _ target: PushTarget) throws -> Outcome {
        if outcome.error == nil { target.tally.noteAccepted() }
        if let error = outcome.error, outcome.isDoubtful, target.tally.noteDoubtful() { throw error }
        return outcome
    }

    /// Writes a document with attachments in parts, or in JSON where the remote does not take parts.
    private static func writeAlone(
        _ leaf: PushedLeaf,
        _ text: RenderedDocument,
        to target: PushTarget,
        isWhole: Bool = false
    ) async throws -> Outcome {
        let (remote, blobs) = (target.remote, target.blobs)
        let bytes = text.bytes.count + text.parts.reduce(0) { $0 + $1.storedLength }
        do {
            for part in text.parts where blobs.length(part.digest) == nil {
                throw LoveseatError(.notFound, "its attachment \(part.name) is not in this database")
            }
            if remote.takesParts, !text.parts.isEmpty {
                let layout = try MultipartReply.related(text)
                do {
                    try await remote.write(
                        leaf.id,
                        contentType: layout.contentType,
                        Upload(layout, blobs: blobs)
                    )
                    return try count(Outcome(leaf, bytes: bytes), target)
                } catch let failure as RemoteFailure where failure.status == 415 {
                    remote.noteWithoutParts()
                }
            }
            let inline = render(leaf, form: .inline, whole: isWhole, target.blobs)
            try await remote.write(leaf.id, contentType: "application/json", Upload(inline, blobs: blobs))
            return try count(Outcome(leaf, bytes: bytes), target)
        } catch let failure as RemoteFailure {
            if failure.status == 412, !isWhole {
                let whole = render(leaf, form: .parts, whole: true, target.blobs)
                return try await writeAlone(leaf, whole, to: target, isWhole: true)
            }
            guard failure.refusesDocument || failure.isDoubtful else {
                throw failure.failure(of: "the document \"\(leaf.id)\"")
            }
            if failure.status == 403, target.tally.beginQuestion(),
                let refusal = try await remote.refusalOfWrites()
            {
                throw refusal.failure(of: "_bulk_docs")
            }
            return try count(outcome(leaf, bytes: bytes, failure), target)
        } catch let error as LoveseatError where [.notFound, .corruptData].contains(error.code) {
            // A blob is not here, or is damaged.
            return Outcome(leaf, bytes: bytes, error)
        }
    }
}

/// Counts accepted and refused documents of a session, to find out whether the remote accepts anything at all.
final class PushTally: Sendable {
    /// A remote that refuses so many documents and takes none refuses all.
    private static let maximumDoubtful = 8

    private let counts = Mutex((accepted: 0, doubtful: 0))
    private let isAsked = Mutex(false)

    var hasAccepted: Bool { counts.withLock { $0.accepted > 0 } }

    /// Returns whether to ask the remote if it takes documents at all: once, as long as it has taken none.
    func beginQuestion() -> Bool {
        if hasAccepted { return false }
        return isAsked.withLock { isAsked in
            defer { isAsked = true }
            return !isAsked
        }
    }

    func noteAccepted() { counts.withLock { $0.accepted += 1 } }

    /// Returns whether the remote seems to refuse everything.
    func noteDoubtful() -> Bool {
        counts.withLock { counts in
            counts.doubtful += 1
            return counts.accepted == 0 && counts.doubtful > Self.maximumDoubtful
        }
    }
}
