import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Decides what the pushing side of one collection sends next: the active side proposes, the passive side announces.
///
/// ```
///  feed ──read──▶ waiting ──▶ lists ──answered──▶ queue ──body read──▶ transmitting ──▶ unanswered ──▶ done
///                 ≤ 600   ▲   ≤ 5                 ≤ 600                ≤ 64, 256 kB     ≤ 2 MiB         │
///                         └── the change of a document that came while an older one was under way ◀───┘
/// ```
struct PushSession {
    enum Mode: Hashable {
        /// With `proposeChanges` (replication.md §8). Without pull a conflict is final.
        case proposing(pulls: Bool)
        /// With `changes`, for a peer that subscribed (replication.md §7).
        case announcing(SubChangesMessage)
    }

    /// How far the feed was read.
    enum Backlog: Hashable {
        case isRead(toItsEnd: Bool)
        /// The peer was told that the backlog is done.
        case isAnnounced
    }

    let replica: any ReplicaFeed & ReplicaCheckpoints & ReplicaDisagreements
    let collection: Int
    let wireIndex: Int?
    let mode: Mode
    let isContinuous: Bool
    /// Whether deltas are sent to a peer that takes them.
    let sendsDeltas: Bool
    private let ownTuning: ReplicationTuning
    /// The limits that apply while so many connections are open.
    private(set) var tuning: ReplicationTuning

    private let initiallyCompleted: SequenceSet
    /// Only these documents; nil for all.
    private let documentIDs: ListedIDs?
    private(set) var lastRead: UInt64
    var hasMore = true
    private(set) var backlog = Backlog.isRead(toItsEnd: false)
    /// The sequence up to which tombstones are not announced to the peer.
    var tombstonesSkipped: UInt64 = 0

    /// Documents that were proposed and are on their way, and those that could not be pushed.
    var documents: DocumentMap<Outgoing> = [:]
    /// Those to be offered, in order.
    var waiting: [Outgoing] = []
    /// Those of every list that is not answered.
    var lists: [Int: [Outgoing]] = [:]
    private var nextList = 0
    /// Those that the peer wants, in order.
    var queue: [Outgoing] = []
    /// Those that were sent, by the number of the message.
    var inFlight: [Int: Outgoing] = [:]
    var nextMessage = 0
    /// The messages of which the transport has not got all bytes, with the sizes of their bodies, and the sum of these.
    var transmitting: [Int: Int] = [:]
    var transmittingBytes = 0
    var unansweredBytes = 0
    /// Those that the peer forbade once, in order.
    var forbidden: [Outgoing] = []
    /// Documents on which the two sides did not agree in this session.
    var disagreements: DocumentMap<Disagreement> = [:]

    var peer: RevisionTree.PeerKind
    /// The peer asks for the blobs of the leaves that a tree brings.
    var sendsTreeBlobs = false
    /// The peer's own description; nil before it has answered a list.
    var receiver: Receiver?
    /// The local sequences that are done with.
    var completed: SequenceSet
    var unflushedMarks: [SyncedRevision] = []
    var progress = DirectionProgress()
    /// The peer's reason to refuse the whole push.
    var failure: LoveseatError?

    init(
        _ replica: any ReplicaFeed & ReplicaCheckpoints & ReplicaDisagreements,
        collection: Int,
        wireIndex: Int?,
        mode: Mode,
        start: SequenceSet,
        isContinuous: Bool,
        sendsDeltas: Bool,
        peer: RevisionTree.PeerKind,
        tuning: ReplicationTuning
    ) {
        self.replica = replica
        self.peer = peer
        self.sendsDeltas = sendsDeltas
        self.collection = collection
        self.wireIndex = wireIndex
        self.mode = mode
        self.isContinuous = isContinuous
        (ownTuning, self.tuning) = (tuning, tuning)
        documentIDs =
            if case .announcing(let subscription) = mode {
                subscription.documentIDs
            } else {
                nil
            }
        initiallyCompleted = start
        lastRead = start.completeUpTo ?? 0
        completed = start
        completed.insert(0...lastRead)
    }

    /// Whether the session pulls too.
    var pulls: Bool { if case .proposing(let pulls) = mode { pulls } else { false } }

    var isProposing: Bool { if case .proposing = mode { true } else { false } }

    var subscription: SubChangesMessage? {
        if case .announcing(let subscription) = mode { subscription } else { nil }
    }

    /// Whether everything known has been offered, sent and answered.
    var isCaughtUp: Bool { isThrough && forbidden.isEmpty }

