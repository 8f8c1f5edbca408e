import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Decides what the receiving side of one collection does: which announced revisions it wants, when received ones are stored, and how they
/// are answered.
///
/// ```
///  changes ──▶ judged ──▶ answered ──▶ expected ──rev──▶ blobs fetched ──▶ insert queue ──▶ stored ──▶ answered
///   ≤ 16 MB of lists     ≤ 200 and 16 MB are expected                       ≤ 100, 1 MiB or 20 ms
/// ```
struct PullSession {
    struct Options: Hashable {
        /// Documents that the peer takes away are purged.
        var autoPurges = true
        /// The app decides which revisions are stored.
        var isFiltered = false
        /// The app decides what the peer may write.
        var restrictsAccess = false
        var takesDeltas = false
        /// The protocol extensions that answers to proposals name.
        var extensions: String?
        /// A body may say that the document was removed, because announcements cannot (replication.md Part B).
        var removesByBody = false
    }

    let replica: any ReplicaInbox & ReplicaBlobs
    let collection: Int
    let wireIndex: Int?
    /// An active puller subscribed, keeps track of sequences, and takes conflicts in; a passive one refuses them.
    let isActive: Bool
    let options: Options
    let tuning: ReplicationTuning

    /// Where this session's feed begins; nil for the beginning.
    let since: RemoteSequence?
    var sequences: RemoteSequences
    var lists: [Int: ReceivedList] = [:]
    var waitingLists: [Int] = []
    var nextList = 0
    var listBytes = 0
    var expectations = Expectations()
    /// Documents that the peer took away while one of their revisions was in flight.
    var revoked: DocumentSet = []
    /// The same for documents that stay here because of an edit: only their deletion is still accepted.
    var revokedButDeletion: DocumentSet = []
    var incoming: [Int: Incoming] = [:]
    var nextKey = 0
    var insertQueue: [Int] = []
    var insertBytes = 0
    private var timerIsSet = false
    /// Documents that the peer has and could not send.
    private(set) var unsent: DocumentSet = []
    private var isTime = false
    private var moved: [Moved] = []
    var bufferedBytes = 0
    var fetches: [BlobHandle: Int] = [:]
    /// Documents that need a blob while as many as may be are being fetched.
    var waitingForTurn: [Int] = []
    /// Documents that need a blob that is being fetched for another.
    var waitingForBlob: [BlobDigest: [Int]] = [:]
    /// The peer can send a blob from any byte on.
    var resumesBlobs = false
    var peer: RevisionTree.PeerKind
    /// Documents with a revision on its way to this side, and the place up to which announcements are about an older state of the peer.
    private var outdated: DocumentMap<Announcement> = [:]
    var isCaughtUp: Bool
    var progress = DirectionProgress()
    var failure: LoveseatError?
    /// The revisions that the peer sent a moment ago, which are not announced back to it. An active side knows them by its marks.
    private(set) var echoes = EchoMemory()

    init(
        _ replica: any ReplicaInbox & ReplicaBlobs,
        collection: Int,
        wireIndex: Int?,
        isActive: Bool,
        since: RemoteSequence?,
        options: Options,
        peer: RevisionTree.PeerKind,
        tuning: ReplicationTuning
    ) {
        self.replica = replica
        self.peer = peer
        self.options = options
        self.collection = collection
        self.wireIndex = wireIndex
        self.isActive = isActive
        self.tuning = tuning
        (self.since, sequences) = (since, RemoteSequences(since: since))
        isCaughtUp = !isActive
    }

    var remoteSequence: RemoteSequence? { sequences.done }

    /// Notes that the peer has taken a revision of this document from here. Its earlier announcements are about an older state.
    mutating func pushed(_ documentID: String) {
        // The peer announces few of the documents that it takes at the same time.
        guard isListed(documentID) || isComing(documentID) else { return }
        outdated[ExactText(documentID)] = Announcement(list: nextList, index: .max)
    }

    /// Notes that the peer announced, at this place, a revision that is here already. Its earlier announcements are about an older state.
    mutating func confirmed(_ documentID: String, at place: Announcement) {
        // Most documents that are here already have nothing in flight.
        guard isComing(documentID) else { return }
        outdated[ExactText(documentID)] = max(place, outdated[ExactText(documentID)] ?? place)
    }

    /// Whether a revision that waits to be stored may be outdated: the peer has taken another one from here since it announced it.
    var mayStoreOutdated: Bool { !outdated.isEmpty && !insertQueue.isEmpty }

    func isComing(_ documentID: String) -> Bool {
        expectations.contains(documentID)
            || incoming.values.contains { $0.revision.documentID.isExactly(documentID) }
    }

    private func isListed(_ documentID: String) -> Bool {
        lists.values.contains { $0.announces(documentID) }
    }

    /// Forgets the note about a document of which nothing is in flight any more.
    mutating func forgetIfDone(_ documentID: String) {
        // Few documents are noted, and another revision of one of them may still be on its way.
        guard outdated[ExactText(documentID)] != nil, !isComing(documentID), !isListed(documentID) else {
            return
        }
        outdated[ExactText(documentID)] = nil
    }

