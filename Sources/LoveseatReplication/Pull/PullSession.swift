import LoveseatBLIP
import LoveseatModel

/// Decides what the receiving side of one collection does: which announced revisions it wants, when received ones are
/// stored, and what is said about them.
///
/// ```
///  changes ──▶ judged ──▶ answered ──▶ expected ──rev──▶ blobs fetched ──▶ insert queue ──▶ stored ──▶ answered
///   ≤ 16 MB of lists     ≤ 200 and 16 MB are expected                       ≤ 100, 1 MiB or 20 ms
/// ```
struct PullSession: Sendable {
    struct List {
        let request: UInt64
        let isUrgent: Bool
        let namesRevision: Bool
        var changes: [AnnouncedChange] = []
        var proposals: [ProposedChange] = []
        /// About the memory that it takes.
        var bytes = 0
        /// What the peer says that the bodies take, and of how many it does not say.
        private(set) var (announcedBytes, unsized) = (0, 0)

        init(_ request: UInt64, isUrgent: Bool, changes: [AnnouncedChange]) {
            (self.request, self.isUrgent, self.changes, namesRevision) = (request, isUrgent, changes, false)
            for change in changes {
                if change.bodySize > 1 { announcedBytes += change.bodySize } else { unsized += 1 }
            }
        }

        init(_ request: UInt64, isUrgent: Bool, proposals: [ProposedChange], namesRevision: Bool) {
            (self.request, self.isUrgent, self.proposals) = (request, isUrgent, proposals)
            self.namesRevision = namesRevision
        }
    }

    /// Where something was announced: later lists, and later entries of one list, say what the peer had later.
    struct Announcement: Hashable, Comparable {
        let list: Int
        let index: Int

        static func < (one: Self, other: Self) -> Bool { (one.list, one.index) < (other.list, other.index) }
    }

    /// An announced revision that was asked for.
    struct Expected {
        /// Its place among the peer's sequences.
        let number: Int
        let place: Announcement
        /// In bytes, as announced; 0 if the peer did not say.
        let bodySize: Int
        /// In bytes, as announced or as it is likely to be.
        let likelySize: Int
    }

    struct Options: Hashable {
        /// Documents that the peer takes away are purged.
        var autoPurges = true
        /// The app decides which revisions are stored.
        var isFiltered = false
        var takesDeltas = false
        /// What is said beyond the protocol in answers to proposals.
        var extensions: String?
        /// A body may say that the document was removed, because announcements cannot (replication.md Part B).
        var removesByBody = false
    }

    struct ExpectedKey: Hashable {
        let documentID: String
        let sequence: RemoteSequence
    }

    struct Incoming {
        let request: UInt64?
        let isUrgent: Bool
        var revision: IncomingRevision
        let sequenceNumber: Int?
        let place: Announcement?
        let bodySize: Int
        var held: [BlobDigest]
        var missing: [BlobReference]
        /// The blob being fetched began with what another connection had brought.
        var isResumed = false
        /// What another connection had brought turned out to be damaged.
        var startsOver = false
        /// The bytes of the blob being fetched that have come.
        var blobBytes: UInt64 = 0
        /// The body as the peer's table of attachments has it, if the body names content that the table does not list.
        var asListed: RevisionMessage.Content?

        /// What it takes in memory.
        var bytes: Int { revision.body.bytes.count + (asListed?.body.bytes.count ?? 0) }
    }

    let collection: Int
    let wireIndex: Int?
    /// An active puller subscribed, keeps track of sequences, and takes conflicts in; a passive one refuses them.
    let isActive: Bool
    let options: Options
    let tuning: ReplicationTuning

    var sequences: RemoteSequences
    var lists: [Int: List] = [:]
    var waitingLists: [Int] = []
    var nextList = 0
    var listBytes = 0
    private(set) var expected: [ExpectedKey: Expected] = [:]
    private(set) var expectedBytes = 0
    /// How long bodies are that the peer did not announce the size of, in bytes, lately.
    private(set) var usualSize = 0
    /// What a passive side has agreed to and not received.
    var promises = Promises()
    /// Documents that the peer took away while a revision of theirs was on its way.
    var revoked: Set<String> = []
    var incoming: [Int: Incoming] = [:]
    var nextKey = 0
    var insertQueue: [Int] = []
    var insertBytes = 0
    private var timerIsSet = false
    private var isTime = false
    private var moved: [Moved] = []
    var bufferedBytes = 0
    var fetches: [BlobHandle: Int] = [:]
    /// Documents that need a blob while as many as may be are being fetched.
    var waitingForTurn: [Int] = []
    /// Documents that need a blob that is being fetched for another.
    var waitingForBlob: [BlobDigest: [Int]] = [:]
    /// The peer sends a blob from any byte on.
    var resumesBlobs = false
    var peer: RevisionTree.PeerKind
    /// Documents of which a revision is on its way here, and the place up to which announcements say what the peer had before.
    private var outdated: [String: Announcement] = [:]
    var isCaughtUp: Bool
    var progress = DirectionProgress()
    var failure: LoveseatError?
    /// What the peer sent a moment ago, which is not announced back to it.
    private(set) var echoes = EchoMemory()