    /// The same, except for documents that were forbidden once.
    private var isThrough: Bool {
        !hasMore && lists.isEmpty && waiting.isEmpty && queue.isEmpty && inFlight.isEmpty
    }

    // MARK: The feed

    /// Does everything that is possible without the peer.
    ///
    /// `isEcho`: whether the peer itself sent this revision a moment ago.
    mutating func pump(isEcho: (LocalChange) -> Bool, _ effects: inout SessionEffects) {
        while effects.failure == nil {
            if canOffer {
                offerWaiting(&effects)
            } else if canRead {
                read(isEcho, &effects)
            } else if !forbidden.isEmpty, isThrough {
                tryForbiddenAgain()
            } else if canSend {
                sendMore(&effects)
            } else {
                return
            }
        }
    }

    private var listLimit: Int { backlog == .isAnnounced ? 1 : tuning.listsInFlight }

    private var canOffer: Bool { !waiting.isEmpty && lists.count < listLimit }

    private var canRead: Bool {
        hasMore && lists.count < listLimit && queue.count < tuning.revisionsQueued
            && waiting.count < tuning.revisionsQueued
            && (isProposing || backlog != .isRead(toItsEnd: true))
    }

    /// Offers the waiting documents, in lists as full as possible.
    private mutating func offerWaiting(_ effects: inout SessionEffects) {
        let list = Array(waiting.prefix(tuning.changesPerMessage))
        waiting.removeFirst(list.count)
        offer(list, &effects)
    }

    private mutating func read(_ isEcho: (LocalChange) -> Bool, _ effects: inout SessionEffects) {
        flushMarks(&effects)
        tuning = ownTuning.shared(among: replica.connections)
        let query = query(since: lastRead, limit: subscription?.batch ?? tuning.changesPerMessage)
        // The database failed, which ends the session.
        guard let page = effects.ask({ try replica.changes(query) }) else { return }
        hasMore = page.hasMore
        if page.through > lastRead { completed.insert(lastRead + 1...page.through) }
        lastRead = max(lastRead, page.through)
        progress.compared += UInt64(page.changes.count)
        var list: [Outgoing] = []
        for change in page.changes where isNews(change, isEcho) {
            if let document = register(change, &effects) { list.append(document) }
        }
        if !list.isEmpty { offer(list, &effects) }
        if backlog != .isAnnounced, !hasMore { backlog = .isRead(toItsEnd: true) }
        sayCaughtUp(&effects)
    }

    func query(since sequence: UInt64, limit: Int) -> ChangeQuery {
        var query = ChangeQuery(since: sequence, limit: limit)
        query.documentIDs = documentIDs
        query.tombstonesSkipped = tombstonesSkipped
        query.isForPush = isProposing
        // Until it has answered once, the peer may be a Loveseat. Other peers ignore the digests.
        query.tellsTrees = peer == .loveseat || (isProposing && receiver == nil)
        query.tellsLosses = subscription?.wantsRevocations == true
        return query
    }

    /// Whether a change of the feed is to be offered.
    func isNews(_ change: LocalChange, _ isEcho: (LocalChange) -> Bool) -> Bool {
        guard !initiallyCompleted.contains(change.sequence) else { return false }
        // The active side knows by its marks what the peer has; a passive one only remembers.
        let isLive = backlog == .isAnnounced && !isProposing
        return !(isLive && change.knowledge == nil && !change.takesAway && isEcho(change))
    }

    /// Takes a change from the feed; returns its document if it is to be offered now.
    private mutating func register(_ change: LocalChange, _ effects: inout SessionEffects) -> Outgoing? {
        completed.remove(change.sequence)
        progress.total += UInt64(max(1, change.bodySize))
        let document = Outgoing(change)
        // A peer takes the last sequence that it was told of for its place in the feed. So whatever becomes of an older change, all are
        // announced in order.
        guard isProposing else { return document }
        if let older = documents.updateValue(document, forKey: ExactText(change.documentID)) {
            guard older.isDone else {
                documents[ExactText(change.documentID)] = older
                if let next = older.next { complete(next) }
                older.next = change
                return nil
            }
            replace(older)
        }
        guard !isGivenUp(change) else {
            fail(document, conflict(change), &effects)
            return nil
        }
        // A client of CouchDB's wire may have made it. A list with its ID would be refused as a whole.
        guard DocumentID.isValidOnWire(change.documentID) else {
            let reason = "its ID has more than 255 bytes or a NUL, which this protocol does not carry"
            fail(document, LoveseatError(.badDocID, reason), &effects)
            return nil
        }
        return document
    }

