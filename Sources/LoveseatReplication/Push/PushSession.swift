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
        case proposing(pulls: Bool)
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
    var hasMore = true
    /// The feed has come to its end once.
    var backlogIsRead = false
    var saidCaughtUp = false
    /// Lists of revoked documents that are not answered.
    var revocationLists = 0
    /// Up to this sequence the peer wants to hear of no tombstones.
    var tombstonesSkipped: UInt64 = 0
    var lists: [Int: [LocalChange]] = [:]
    var nextList = 0
    /// Changes to be offered once more, or for which an older revision of their document had to be through first.
    var waiting: [LocalChange] = []
    var queue: [QueuedRevision] = []
    var inFlight: [Int: QueuedRevision] = [:]
    /// Revisions that the peer forbade once, until everything else is through.
    var forbidden: [QueuedRevision] = []
    var nextKey = 0
    var unansweredBytes = 0
    /// Documents between the feed and their answer, and the newer change that waits for it.
    var busy: [String: LocalChange?] = [:]
    /// Proposals refused as conflicts, until the pull brings the reason.
    var parked: [String: LocalChange] = [:]
    /// Documents of which the peer is not known to have had any revision, though it has one.
    var fetchable: Set<String> = []
    /// Documents that the peer has and does not show: they were fetched by their IDs, and did not come.
    var unseen: Set<String> = []
    /// How often the peer did not agree to a document's revision.
    var disagreements: [String: (revision: RevisionID, count: Int)] = [:]
    /// Of which revision a hub has taken a copy, by document. One copy of a revision is made in a session.
    var copied: [String: RevisionID] = [:]
    /// The sequences of documents that could not be pushed; they stay pending.
    var failed: [String: UInt64] = [:]
    var peer: RevisionTree.PeerKind
    /// The local sequences that are done with.
    var completed: SequenceSet
    /// Revisions whose bytes are being read or handed to the transport.
    var transmitting = 0
    var unflushedMarks: [DocumentRevision] = []
    var peerHistory: Int
    var peerFindsBlobs = false
    var peerTakesDeltas = false
    var progress = DirectionProgress()
    /// The peer's reason to refuse the whole push.
    var failure: LoveseatError?

    init(
        collection: Int,
        wireIndex: Int?,
        mode: Mode,
        start: SequenceSet,
        isContinuous: Bool,
        sendsDeltas: Bool,
        peer: RevisionTree.PeerKind,
        tuning: ReplicationTuning
    ) {
        self.peer = peer
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

    /// Whether the peer answered a list, and so said what it is.
    private var hasAnswered = false

    /// Whether what the peer has comes here too.
    var pulls: Bool { if case .proposing(let pulls) = mode { pulls } else { false } }

    var isProposing: Bool { if case .proposing = mode { true } else { false } }

    var subscription: Subscription? {
        if case .announcing(let subscription) = mode { subscription } else { nil }
    }

    /// Everything known has been offered, sent and answered.
    var isCaughtUp: Bool { isThrough && forbidden.isEmpty }

    /// The same, but for what was forbidden once.
    private var isThrough: Bool {
        !hasMore && lists.isEmpty && waiting.isEmpty && queue.isEmpty && inFlight.isEmpty
    }

    // MARK: The feed

    /// Goes on as far as it gets without the peer.
    ///
    /// `isEcho`: whether the peer itself sent this revision a moment ago.
    mutating func pump(isEcho: (LocalChange) -> Bool, _ effects: inout SessionEffects) {
        while effects.failure == nil {
            if canOffer {
                offerWaiting(&effects)
            } else if canRead {
                read(isEcho, &effects)
            } else if !forbidden.isEmpty, isThrough {
                (queue, forbidden) = (forbidden, [])
            } else if canSend {
                sendMore(&effects)
            } else {
                return
            }
        }
    }

    private var listLimit: Int { saidCaughtUp ? 1 : tuning.listsInFlight }

    private var canOffer: Bool { !waiting.isEmpty && lists.count < listLimit }

    private var canRead: Bool {
        hasMore && lists.count < listLimit && queue.count < tuning.revisionsQueued
            && waiting.count < tuning.revisionsQueued && (isProposing || saidCaughtUp == backlogIsRead)
    }

    /// Offers what waits, in lists as full as they get and no more of them at once than of any others.
    private mutating func offerWaiting(_ effects: inout SessionEffects) {
        let list = Array(waiting.prefix(tuning.changesPerMessage))
        waiting.removeFirst(list.count)
        offer(list, &effects)
    }

    private mutating func read(_ isEcho: (LocalChange) -> Bool, _ effects: inout SessionEffects) {
        flushMarks(&effects)
        var query = ChangeQuery(since: lastRead, limit: subscription?.batch ?? tuning.changesPerMessage)
        if let subscription {
            query.tombstonesSkipped = tombstonesSkipped
            query.documentIDs = subscription.documentIDs
        } else {
            query.isForPush = true
        }
        // Until it has answered once, the peer may be a Loveseat. Others ignore what they are told.
        query.tellsTrees = peer == .loveseat || (isProposing && !hasAnswered)
        guard let page = effects.ask({ try $0.changes(in: collection, query) }) else { return }
        hasMore = page.hasMore
        if page.through > lastRead { completed.insert(lastRead + 1...page.through) }
        lastRead = max(lastRead, page.through)
        var list: [LocalChange] = []
        for change in page.changes where !initiallyCompleted.contains(change.sequence) {
            // The active side knows by its marks what the peer has; a passive one only remembers.
            if saidCaughtUp, !isProposing, change.knowledge == nil, isEcho(change) { continue }
            if take(change, &effects) { list.append(change) }
        }
        if !list.isEmpty { offer(list, &effects) }
        backlogIsRead = backlogIsRead || !hasMore
        sayCaughtUp(&effects)
    }

    /// Takes a change from the feed; returns whether it is to be offered now.
    private mutating func take(_ change: LocalChange, _ effects: inout SessionEffects) -> Bool {
        let id = change.documentID
        if let older = parked.removeValue(forKey: id) { complete(older) }
        if let older = failed.removeValue(forKey: id) { completed.insert(older) }
        completed.remove(change.sequence)
        progress.total += UInt64(max(1, change.bodySize))
        if isGivenUp(change), busy[id] == nil {
            fail(change, conflict(change), &effects)
            return false
        }
        if let waiting = busy[id] {
            if let waiting { complete(waiting) }
            busy[id] = .some(change)
            return false
        }
        busy[id] = .some(nil)
        return true
    }

    /// Says that the backlog is done, when all of it has been answered: peers may handle lists in any order (gateway.md 50).
    private mutating func sayCaughtUp(_ effects: inout SessionEffects) {
        guard backlogIsRead, !saidCaughtUp else { return }
        guard isProposing || (lists.isEmpty && revocationLists == 0) else { return }
        saidCaughtUp = true
        guard !isProposing else { return }
        effects.append(.send(listMessage("changes", body: Array("[]".utf8), isEmpty: true), then: nil))
    }

    /// The peer was told of revoked documents.
    mutating func revocationsAnswered(_ effects: inout SessionEffects) {
        revocationLists -= 1
        sayCaughtUp(&effects)
    }

    func listMessage(_ profile: String, body: [UInt8], isEmpty: Bool) -> Message {
        var properties: MessageProperties = ["Profile": profile]
        properties["collection"] = wireIndex.map(String.init)
        if subscription?.isGateway == true { properties["ignoreNoConflicts"] = "true" }
        if isProposing {
            properties["conflictIncludesRev"] = "true"
            properties[ProtocolExtensions.property] = ProtocolExtensions.all
        }
        return Message(properties, body: body, isUrgent: true, isCompressed: !isEmpty, noReply: isEmpty)
    }

    private mutating func offer(_ list: [LocalChange], _ effects: inout SessionEffects) {
        nextList += 1
        lists[nextList] = list
        let (profile, body, answer): (String, [UInt8], ReplyContinuation) =
            isProposing
            ? (
                "proposeChanges", ProposeChangesMessage.body(list),
                .proposals(collection: collection, list: nextList)
            )
            : ("changes", ChangesMessage.body(list), .changes(collection: collection, list: nextList))
        var message = listMessage(profile, body: body, isEmpty: false)
        message.properties[ChangesMessage.knowledgeProperty] = ChangesMessage.knowledge(list)
        effects.append(.send(message, then: answer))
    }

    // MARK: Answers to lists

    mutating func listAnswered(
        _ number: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout SessionEffects
    ) {
        guard let list = lists.removeValue(forKey: number) else { return }
        hasAnswered = true
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
        sayCaughtUp(&effects)
    }

    mutating func proposalAnswered(
        _ change: LocalChange,
        _ answer: ProposeChangesMessage.Answer,
        _ effects: inout SessionEffects
    ) {
        switch answer {
        case .send:
            // Of the same revision the peer wants what is known beside it.
            let ancestor = change.remoteAncestor == change.revision ? nil : change.remoteAncestor
            enqueue(change, known: ancestor.map { [$0] } ?? [])
        case .alreadyThere: finish(change, synced: change.revision, &effects)
        case .conflict(let state): meet(change, state, &effects)
        case .refused(let status):
            let error = LoveseatError(
                .init(10_000 + status),
                "the peer refused document \"\(change.documentID)\""
            )
            guard status != 403 else {
                report(change, error, &effects)
                return finish(change, synced: nil, &effects)
            }
            fail(change, error, &effects)
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
}