    /// Whether no announced revision is unanswered, expected, or on its way into the database.
    var isQuiet: Bool { lists.isEmpty && expectations.isAnswered && incoming.isEmpty }

    // MARK: Revisions

    /// Handles the peer's message that it cannot send an expected revision (replication.md §9.3).
    mutating func noRevision(_ message: Message, _ effects: inout SessionEffects) {
        guard let message = NoRevisionMessage(message) else { return failUnnamed("norev") }
        let id = message.documentID
        expectations.agreed.remove(id)
        defer { forgetIfDone(id) }
        guard let entry = expectations.key(of: message).flatMap({ expectations.remove($0) }) else {
            // A peer may take back a revision that was not requested, or has arrived.
            if message.sequence == nil, expectations.contains(id) { failUnnamed("norev") }
            return
        }
        progress.finish(entry.bodySize, isDocument: false)
        guard message.status >= 500 else { return sequences.finish(entry.number) }
        // The peer has the document, and may be able to send it another time: the next session asks for it by its ID.
        let error = LoveseatError(
            .init(10_000 + min(message.status, 599)),
            "the peer cannot send it: \(message.reason)"
        )
        if isActive, let revision = message.revision {
            noteFailure(id, revision, error, &effects)
            unsent.insert(id)
            sequences.finish(entry.number)
        }
        report(id, isDeleted: false, error, &effects)
    }

    /// Ends a pull whose peer does not say which revision it sends, or does not send: one that was asked for would be expected for ever.
    mutating func failUnnamed(_ profile: String) {
        // A passive side expects no sequences. Where nothing is expected, such a message means nothing.
        guard isActive, !expectations.isAnswered else { return }
        failure = LoveseatError(
            .remoteError,
            "the peer sent a '\(profile)' message that does not say which revision it means, so it is unknown what is still to come"
        )
    }

    // MARK: Storing

    /// Queues a revision to be stored, since none of its blobs is missing.
    mutating func enqueue(_ key: Int, _ entry: Incoming, _ effects: inout SessionEffects) {
        entry.stage = .ready
        guard !isRevoked(entry.revision.documentID, isDeleted: entry.revision.isDeleted) else {
            return end(key, nil, reports: false, &effects)
        }
        insertQueue.append(key)
        insertBytes += entry.revision.body.bytes.count
    }

    /// Does everything that is possible without the peer.
    mutating func goOn(_ effects: inout SessionEffects) {
        assignTurns(&effects)
        storeIfDue(&effects)
    }

    /// A change to a document, which the push has to follow.
    enum Moved {
        case stored(String)
        /// The app's resolver has to be asked.
        case inConflict(String)
        case takenAway(String)
    }

    /// Forgets the unsent documents that have arrived. `failed`: the documents that are still to be pulled.
    mutating func keepUnsent(of failed: [String]) {
        unsent = DocumentSet(failed.filter(unsent.contains))
    }

    mutating func drainMoved() -> [Moved] {
        defer { moved = [] }
        return moved
    }

    /// Stores received revisions as soon as nothing else is expected, there are enough of them, or they have waited long.
    private mutating func storeIfDue(_ effects: inout SessionEffects) {
        while !insertQueue.isEmpty, effects.failure == nil {
            let isEnough = insertQueue.count >= tuning.insertBatch || insertBytes >= tuning.insertBytes
            guard isTime || isEnough || expectations.isEmpty else {
                if !timerIsSet {
                    timerIsSet = true
                    effects.append(
                        .setTimer(.insert(collection: collection), milliseconds: tuning.insertDelay)
                    )
                }
                return
            }
            if timerIsSet { effects.append(.cancelTimer(.insert(collection: collection))) }
            (timerIsSet, isTime) = (false, false)
            storeBatch(&effects)
        }
        isTime = false
    }

    mutating func timerFired() { (timerIsSet, isTime) = (false, true) }

    private mutating func storeBatch(_ effects: inout SessionEffects) {
        let queued = insertQueue.prefix(tuning.insertBatch)
        insertQueue.removeFirst(queued.count)
        let batch = queued.compactMap { key -> (key: Int, entry: Incoming)? in
            guard let entry = incoming[key] else {
                impossible("a revision is to be stored that is not here")
                return nil
            }
            return (key, entry)
        }
        let revisions = batch.map { _, entry in
            guard let place = entry.expected?.place, let last = outdated[ExactText(entry.revision.documentID)]
            else {
                return entry.revision
            }
            var revision = entry.revision
            revision.isOutdated = place <= last
            return revision
        }
        insertBytes -= revisions.reduce(0) { $0 + $1.body.bytes.count }
        // The database failed, which ends the session.
        guard let results = effects.ask({ try replica.insert(revisions) }) else { return }
        // A database that cannot write is not a fault of one document.
        for case .failed(let error) in results where error.code.domain != .couchbaseLite {
            return effects.fail(error)
        }
        invariant(results.count == batch.count, "\(results.count) answers to \(batch.count) revisions")
        for ((key, entry), result) in zip(batch, results) { stored(key, entry, result, &effects) }
    }

