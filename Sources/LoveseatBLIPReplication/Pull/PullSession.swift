import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The rights and the limits of a pull.
struct PullSetup {
    let collection: Int
    let wireIndex: Int?
    /// An active puller subscribed, keeps track of sequences, and takes conflicts in; a passive one refuses them.
    let isActive: Bool
    let tuning: ReplicationTuning
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
    /// How messages name revisions.
    var names = RevisionNaming.trees

    init(collection: Int, wireIndex: Int?, isActive: Bool, tuning: ReplicationTuning) {
        (self.collection, self.wireIndex) = (collection, wireIndex)
        (self.isActive, self.tuning) = (isActive, tuning)
    }

    /// This side's own description, in its answers.
    var receiver: Receiver {
        var receiver = Receiver()
        receiver.maxHistory = names == .trees ? tuning.maxHistory : nil
        receiver.findsBlobs = true
        receiver.takesDeltas = takesDeltas
        return receiver
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
                    .pulled(
                        id,
                        in: collection,
                        isDeleted: isDeleted,
                        isAccessRemoved: isAccessRemoved,
                        error
                    )
                )
            )
        )
    }
}

/// Decides what the receiving side of one collection does: which announced revisions it wants, when received ones are stored, and how they
/// are answered.
///
/// ```
///  changes ──▶ judged ──▶ answered ──▶ expected ──rev──▶ blobs fetched ──▶ insert queue ──▶ stored ──▶ answered
///   ≤ 16 MB of lists     ≤ 200 and 16 MB are expected                       ≤ 100, 1 MiB or 20 ms
/// ```
struct PullSession {
    let replica: any ReplicaInbox & ReplicaBlobs
    private(set) var setup: PullSetup
    var sequences: RemoteSequences
    var lists = ReceivedLists()
    var expectations = Expectations()
    var notes = FlightNotes()
    var incoming = IncomingRevisions()
    var insertQueue = InsertQueue()
    /// Documents that the peer has and could not send.
    private(set) var unsent: DocumentSet = []
    var forPush = PushHints()
    var peer: RevisionTree.PeerKind
    var isCaughtUp: Bool
    var progress = DirectionProgress()
    var failure: LoveseatError?

    init(
        _ replica: any ReplicaInbox & ReplicaBlobs,
        _ setup: PullSetup,
        since: RemoteSequence?,
        peer: RevisionTree.PeerKind
    ) {
        self.replica = replica
        self.setup = setup
        self.peer = peer
        sequences = RemoteSequences(since: since)
        isCaughtUp = !setup.isActive
    }

    var remoteSequence: RemoteSequence? { sequences.done }

    /// Goes on in the form that the peer has shown, where none was negotiated.
    mutating func adopt(_ form: ProtocolForm) {
        (setup.names, setup.extensions) = (form.names, form.extensions)
        peer = form.peerKind
    }

    /// Notes that the peer has taken a revision of this document from here. Its earlier announcements are about an older state.
    mutating func pushed(_ documentID: String) {
        // The peer announces few of the documents that it takes at the same time.
        guard isListed(documentID) || isComing(documentID) else { return }
        notes.note(documentID, outdatedThrough: Announcement(list: lists.last, index: .max))
    }

    /// Notes that the peer announced, at this place, a revision that is here already. Its earlier announcements are about an older state.
    mutating func confirmed(_ documentID: String, at place: Announcement) {
        // Most documents that are here already have nothing in flight.
        guard isComing(documentID) else { return }
        notes.note(documentID, outdatedThrough: max(place, notes.place(of: documentID) ?? place))
    }

    /// Whether a revision that waits to be stored may be outdated: the peer has taken another one from here since it announced it.
    var mayStoreOutdated: Bool { notes.hasOutdated && !insertQueue.isEmpty }

    func isComing(_ documentID: String) -> Bool {
        expectations.contains(documentID) || incoming.contains(documentID)
    }

    private func isListed(_ documentID: String) -> Bool { lists.announce(documentID) }

    /// Forgets the note about a document of which nothing is in flight any more.
    mutating func forgetIfDone(_ documentID: String) {
        // Few documents are noted, and another revision of one of them may still be on its way.
        guard notes.place(of: documentID) != nil, !isComing(documentID), !isListed(documentID) else { return }
        notes.forgetOutdated(documentID)
    }

