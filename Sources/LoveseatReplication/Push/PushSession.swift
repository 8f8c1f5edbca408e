import LoveseatBLIP
import LoveseatModel

/// Decides what the pushing side of one collection says next: the active side proposes, the passive side announces.
///
/// ```
///  feed ──read──▶ list ──sent──▶ answered ──▶ queue ──body read──▶ transmitting ──▶ unanswered ──▶ done
///    ▲             ≤ 5 lists                  ≤ 600                 ≤ 10             ≤ 2 MiB          │
///    └────────────── a newer revision of a document waits until its older one is done ◀──────────────┘
/// ```
struct PushSession: Sendable {
    enum Mode: Hashable {
        /// With `proposeChanges` (replication.md §8). Without pull a conflict is final.
        case proposing(pulls: Bool, trustsMarks: Bool)
        /// With `changes`, for a peer that subscribed (replication.md §7).
        case announcing(Subscription)
    }

    let collection: Int
    let wireIndex: Int?
    let mode: Mode
    let isContinuous: Bool
    /// Whether deltas are sent to a peer that takes them.
    let sendsDeltas: Bool
    let tuning: ReplicationTuning

    let initiallyCompleted: SequenceSet
    var lastRead: UInt64
    var isReading = false
    var hasMore = true
    var saidCaughtUp = false
    var lists: [Int: [LocalChange]] = [:]
    var nextList = 0
    var queue: [QueuedRevision] = []
    var inFlight: [Int: QueuedRevision] = [:]
    var nextKey = 0
    var unansweredBytes = 0
    /// Documents between the feed and their answer, and the newer change that waits for it.
    var busy: [String: LocalChange?] = [:]
    /// Proposals refused as conflicts, until the pull brings the reason.
    var parked: [String: LocalChange] = [:]
    var comparing: [Int: (change: LocalChange, server: RevisionID?)] = [:]
    /// The local sequences that are done with.
    private(set) var completed: SequenceSet
    /// Revisions whose bytes are being read or handed to the transport.
    var transmitting = 0
    private(set) var unflushedMarks: [DocumentRevision] = []
    var peerHistory: Int
    var peerFindsBlobs = false
    var peerTakesDeltas = false
    private(set) var progress = DirectionProgress()
    /// The peer's reason to refuse the whole push.
    private(set) var failure: LoveseatError?

    init(
        collection: Int,
        wireIndex: Int?,
        mode: Mode,
        start: SequenceSet,
        isContinuous: Bool,
        sendsDeltas: Bool,
        tuning: ReplicationTuning
    ) {
        self.sendsDeltas = sendsDeltas
        self.collection = collection
        self.wireIndex = wireIndex
        self.mode = mode
        self.isContinuous = isContinuous
        self.tuning = tuning
        initiallyCompleted = start
        lastRead = start.completeUpTo ?? 0
        completed = start
        completed.insert(0...lastRead)
        peerHistory = tuning.maxHistory
    }

    var isProposing: Bool { if case .proposing = mode { true } else { false } }

    var subscription: Subscription? {
        if case .announcing(let subscription) = mode { subscription } else { nil }
    }

    /// Everything known has been offered, sent and answered.
    var isCaughtUp: Bool {
        !isReading && !hasMore && lists.isEmpty && queue.isEmpty && inFlight.isEmpty && comparing.isEmpty
    }

    // MARK: The feed

    /// Something was saved. Reads on, if this push goes on at all.
    mutating func localChange(_ effects: inout [ReplicationEffect]) {
        hasMore = true
        pump(&effects)
    }

    mutating func pump(_ effects: inout [ReplicationEffect]) {
        readMore(&effects)
        sendMore(&effects)
    }

    mutating func readMore(_ effects: inout [ReplicationEffect]) {
        let listLimit = saidCaughtUp ? 1 : tuning.listsInFlight
        guard hasMore, !isReading, lists.count < listLimit, queue.count < tuning.revisionsQueued else {
            return
        }
        flushMarks(&effects)
        isReading = true
        var query = ChangeQuery(since: lastRead, limit: subscription?.batch ?? tuning.changesPerMessage)
        if let subscription {
            query.activeOnly = subscription.activeOnly && !saidCaughtUp
            query.documentIDs = subscription.documentIDs
        } else if case .proposing(_, let trustsMarks) = mode {
            query.isForPush = true
            query.trustsMarks = trustsMarks
        }
        effects.append(
            .store(.readChanges(collection: collection, query), then: .changesRead(collection: collection))
        )
    }