    init(
        collection: Int,
        wireIndex: Int?,
        isActive: Bool,
        since: RemoteSequence?,
        options: Options,
        peer: RevisionTree.PeerKind,
        tuning: ReplicationTuning
    ) {
        self.peer = peer
        self.options = options
        self.collection = collection
        self.wireIndex = wireIndex
        self.isActive = isActive
        self.tuning = tuning
        sequences = RemoteSequences(since: since)
        isCaughtUp = !isActive
    }

    var remoteSequence: RemoteSequence? { sequences.done }

    /// The peer has taken a revision of this document from here. What it announced before that is what it had before.
    mutating func pushed(_ documentID: String) {
        let isListed = lists.values.contains { $0.changes.contains { $0.documentID == documentID } }
        guard isListed || isComing(documentID) else { return }
        outdated[documentID] = Announcement(list: nextList, index: .max)
    }

    /// The peer announced at this place that it has what is here already. What it announced before that is what it had before.
    mutating func confirmed(_ documentID: String, at place: Announcement) {
        guard !expected.isEmpty || !incoming.isEmpty, isComing(documentID) else {
            return
        }
        outdated[documentID] = max(place, outdated[documentID] ?? place)
    }

    func isComing(_ documentID: String) -> Bool {
        expected.keys.contains { $0.documentID == documentID }
            || incoming.values.contains { $0.revision.documentID == documentID }
    }

    /// Forgets what was noted of a document of which nothing is on its way any more.
    mutating func settle(_ documentID: String) {
        guard outdated[documentID] != nil, !isComing(documentID),
            !lists.values.contains(where: { $0.changes.contains { $0.documentID == documentID } })
        else { return }
        outdated[documentID] = nil
    }

    /// Nothing announced is unanswered, expected or on its way into the database.
    var isQuiet: Bool { lists.isEmpty && expected.isEmpty && incoming.isEmpty }

    /// Revisions that were asked for, or agreed to, and have not come.
    var outstanding: Int { expected.count + promises.total }

    // MARK: Expectations

    /// Remembers that a revision was asked for; false if it was asked for before.
    mutating func expect(_ key: ExpectedKey, _ number: Int, _ place: Announcement, bodySize: Int) -> Bool {
        guard expected[key] == nil else { return false }
        let size = likelySize(bodySize)
        expectAgain(key, Expected(number: number, place: place, bodySize: bodySize, likelySize: size))
        return true
    }

    /// Expects a revision once more that has come.
    mutating func expectAgain(_ key: ExpectedKey, _ entry: Expected) {
        expected[key] = entry
        expectedBytes += entry.likelySize
    }

    /// A revision came, or will not.
    mutating func meet(_ key: ExpectedKey) -> Expected? {
        guard let entry = expected.removeValue(forKey: key) else { return nil }
        expectedBytes -= entry.likelySize
        return entry
    }

    /// How long a body is likely to be of which the peer announced this size, or nothing.
    func likelySize(_ announced: Int) -> Int { announced > 1 ? announced : usualSize }

    /// Learns from a body that came.
    mutating func learnSize(_ bytes: Int) { usualSize = max(bytes, usualSize - usualSize / 8) }

    // MARK: Revisions

    /// The peer cannot send what it promised (replication.md §9.3).
    mutating func noRevision(_ message: Message, _ effects: inout SessionEffects) {
        guard let id = message.properties["id"] else { return }
        promises.take(id)
        defer { settle(id) }
        let sequence = (message.properties["sequence"] ?? message.properties["seq"]).flatMap {
            RemoteSequence(json: $0)
        }
        let key = sequence.map { ExpectedKey(documentID: id, sequence: $0) }
        if let entry = key.flatMap({ meet($0) }) {
            progress.finish(entry.bodySize, isDocument: false)
            if let status = message.properties.int("error"), status >= 500 {
                // The peer has the document, and may be able to send it another time.
                let reason = message.properties["reason"] ?? "error \(status)"
                let error = LoveseatError(
                    .init(10_000 + min(status, 599)),
                    "the peer cannot send it: \(reason)"
                )
                report(id, isDeleted: false, error, &effects)
            } else {
                sequences.finish(entry.number)
            }
        }
    }

    // MARK: Storing

    mutating func enqueue(_ key: Int, _ effects: inout SessionEffects) {
        if let id = incoming[key]?.revision.documentID, revoked.contains(id) {
            return end(key, nil, reports: false, &effects)
        }
        insertQueue.append(key)
        insertBytes += incoming[key]?.revision.body.bytes.count ?? 0
    }

    /// Goes on as far as it gets without the peer.
    mutating func goOn(_ effects: inout SessionEffects) {
        takeTurns(&effects)
        storeIfDue(&effects)
    }

    /// What happened to documents, for the push to follow.
    enum Moved {
        case stored(String)
        /// The app's resolver is to be asked.
        case inConflict(String)
        case takenAway(String)
    }

    mutating func takeMoved() -> [Moved] {
        defer { moved = [] }
        return moved
    }