    /// Whether no announced revision is unanswered, expected, or on its way into the database.
    var isQuiet: Bool { lists.isEmpty && expectations.isAnswered && incoming.isEmpty }

    // MARK: Revisions

    /// Handles the peer's message that it cannot send an expected revision (replication.md §9.3).
    mutating func noRevision(_ message: Message, _ effects: inout SessionEffects) {
        guard let message = NoRevisionMessage(message, setup.names) else { return failUnnamed("norev") }
        let id = message.documentID
        expectations.agreed.remove(id)
        expectations.noteRefusal(nil, of: id)
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
        if setup.isActive, let revision = message.revision {
            noteFailure(id, revision, error, &effects)
            unsent.insert(id)
            sequences.finish(entry.number)
        }
        setup.report(id, isDeleted: false, error, &effects)
    }

    /// Ends a pull whose peer does not say which revision it sends, or does not send: one that was asked for would be expected for ever.
    mutating func failUnnamed(_ profile: String) {
        // A passive side expects no sequences. Where nothing is expected, such a message means nothing.
        guard setup.isActive, !expectations.isAnswered else { return }
        failure = LoveseatError(
            .remoteError,
            "the peer sent a '\(profile)' message that does not say which revision it means, so it is unknown what is still to come"
        )
    }

    // MARK: Storing

    /// Queues a revision to be stored, since none of its blobs is missing.
    mutating func enqueue(_ key: Int, _ entry: Incoming, _ effects: inout SessionEffects) {
        entry.stage = .ready
        guard !notes.isRevoked(entry.revision.documentID, isDeleted: entry.revision.isDeleted) else {
            return end(key, nil, reports: false, &effects)
        }
        insertQueue.append(key, entry.revision)
    }

    /// Does everything that is possible without the peer.
    mutating func goOn(_ effects: inout SessionEffects) {
        assignTurns(&effects)
        storeIfDue(&effects)
    }

    /// Forgets the unsent documents that have arrived. `failed`: the documents that are still to be pulled.
    mutating func keepUnsent(of failed: [String]) {
        unsent = DocumentSet(failed.filter(unsent.contains))
    }

    /// Stores received revisions as soon as nothing else is expected, there are enough of them, or they have waited long.
    private mutating func storeIfDue(_ effects: inout SessionEffects) {
        let timer = ReplicationTimer.insert(collection: setup.collection)
        while !insertQueue.isEmpty, effects.failure == nil {
            guard insertQueue.isDue(setup.tuning) || expectations.isEmpty else {
                if insertQueue.setTimer() {
                    effects.append(.setTimer(timer, milliseconds: setup.tuning.insertDelay))
                }
                return
            }
            if insertQueue.endWaiting() { effects.append(.cancelTimer(timer)) }
            storeBatch(&effects)
        }
        insertQueue.isTime = false
    }