    /// `isEcho`: whether the peer itself sent this revision a moment ago.
    mutating func changesRead(
        _ changes: [LocalChange],
        through: UInt64,
        hasMore: Bool,
        isEcho: (LocalChange) -> Bool,
        _ effects: inout [ReplicationEffect]
    ) {
        isReading = false
        self.hasMore = hasMore
        if through > lastRead { completed.insert(lastRead + 1...through) }
        lastRead = max(lastRead, through)
        var list: [LocalChange] = []
        for change in changes where !initiallyCompleted.contains(change.sequence) {
            // The active side knows by its marks what the peer has; a passive one only remembers.
            if saidCaughtUp, !isProposing, isEcho(change) { continue }
            if let older = parked.removeValue(forKey: change.documentID) {
                complete(older)
            }
            completed.remove(change.sequence)
            progress.total += UInt64(max(1, change.bodySize))
            if let waiting = busy[change.documentID] {
                if let waiting { complete(waiting) }
                busy[change.documentID] = .some(change)
            } else {
                list.append(change)
            }
        }
        if !list.isEmpty { offer(list, &effects) }
        if !hasMore, !saidCaughtUp {
            saidCaughtUp = true
            if !isProposing {
                effects.append(
                    .send(listMessage("changes", body: Array("[]".utf8), isEmpty: true), then: nil)
                )
            }
        }
        pump(&effects)
    }

    func listMessage(_ profile: String, body: [UInt8], isEmpty: Bool) -> Message {
        var properties: MessageProperties = ["Profile": profile]
        properties["collection"] = wireIndex.map(String.init)
        if isProposing {
            properties["conflictIncludesRev"] = "true"
            properties[ProtocolExtensions.property] = ProtocolExtensions.all
        }
        return Message(properties, body: body, isUrgent: true, isCompressed: !isEmpty, noReply: isEmpty)
    }

    mutating func offer(_ list: [LocalChange], _ effects: inout [ReplicationEffect]) {
        for change in list { busy[change.documentID] = .some(nil) }
        nextList += 1
        lists[nextList] = list
        if isProposing {
            let message = listMessage(
                "proposeChanges",
                body: ProposeChangesMessage.body(list),
                isEmpty: false
            )
            effects.append(.send(message, then: .proposals(collection: collection, list: nextList)))
        } else {
            let message = listMessage("changes", body: ChangesMessage.body(list), isEmpty: false)
            effects.append(.send(message, then: .changes(collection: collection, list: nextList)))
        }
    }

    // MARK: Answers to lists

    mutating func listAnswered(
        _ number: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout [ReplicationEffect]
    ) {
        guard let list = lists.removeValue(forKey: number) else { return }
        do {
            let message = try answer.get()
            peerHistory = min(
                max(1, message.properties.int("maxHistory") ?? tuning.maxHistory),
                tuning.maxHistory
            )
            peerFindsBlobs = message.properties.bool("blobs")
            peerTakesDeltas = peerTakesDeltas || message.properties.bool("deltas")
            if isProposing {
                for (change, answer) in zip(
                    list,
                    try ProposeChangesMessage.parseAnswer(message.body, count: list.count)
                ) {
                    proposalAnswered(change, answer, &effects)
                }
            } else {
                for (change, answer) in zip(
                    list,
                    try ChangesMessage.parseAnswer(message.body, count: list.count)
                ) {
                    switch answer {
                    case .send(let known): enqueue(change, known: known)
                    case .notWanted, .refused: finish(change, synced: nil, &effects)
                    }
                }
            }
        } catch {
            failure = LoveseatError(reply: error, "offering changes")
        }
        pump(&effects)
    }

    mutating func proposalAnswered(
        _ change: LocalChange,
        _ answer: ProposeChangesMessage.Answer,
        _ effects: inout [ReplicationEffect]
    ) {
        switch answer {
        case .send: enqueue(change, known: change.remoteAncestor.map { [$0] } ?? [])
        case .alreadyThere: finish(change, synced: change.revision, &effects)
        case .conflict(let current): compare(change, server: current, &effects)
        case .refused(let status):
            let error = LoveseatError(
                .init(10_000 + status),
                "the peer refused document \"\(change.documentID)\""
            )
            report(change, error, &effects)
            finish(change, synced: nil, &effects)
        }
    }