    private mutating func stored(
        _ key: Int,
        _ entry: Incoming,
        _ result: InsertResult,
        _ effects: inout SessionEffects
    ) {
        let id = entry.revision.documentID
        switch result {
        case .inserted, .alreadyHere, .conflict:
            if !isActive { echoes.remember(id, entry.revision.history[0], limit: tuning.echoes) }
            moved.append(result == .conflict ? .inConflict(id) : .stored(id))
            let answer = RevisionMessage.Answer.taken(isNew: result != .alreadyHere)
            end(key, nil, answer: answer, reports: result != .conflict, &effects)
        case .outranked(let knowledge, let current):
            moved.append(.stored(id))
            let tree = TreeMessage.answer(knowledge, current: current)
            end(key, nil, answer: .outranked(tree: tree), &effects)
        case .refusedConflict:
            end(key, LoveseatError(.httpConflict, "document \"\(id)\" would conflict"), &effects)
        case .badHistory:
            let error = LoveseatError(.badRevisionID, "the history of \"\(id)\" is not one of descent")
            end(key, error, &effects)
        case .failed(let error): end(key, error, &effects)
        }
    }

    mutating func noteTakenAway(_ id: String) { moved.append(.takenAway(id)) }

    /// Answers a revision and removes it.
    mutating func end(
        _ key: Int,
        _ error: LoveseatError?,
        answer: RevisionMessage.Answer = .taken(isNew: true),
        reports: Bool = true,
        finishesSequence: Bool = true,
        _ effects: inout SessionEffects
    ) {
        guard let entry = incoming.removeValue(forKey: key) else {
            return impossible("a revision is answered that is not here")
        }
        if let error, finishesSequence {
            noteFailure(entry.revision.documentID, entry.revision.history[0], error, &effects)
        }
        forgetIfDone(entry.revision.documentID)
        bufferedBytes -= entry.bytes
        if !entry.held.isEmpty { replica.releaseBlobs(entry.held) }
        if let request = entry.request {
            if let error {
                expectations.agreed.refuse(entry.revision.documentID)
                effects.append(.replyError(ReplyError(error), to: request, isUrgent: entry.isUrgent))
            } else {
                let reply = answer.message(isUrgent: entry.isUrgent)
                effects.append(.reply(reply.compressed(from: tuning.compressionThreshold), to: request))
            }
        }
        if finishesSequence, let number = entry.expected?.number { sequences.finish(number) }
        progress.finish(entry.units, isDocument: error == nil)
        progress.total = max(progress.total, progress.completed)
        if reports { report(entry.revision.documentID, isDeleted: entry.revision.isDeleted, error, &effects) }
    }

    /// Remembers a document that could not be stored, before its sequence counts as done with: the next session asks for it by
    /// its ID.
    func noteFailure(
        _ id: String,
        _ revision: RevisionID,
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        // A peer that pushes keeps refused revisions to offer them again, and revisions that the filter rejects are not to be requested.
        guard isActive, error != .rejectedByPullFilter else { return }
        let failed = DocumentRevision(documentID: id, revision: revision)
        effects.ask { try replica.noteFailure(failed, error) }
    }

    /// Reports the outcome for a document. A passive side's app is told only of errors.
    func report(
        _ id: String,
        isDeleted: Bool,
        isAccessRemoved: Bool = false,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        if !isActive, error == nil { return }
        effects.append(
            .report(
                .document(
                    DocumentEvent(
                        collection: collection,
                        documentID: id,
                        isPush: false,
                        isDeleted: isDeleted,
                        isAccessRemoved: isAccessRemoved,
                        error: error
                    )
                )
            )
        )
    }

    /// Discards revisions that are not stored, and suspends their blobs.
    mutating func disconnected() {
        for handle in fetches.keys.sorted() { replica.suspendBlob(handle) }
        let held = incoming.sorted { $0.key < $1.key }.flatMap(\.value.held)
        if !held.isEmpty { replica.releaseBlobs(held) }
        (fetches, incoming) = ([:], [:])
        (insertQueue, waitingForTurn, waitingForBlob) = ([], [], [:])
        bufferedBytes = 0
    }
}

/// The last revisions that a peer sent (replication.md §16).
struct EchoMemory: Sendable {
    var revisions: DocumentMap<RevisionID> = [:]
    var order: [String] = []

    mutating func remember(_ id: String, _ revision: RevisionID, limit: Int) {
        if revisions.updateValue(revision, forKey: ExactText(id)) == nil { order.append(id) }
        if order.count <= 2 * limit { return }
        for old in order.prefix(limit) { revisions[ExactText(old)] = nil }
        order.removeFirst(limit)
    }

    func contains(_ change: LocalChange) -> Bool {
        revisions[ExactText(change.documentID)] == change.revision
    }
}