    /// Says that the backlog is done, when all of it has been answered: peers may handle lists in any order (gateway.md 50).
    private mutating func sayCaughtUp(_ effects: inout SessionEffects) {
        if backlog != .isRead(toItsEnd: true) { return }
        if !isProposing, !lists.isEmpty { return }
        backlog = .isAnnounced
        if isProposing { return }
        effects.append(.send(announcement([]).message, then: nil))
    }

    /// A list for a peer that subscribed.
    func announcement(_ changes: [AnnouncedChange]) -> ChangesMessage {
        ChangesMessage(changes, collection: wireIndex, isForGateway: subscription?.isGateway == true)
    }

    private mutating func offer(_ list: [Outgoing], _ effects: inout SessionEffects) {
        nextList += 1
        lists[nextList] = list
        if isProposing {
            let message = ProposeChangesMessage(
                list.map { ProposedChange($0.change) },
                collection: wireIndex,
                extensions: ProtocolExtensions.all
            )
            effects.append(.send(message.message, then: .proposals(collection: collection, list: nextList)))
        } else {
            let message = announcement(list.map { AnnouncedChange($0.change) }).message
            effects.append(.send(message, then: .changes(collection: collection, list: nextList)))
        }
    }

    // MARK: Answers to lists

    mutating func listAnswered(
        _ number: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout SessionEffects
    ) {
        guard let list = lists.removeValue(forKey: number) else {
            return impossible("list \(number) was not sent, or is answered twice")
        }
        do throws(ReplyError) {
            let message = try answer.get()
            if isProposing {
                let answer = try ProposeChangesMessage.Answer(message, count: list.count)
                recordReceiver(answer.receiver)
                for (document, item) in zip(list, answer.items) { proposalAnswered(document, item, &effects) }
            } else {
                let answer = try ChangesMessage.Answer(message, count: list.count)
                recordReceiver(answer.receiver)
                for (document, item) in zip(list, answer.items) {
                    switch item {
                    case .wanted(let known) where !document.change.takesAway: want(document, known: known)
                    case .wanted, .notWanted, .refused: finish(document, synced: nil, &effects)
                    }
                }
            }
        } catch {
            failure = LoveseatError(reply: error, "offering changes")
        }
        sayCaughtUp(&effects)
    }

    /// A peer that took deltas once takes them for the rest of the session.
    private mutating func recordReceiver(_ receiver: Receiver) {
        let tookDeltas = self.receiver?.takesDeltas == true
        self.receiver = receiver
        if tookDeltas { self.receiver?.takesDeltas = true }
    }

    private mutating func proposalAnswered(
        _ document: Outgoing,
        _ answer: ProposeChangesMessage.Answer.Item,
        _ effects: inout SessionEffects
    ) {
        let change = document.change
        let isDoubted = isAskedAbout(document)
        switch answer {
        case .wanted where isDoubted:
            // The peer does not keep the revision, and would take it again and again.
            sendNothing(of: change, 410, "obsolete", &effects)
            believe(document, &effects)
        case .alreadyThere where isDoubted: believe(document, &effects)
        case .wanted:
            // A peer that has the same revision wants the rest of the tree.
            let ancestor = change.remoteAncestor == change.revision ? nil : change.remoteAncestor
            want(document, known: ancestor.map { [$0] } ?? [])
        case .alreadyThere:
            finish(document, synced: change.revision, &effects)
        case .conflict(let state):
            if isDoubted {
                disagreements[ExactText(change.documentID), default: Disagreement()].copiedOnly =
                    change.revision
            }
            handleConflict(document, state, &effects)
        case .refused(let status):
            let error = LoveseatError(.init(10_000 + status), "the peer refused document \"\(document.id)\"")
            guard !error.isFinalRefusal else {
                report(change, error, &effects)
                return finish(document, synced: nil, &effects)
            }
            fail(document, error, &effects)
        }
    }

    private mutating func want(_ document: Outgoing, known: [RevisionID]) {
        let history = min(max(1, receiver?.maxHistory ?? tuning.maxHistory), tuning.maxHistory)
        var delivery = Delivery(revision: document.change.revision, known: known, maxHistory: history)
        delivery.isCopyOnly = isOnlyCopied(document)
        document.stage = .wanted(delivery)
        queue.append(document)
    }
}
