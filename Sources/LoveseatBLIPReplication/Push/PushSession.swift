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
    let replica: any ReplicaFeed & ReplicaCheckpoints & ReplicaDisagreements
    let setup: PushSetup
    /// The limits that apply while so many connections are open.
    private(set) var tuning: ReplicationTuning
    var feed: PushFeed

    /// Documents that were proposed and are on their way, and those that could not be pushed.
    var documents: DocumentMap<Outgoing> = [:]
    /// Those to be offered, in order.
    var waiting: [Outgoing] = []
    var lists = OfferedLists()
    /// Those that the peer wants, in order.
    var queue: [Outgoing] = []
    var sent = SentRevisions()
    /// Those that the peer forbade once, in order.
    var forbidden: [Outgoing] = []
    /// Documents on which the two sides did not agree in this session.
    var disagreements: DocumentMap<Disagreement> = [:]

    var peer: PushTarget
    var unflushedMarks: [SyncedRevision] = []
    var progress = DirectionProgress()
    /// The peer's reason to refuse the whole push, which ends the session.
    var failure: LoveseatError?

    init(
        _ replica: any ReplicaFeed & ReplicaCheckpoints & ReplicaDisagreements,
        _ setup: PushSetup,
        start: SequenceSet,
        peer: PushTarget
    ) {
        self.replica = replica
        self.setup = setup
        self.peer = peer
        tuning = setup.tuning
        feed = PushFeed(start: start)
        if case .announcing(let subscription) = setup.mode { feed.documentIDs = subscription.documentIDs }
    }

    /// The local sequences that are done with.
    var completed: SequenceSet { feed.completed }

    /// Whether the session pulls too.
    var pulls: Bool { if case .proposing(let pulls) = setup.mode { pulls } else { false } }

    var isContinuous: Bool { setup.isContinuous }

    var isProposing: Bool { if case .proposing = setup.mode { true } else { false } }

    var subscription: SubChangesMessage? {
        if case .announcing(let subscription) = setup.mode { subscription } else { nil }
    }

    /// Whether everything known has been offered, sent and answered.
    var isCaughtUp: Bool { isThrough && forbidden.isEmpty }

    /// The same, except for documents that were forbidden once.
    private var isThrough: Bool {
        let isOffered = peer.refusal != nil || (!feed.hasMore && waiting.isEmpty)
        return isOffered && lists.isEmpty && queue.isEmpty && sent.isEmpty
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

    private var listLimit: Int { feed.backlog == .isAnnounced ? 1 : tuning.listsInFlight }

    private var canOffer: Bool { peer.refusal == nil && !waiting.isEmpty && lists.count < listLimit }

    private var canRead: Bool {
        peer.refusal == nil && feed.hasMore && lists.count < listLimit && queue.count < tuning.revisionsQueued
            && waiting.count < tuning.revisionsQueued
            && (isProposing || feed.backlog != .isRead(toItsEnd: true))
    }

    /// Offers the waiting documents, in lists as full as possible.
    private mutating func offerWaiting(_ effects: inout SessionEffects) {
        let list = Array(waiting.prefix(lists.alone > 0 ? 1 : tuning.changesPerMessage))
        waiting.removeFirst(list.count)
        lists.alone = max(0, lists.alone - 1)
        offer(list, &effects)
    }

    private mutating func read(_ isEcho: (LocalChange) -> Bool, _ effects: inout SessionEffects) {
        flushMarks(&effects)
        tuning = setup.tuning.shared(among: replica.connections)
        let query = query(since: feed.lastRead, limit: subscription?.batch ?? tuning.changesPerMessage)
        // The database failed, which ends the session.
        guard let page = effects.ask({ try replica.changes(query) }) else { return }
        feed.read(through: page.through, hasMore: page.hasMore)
        progress.compared += UInt64(page.changes.count)
        var list: [Outgoing] = []
        for change in page.changes where isNews(change, isEcho) {
            if let document = register(change, &effects) { list.append(document) }
        }
        if !list.isEmpty { offer(list, &effects) }
        if feed.backlog != .isAnnounced, !feed.hasMore { feed.backlog = .isRead(toItsEnd: true) }
        sayCaughtUp(&effects)
    }

    func query(since sequence: UInt64, limit: Int) -> ChangeQuery {
        var query = feed.query(since: sequence, limit: limit)
        query.isForPush = isProposing
        // Until it has answered once, the peer may be a Loveseat. Other peers ignore the digests.
        query.tellsVersions = setup.names == .versions
        // A peer that begins may have the documents from before its upgrade, under their IDs. Couchbase Lite 4 cannot be told any more of such a
        // document once it was told the version that stands for its ID (version-vectors.md, correction 14).
        query.tellsIDs = subscription.map { $0.since == nil } == true && feed.backlog != .isAnnounced
        let mayBeLoveseat = isProposing && peer.receiver == nil && setup.extensions != nil
        query.tellsTrees = peer.kind == .loveseat || mayBeLoveseat
        query.tellsLosses = subscription?.wantsRevocations == true
        return query
    }

    /// Whether a change of the feed is to be offered.
    func isNews(_ change: LocalChange, _ isEcho: (LocalChange) -> Bool) -> Bool {
        guard !feed.initiallyCompleted.contains(change.sequence) else { return false }
        // The active side knows by its marks what the peer has; a passive one only remembers.
        let isLive = feed.backlog == .isAnnounced && !isProposing
        return !(isLive && change.knowledge == nil && !change.takesAway && isEcho(change))
    }

    /// Takes a change from the feed; returns its document if it is to be offered now.
    private mutating func register(_ change: LocalChange, _ effects: inout SessionEffects) -> Outgoing? {
        feed.completed.remove(change.sequence)
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
        if feed.backlog != .isRead(toItsEnd: true) { return }
        if !isProposing, !lists.isEmpty || lists.alone > 0 { return }
        feed.backlog = .isAnnounced
        if isProposing { return }
        effects.append(.send(announcement([]).message, then: nil))
    }

    /// A list for a peer that subscribed.
    func announcement(_ changes: [AnnouncedChange]) -> ChangesMessage {
        ChangesMessage(changes, collection: setup.wireIndex, isForGateway: subscription?.isGateway == true)
    }

    private mutating func offer(_ list: [Outgoing], _ effects: inout SessionEffects) {
        let number = lists.add(list)
        if isProposing {
            let message = ProposeChangesMessage(
                list.map { ProposedChange($0.change) },
                collection: setup.wireIndex,
                extensions: setup.extensions
            )
            effects.append(
                .send(message.message, then: .proposals(collection: setup.collection, list: number))
            )
        } else {
            let message = announcement(list.map { AnnouncedChange($0.change) }).message
            effects.append(.send(message, then: .changes(collection: setup.collection, list: number)))
        }
    }

    // MARK: Answers to lists

    mutating func listAnswered(
        _ number: Int,
        _ answer: Result<Message, ReplyError>,
        _ effects: inout SessionEffects
    ) {
        guard let list = lists.remove(number) else {
            return impossible("list \(number) was not sent, or is answered twice")
        }
        do throws(ReplyError) {
            let message = try answer.get()
            if isProposing {
                let answer = try ProposeChangesMessage.Answer(message, count: list.count, setup.names)
                peer.record(answer.receiver)
                for (document, item) in zip(list, answer.items) { proposalAnswered(document, item, &effects) }
            } else {
                let answer = try ChangesMessage.Answer(message, count: list.count, setup.names)
                peer.record(answer.receiver)
                for (document, item) in zip(list, answer.items) {
                    switch item {
                    case .wanted(let known) where !document.change.takesAway: want(document, known: known)
                    case .wanted, .notWanted, .refused: finish(document, synced: nil, &effects)
                    }
                }
            }
        } catch {
            refused(list, LoveseatError(reply: error, "offering changes"), &effects)
        }
        sayCaughtUp(&effects)
    }

    /// The peer refused a list as a whole.
    private mutating func refused(
        _ list: [Outgoing],
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        if !isProposing, setup.names == .versions { return offerOneByOne(list, error, &effects) }
        guard pulls, error.code == .httpForbidden else { return failure = error }
        peer.refusal = peer.refusal ?? error
        for document in list {
            progress.finish(document.change.bodySize, isDocument: false)
            leave(document, as: .failed)
        }
    }

    /// Couchbase Lite 4 refuses a whole list for one document that it cannot be told of (version-vectors.md, correction 14). The others are
    /// announced again, each for itself.
    private mutating func offerOneByOne(
        _ list: [Outgoing],
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        guard list.count == 1, let document = list.first else {
            waiting.insert(contentsOf: list, at: 0)
            return lists.alone += list.count
        }
        setup.report(document.change, error, &effects)
        finish(document, synced: nil, &effects)
    }

    private mutating func proposalAnswered(
        _ document: Outgoing,
        _ answer: ProposeChangesMessage.Decision,
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
            let ancestor = change.remoteAncestor == change.name ? nil : change.remoteAncestor
            want(document, known: ancestor.map { [$0] } ?? [])
        case .alreadyThere:
            finish(document, synced: NamedRevision(change), &effects)
        case .conflict(let state):
            if isDoubted {
                disagreements[ExactText(change.documentID), default: Disagreement()].copiedOnly =
                    change.revision
            }
            handleConflict(document, state, &effects)
        case .refused(let status):
            let error = LoveseatError(.init(10_000 + status), "the peer refused document \"\(document.id)\"")
            guard !error.isFinalRefusal else {
                setup.report(change, error, &effects)
                return finish(document, synced: nil, &effects)
            }
            fail(document, error, &effects)
        }
    }

    private mutating func want(_ document: Outgoing, known: [RevisionName]) {
        let history = min(max(1, peer.receiver?.maxHistory ?? tuning.maxHistory), tuning.maxHistory)
        var delivery = Delivery(revision: document.change.revision, known: known, maxHistory: history)
        delivery.isCopyOnly = isOnlyCopied(document)
        document.stage = .wanted(delivery)
        queue.append(document)
    }
}