    private mutating func storeBatch(_ effects: inout SessionEffects) {
        let batch = insertQueue.removeFirst(setup.tuning.insertBatch).compactMap {
            key -> (key: Int, entry: Incoming)? in
            guard let entry = incoming[key] else {
                impossible("a revision is to be stored that is not here")
                return nil
            }
            return (key, entry)
        }
        let revisions = batch.map { _, entry in
            guard let place = entry.expected?.place, let last = notes.place(of: entry.revision.documentID)
            else { return entry.revision }
            var revision = entry.revision
            revision.isOutdated = place <= last
            return revision
        }
        for revision in revisions { insertQueue.forget(revision) }
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
            // Of the rest of a document the peer has more than one revision.
            if !setup.isActive, entry.revision.restOf == nil {
                forPush.echoes.remember(id, entry.revision.name, limit: setup.tuning.echoes)
            }
            forPush.moved.append(result == .conflict ? .inConflict(id) : .stored(id))
            let answer = RevisionMessage.Answer.taken(isNew: result != .alreadyHere)
            end(key, nil, answer: answer, reports: result != .conflict, &effects)
        case .outranked(let knowledge, let current):
            forPush.moved.append(.stored(id))
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

    /// Answers a revision and removes it.
    mutating func end(
        _ key: Int,
        _ error: LoveseatError?,
        answer: RevisionMessage.Answer = .taken(isNew: true),
        reports: Bool = true,
        finishesSequence: Bool = true,
        _ effects: inout SessionEffects
    ) {
        guard let entry = incoming.remove(key) else {
            return impossible("a revision is answered that is not here")
        }
        let id = entry.revision.documentID
        if !entry.held.isEmpty { replica.releaseBlobs(entry.held) }
        // That a part was refused is said when all the others have come.
        let error = expectations.removeRefusal(of: entry.revision) ?? error
        // The database failed, which ends the session.
        guard let awaited = entry.awaited(after: error, in: replica, &effects) else { return }
        let goesOn = finishesSequence && !awaited.isEmpty
        if goesOn {
            expectations.expectAgain(id, entry.key, entry.expected, isActive: setup.isActive)
            expectations.noteRefusal(error, of: id)
        } else if let error, finishesSequence {
            noteFailure(id, entry.revision.name, error, &effects)
        }
        forgetIfDone(id)
        if let request = entry.request {
            if goesOn {
                let taken = RevisionMessage.Answer.taken(isNew: answer.isNew)
                var reply = taken.message(isUrgent: entry.isUrgent)
                LeafRequest.add(awaited, to: &reply)
                effects.append(.reply(reply, to: request))
            } else if let error {
                expectations.agreed.refuse(id)
                effects.append(.replyError(ReplyError(error), to: request, isUrgent: entry.isUrgent))
            } else {
                let reply = answer.message(isUrgent: entry.isUrgent)
                effects.append(.reply(reply.compressed(from: setup.tuning.compressionThreshold), to: request))
            }
        }
        if reports, entry.revision.restOf == nil || (error != nil && !goesOn) {
            setup.report(id, isDeleted: entry.revision.isDeleted, error, &effects)
        }
        if goesOn { return }
        if finishesSequence, let number = entry.expected?.number { sequences.finish(number) }
        progress.finish(entry.units, isDocument: error == nil)
        progress.total = max(progress.total, progress.completed)
    }

    /// Remembers a document that could not be stored, before its sequence counts as done with: the next session asks for it by
    /// its ID.
    func noteFailure(
        _ id: String,
        _ revision: RevisionName,
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        // A peer that pushes keeps refused revisions to offer them again, and revisions that the filter rejects are not to be requested.
        guard setup.isActive, error != .rejectedByPullFilter else { return }
        let failed = DocumentRevision(documentID: id, revision: revision)
        effects.ask { try replica.noteFailure(failed, error) }
    }

    /// Discards revisions that are not stored, and suspends their blobs.
    mutating func disconnected() {
        for handle in incoming.fetches.keys.sorted() { replica.suspendBlob(handle) }
        let held = incoming.held
        if !held.isEmpty { replica.releaseBlobs(held) }
        incoming.removeAll()
        insertQueue.removeAll()
    }
}

/// Notes of a pull for the push of the same collection.
struct PushHints {
    /// A change to a document, which the push has to follow.
    enum Moved {
        case stored(String)
        /// The app's resolver has to be asked.
        case inConflict(String)
        case takenAway(String)
    }

    var moved: [Moved] = []
    /// The revisions that the peer sent a moment ago, which are not announced back to it. An active side knows them by its marks.
    var echoes = EchoMemory()

    mutating func drainMoved() -> [Moved] {
        defer { moved = [] }
        return moved
    }
}

/// The last revisions that a peer sent (replication.md §16).
struct EchoMemory: Sendable {
    var revisions: DocumentMap<RevisionName> = [:]
    var order: [String] = []

    mutating func remember(_ id: String, _ revision: RevisionName, limit: Int) {
        if revisions.updateValue(revision, forKey: ExactText(id)) == nil { order.append(id) }
        if order.count <= 2 * limit { return }
        for old in order.prefix(limit) { revisions[ExactText(old)] = nil }
        order.removeFirst(limit)
    }

    func contains(_ change: LocalChange) -> Bool {
        revisions[ExactText(change.documentID)] == change.name
    }
}