    /// Stores what has come as soon as nothing else is expected, or there is enough of it, or it has waited long.
    private mutating func storeIfDue(_ effects: inout SessionEffects) {
        while !insertQueue.isEmpty, effects.failure == nil {
            let isEnough = insertQueue.count >= tuning.insertBatch || insertBytes >= tuning.insertBytes
            guard isTime || isEnough || (expected.isEmpty && promises.total == 0) else {
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
        let keys = Array(insertQueue.prefix(tuning.insertBatch))
        insertQueue.removeFirst(keys.count)
        let revisions = keys.compactMap { key -> IncomingRevision? in
            guard var entry = incoming[key] else { return nil }
            if let place = entry.place, let last = outdated[entry.revision.documentID] {
                entry.revision.isOutdated = place <= last
            }
            return entry.revision
        }
        insertBytes -= revisions.reduce(0) { $0 + $1.body.bytes.count }
        guard let results = effects.ask({ try $0.insert(revisions, in: collection) }) else { return }
        // A database that cannot write is no fault of one document.
        for case .failed(let error) in results where error.code.domain != .couchbaseLite {
            return effects.fail(error)
        }
        for (key, result) in zip(keys, results) { stored(key, result, &effects) }
    }

    private mutating func stored(_ key: Int, _ result: InsertResult, _ effects: inout SessionEffects) {
        guard let entry = incoming[key] else { return }
        let id = entry.revision.documentID
        switch result {
        case .inserted, .alreadyHere, .conflict:
            echoes.remember(id, entry.revision.history[0], limit: tuning.echoes)
            moved.append(result == .conflict ? .inConflict(id) : .stored(id))
            end(key, nil, isNoop: result == .alreadyHere, reports: result != .conflict, &effects)
        case .outranked(let knowledge, let current):
            moved.append(.stored(id))
            end(key, nil, tree: TreeMessage.answer(knowledge, current: current), &effects)
        case .refusedConflict:
            end(key, LoveseatError(.httpConflict, "document \"\(id)\" would conflict"), &effects)
        case .badHistory:
            let error = LoveseatError(.badRevisionID, "the history of \"\(id)\" is not one of descent")
            end(key, error, &effects)
        case .failed(let error): end(key, error, &effects)
        }
    }

    mutating func noteTakenAway(_ id: String) { moved.append(.takenAway(id)) }

    /// Answers a revision and lets go of it.
    mutating func end(
        _ key: Int,
        _ error: LoveseatError?,
        isNoop: Bool = false,
        tree: [UInt8] = [],
        reports: Bool = true,
        finishesSequence: Bool = true,
        _ effects: inout SessionEffects
    ) {
        guard let entry = incoming.removeValue(forKey: key) else { return }
        if let error, finishesSequence {
            noteFailure(entry.revision.documentID, entry.revision.history[0], error, &effects)
        }
        settle(entry.revision.documentID)
        bufferedBytes -= entry.bytes
        if !entry.held.isEmpty { effects.store.releaseBlobs(entry.held) }
        if let request = entry.request {
            if let error {
                promises.refuse(entry.revision.documentID)
                effects.append(.replyError(ReplyError(error), to: request, isUrgent: entry.isUrgent))
            } else {
                var properties: MessageProperties = isNoop ? ["noop": "true"] : [:]
                if !tree.isEmpty { properties[TreeMessage.property] = "true" }
                let reply = Message(
                    properties,
                    body: tree,
                    isUrgent: entry.isUrgent,
                    isCompressed: tree.count >= tuning.compressionThreshold
                )
                effects.append(.reply(reply, to: request))
            }
        }
        if finishesSequence, let number = entry.sequenceNumber { sequences.finish(number) }
        progress.finish(entry.bodySize, isDocument: error == nil)
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
        guard isActive, error != .rejectedByPullFilter else { return }
        let failed = DocumentRevision(documentID: id, revision: revision)
        effects.ask { try $0.noteFailure(failed, error, in: collection) }
    }

    func report(
        _ id: String,
        isDeleted: Bool,
        isAccessRemoved: Bool = false,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        guard isActive else { return }
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

    /// Gives up what is half received.
    mutating func disconnected(_ store: any RevisionStore) {
        for handle in fetches.keys.sorted() { store.suspendBlob(handle) }
        let held = incoming.sorted { $0.key < $1.key }.flatMap(\.value.held)
        if !held.isEmpty { store.releaseBlobs(held) }
        (fetches, incoming) = ([:], [:])
        (insertQueue, waitingForTurn, waitingForBlob) = ([], [], [:])
        bufferedBytes = 0
    }
}

/// The last revisions that a peer sent (replication.md §16).
struct EchoMemory: Sendable {
    var revisions: [String: RevisionID] = [:]
    var order: [String] = []

    mutating func remember(_ id: String, _ revision: RevisionID, limit: Int) {
        if revisions.updateValue(revision, forKey: id) == nil { order.append(id) }
        guard order.count > 2 * limit else { return }
        for old in order.prefix(limit) { revisions[old] = nil }
        order.removeFirst(limit)
    }

    func contains(_ change: LocalChange) -> Bool { revisions[change.documentID] == change.revision }
}