    mutating func enqueue(_ change: LocalChange, known: [RevisionID]) {
        nextKey += 1
        queue.append(
            QueuedRevision(
                key: nextKey,
                sequence: change.sequence,
                documentID: change.documentID,
                revision: change.revision,
                isDeleted: change.isDeleted,
                bodySize: change.bodySize,
                isProposal: isProposing,
                known: known,
                maxHistory: peerHistory,
                sent: change.revision
            )
        )
    }

    // MARK: Revisions

    mutating func sendMore(_ effects: inout [ReplicationEffect]) {
        // A few at a time, since each read is a transaction.
        let room = min(tuning.revisionsTransmitting - transmitting, queue.count)
        guard room > 0, transmitting * 2 <= tuning.revisionsTransmitting,
            unansweredBytes < tuning.unansweredBytes
        else { return }
        var bytes = 0
        let next = Array(
            queue.prefix(room).prefix { revision in
                defer { bytes += revision.bodySize }
                return bytes == 0 || bytes + revision.bodySize <= tuning.transmittingBytes
            }
        )
        queue.removeFirst(next.count)
        transmitting += next.count
        for var revision in next {
            revision.isTransmitting = true
            inFlight[revision.key] = revision
        }
        requestBodies(next, &effects)
    }

    func requestBodies(_ revisions: [QueuedRevision], _ effects: inout [ReplicationEffect]) {
        let requests = revisions.map {
            RevisionRequest(
                documentID: $0.documentID,
                revision: $0.sent,
                known: $0.known,
                maxHistory: $0.maxHistory,
                wantsDelta: sendsDeltas && peerTakesDeltas && !$0.refusesDelta
            )
        }
        effects.append(
            .store(
                .readRevisions(collection: collection, requests),
                then: .revisionsRead(collection: collection, keys: revisions.map(\.key))
            )
        )
    }

    mutating func revisionsRead(
        _ keys: [Int],
        _ found: [OutgoingRevision],
        _ effects: inout [ReplicationEffect]
    ) {
        for (key, outgoing) in zip(keys, found) {
            guard var revision = inFlight[key] else { continue }
            switch outgoing {
            case .found(let content):
                let message = RevisionMessage.message(
                    revision,
                    content,
                    collection: wireIndex,
                    addsAttachments: !peerFindsBlobs,
                    compressionThreshold: tuning.compressionThreshold
                )
                revision.sent = content.revision
                revision.closedBranch = content.deletedBranch.last
                revision.isDelta = message.properties["deltaSrc"] != nil
                if revision.isDelta {
                    progress.deltas.sent += 1
                    progress.deltas.bytesSaved += UInt64(
                        max(0, content.body.bytes.count - message.body.count)
                    )
                }
                revision.sentBytes = max(1, message.body.count)
                unansweredBytes += revision.sentBytes
                inFlight[key] = revision
                effects.append(.send(message, then: .revision(collection: collection, key: key)))
            case .obsolete(let current)
            where subscription?.sendsReplacements == true && revision.sent == revision.revision:
                revision.sent = current
                inFlight[key] = revision
                requestBodies([revision], &effects)
            case .missing, .obsolete:
                sendNothing(revision, status: outgoing == .missing ? 404 : 410, &effects)
                end(revision, synced: false, &effects)
            }
        }
        pump(&effects)
    }

    /// Takes a promise back with `norev` (replication.md §9.3). A proposal promised nothing.
    func sendNothing(_ revision: QueuedRevision, status: Int, _ effects: inout [ReplicationEffect]) {
        guard !revision.isProposal else { return }
        var properties: MessageProperties = ["Profile": "norev"]
        properties["collection"] = wireIndex.map(String.init)
        properties["id"] = revision.documentID
        properties["rev"] = revision.revision.text
        properties["sequence"] = String(revision.sequence)
        properties["error"] = String(status)
        effects.append(.send(Message(properties, noReply: true), then: nil))
    }

    mutating func revisionSent(_ key: Int, _ effects: inout [ReplicationEffect]) {
        stopTransmitting(key)
        pump(&effects)
    }

    mutating func stopTransmitting(_ key: Int) {
        guard inFlight[key]?.isTransmitting == true else { return }
        inFlight[key]?.isTransmitting = false
        transmitting -= 1
    }

    /// The peer stored a revision, or says why not (replication.md §9.2).
    mutating func revisionAnswered(
        _ key: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout [ReplicationEffect]
    ) {
        stopTransmitting(key)
        guard var revision = inFlight[key] else { return }
        unansweredBytes -= revision.sentBytes
        revision.sentBytes = 0
        switch answer {
        case .success:
            report(revision, nil, &effects)
            end(revision, synced: true, &effects)
        case .failure(let reply):
            let error = LoveseatError(reply: reply, "pushing document \"\(revision.documentID)\"")
            if reply.domain == "HTTP", reply.code == 403, !revision.wasForbidden, isProposing {
                // Access may have come with a document sent beside this one, so it gets one more try.
                revision.wasForbidden = true
                inFlight[key] = nil
                queue.append(revision)
            } else if revision.isDelta, Self.asksForWholeBody(reply) {
                revision.refusesDelta = true
                inFlight[key] = revision
                requestBodies([revision], &effects)
            } else if error.code == .httpConflict, let peer = revision.closedBranch, isProposing {
                // The peer has gone on from what is current here, and dropped it: it can only follow the peer's.
                effects.append(
                    .store(
                        .follow(
                            collection: collection,
                            documentID: revision.documentID,
                            revision: revision.sent,
                            peer: peer
                        ),
                        then: .followed(collection: collection)
                    )
                )
                end(revision, synced: false, &effects)
            } else if error.isTransient {
                report(revision, error, &effects)
                inFlight[key] = nil
                progress.finish(revision.bodySize, isDocument: false)
                release(revision.documentID, succeeded: nil, &effects)
            } else {
                report(revision, error, &effects)
                end(revision, synced: false, &effects)
            }
        }
        pump(&effects)
    }

    /// Whether a peer says that it cannot use a delta (replication.md §10.3).
    private static func asksForWholeBody(_ reply: ReplyError) -> Bool {
        switch reply.domain {
        case "HTTP": reply.code == 422 || reply.code == 404
        case "LiteCore": reply.code == 31 || reply.code == 32
        default: false
        }
    }

    mutating func end(
        _ revision: QueuedRevision,
        synced: Bool,
        _ effects: inout [ReplicationEffect]
    ) {
        stopTransmitting(revision.key)
        inFlight[revision.key] = nil
        completed.insert(revision.sequence)
        progress.finish(revision.bodySize, isDocument: synced)
        if synced { mark(revision.documentID, revision.sent, &effects) }
        release(revision.documentID, succeeded: synced ? revision.sent : nil, &effects)
    }

    mutating func finish(
        _ change: LocalChange,
        synced: RevisionID?,
        _ effects: inout [ReplicationEffect]
    ) {
        complete(change)
        if let synced { mark(change.documentID, synced, &effects) }
        release(change.documentID, succeeded: synced, &effects)
    }

    mutating func complete(_ change: LocalChange) {
        completed.insert(change.sequence)
        progress.finish(change.bodySize, isDocument: false)
    }

    /// A document is no longer under way: offers the newer revision that waited for it.
    mutating func release(_ id: String, succeeded: RevisionID?, _ effects: inout [ReplicationEffect]) {
        guard let entry = busy.removeValue(forKey: id), var waiting = entry else { return }
        if let older = parked.removeValue(forKey: id) { complete(older) }
        if isProposing, let succeeded { waiting.remoteAncestor = succeeded }
        offer([waiting], &effects)
    }

    // MARK: Marks and reports

    mutating func mark(_ id: String, _ revision: RevisionID, _ effects: inout [ReplicationEffect]) {
        guard isProposing else { return }
        unflushedMarks.append(DocumentRevision(documentID: id, revision: revision))
        if unflushedMarks.count >= tuning.insertBatch { flushMarks(&effects) }
    }

    /// Writes down what the peer is now known to have.
    mutating func flushMarks(_ effects: inout [ReplicationEffect]) {
        guard !unflushedMarks.isEmpty else { return }
        effects.append(.store(.markSynced(collection: collection, unflushedMarks), then: .nothing))
        unflushedMarks = []
    }

    func report(_ change: LocalChange, _ error: LoveseatError?, _ effects: inout [ReplicationEffect]) {
        report(change.documentID, isDeleted: change.isDeleted, error, &effects)
    }

    func report(
        _ revision: QueuedRevision,
        _ error: LoveseatError?,
        _ effects: inout [ReplicationEffect]
    ) {
        report(revision.documentID, isDeleted: revision.isDeleted, error, &effects)
    }

    func report(
        _ id: String,
        isDeleted: Bool,
        _ error: LoveseatError?,
        _ effects: inout [ReplicationEffect]
    ) {
        guard isProposing else { return }
        effects.append(
            .report(
                .document(
                    DocumentEvent(
                        collection: collection,
                        documentID: id,
                        isPush: true,
                        isDeleted: isDeleted,
                        error: error
                    )
                )
            )
        )
    }
}
