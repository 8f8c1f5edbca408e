import LoveseatBLIP
import LoveseatModel

/// The state of one collection on a connection.
struct LiteChannel {
    let collection: String
    /// Whether the marks of what the other side has are trusted. They are not if the checkpoints disagree.
    var trustsMarks = true
    /// The revision of the checkpoint at the other side.
    var checkpointRevision = ""
    /// The checkpoint that was saved last.
    var saved = LiteCheckpoint()
    var push = LitePushState()
    var pull = LitePullState()
    /// The wish of the other side to be told of changes.
    var subscription: LiteSubscription?

    init(_ collection: String) { self.collection = collection }

    /// How far the replication has come.
    var checkpoint: LiteCheckpoint {
        var checkpoint = LiteCheckpoint()
        checkpoint.completed = push.completed
        checkpoint.remote = pull.through
        return checkpoint
    }

    /// Whether nothing is on its way.
    var isQuiet: Bool {
        pull.requested == 0 && pull.conflicts.isEmpty && push.inFlight.isEmpty && push.held.isEmpty
    }
}

/// The pushing side of a channel.
struct LitePushState {
    /// The sequences that need not be pushed any more.
    var completed = SequenceSet()
    /// The sequence up to which the feed was read.
    var readThrough: UInt64 = 0
    /// The documents that are proposed or sent, and not answered.
    var inFlight: Set<String> = []
    /// Documents that changed while they were in flight.
    var held: Set<String> = []
    /// Proposals that were refused, until the pull brings more.
    var parked: [String: LiteProposal] = [:]
    var peerTakesDeltas = false
}

/// The pulling side of a channel.
struct LitePullState {
    /// Where the pull began.
    var since: RemoteSequence?
    var announced: [(sequence: RemoteSequence, isDone: Bool)] = []
    var isCaughtUp = false
    /// The number of revisions that were asked for and have not come.
    var requested = 0
    /// Documents with conflicts that this connection brought.
    var conflicts: [String] = []
    /// Whether an answer has said that deltas are taken. One does.
    var saidDeltas = false

    /// The sequence up to which everything is pulled.
    var through: RemoteSequence? { announced.prefix { $0.isDone }.last?.sequence ?? since }

    /// Nothing more has to be done for a sequence.
    mutating func finish(_ sequence: String?) {
        if let place = announced.lastIndex(where: { $0.sequence.text == sequence }) {
            announced[place].isDone = true
        }
    }
}

/// A peer's wish to be told of changes.
struct LiteSubscription {
    var since: UInt64
    let isContinuous: Bool
    let batch: Int
    let activeOnly: Bool
    let listed: Set<String>?
    let takesReplacements: Bool

    init(_ message: Message) {
        let (properties, body) = (message.properties, LiteSession.parse(message.body))
        since = UInt64(max(0, properties.int("since") ?? 0))
        isContinuous = properties.bool("continuous")
        batch = max(1, properties.int("batch") ?? LiteSession.batch)
        activeOnly = properties.bool("activeOnly")
        listed = body?["docIDs"]?.array.map { Set($0.compactMap(\.string)) }
        takesReplacements = properties.bool("sendReplacementRevs")
    }
}

/// A revision that was announced to a peer.
struct LiteRow {
    let id: String
    let sequence: UInt64
    let revision: LiteRevision
    /// The text under which it is announced.
    let text: String
    private let isLive: Bool
    private let flag: Int
    private let size: Int?

    init(_ id: String, _ document: LiteDocument, _ release: LiteRelease, isLive: Bool) {
        (self.id, self.isLive) = (id, isLive)
        (sequence, revision) = (document.sequence, document.current)
        text = isLive || release == .release40 ? revision.wholeText : revision.shortText
        size = document.announcedSize(isLive: isLive)
        // A live deletion is announced like an edit.
        flag = revision.isDeleted && !(isLive && release == .release40) ? 1 : 0
    }

    /// The item of the list.
    var json: JSONValue {
        let item: [JSONValue] = [JSONValue(sequence), .string(id), .string(text), JSONValue(flag)]
        return .array(item + (size.map { [JSONValue($0)] } ?? []))
    }
}

/// A revision that is offered to the other side.
struct LiteProposal {
    let id: String
    let revision: LiteRevision
    let sequence: UInt64
    /// The revision that the other side is believed to have.
    var parent: String
    private let isLive: Bool
    private let size: Int?

    init(_ id: String, _ document: LiteDocument, parent: LiteRevision?, isLive: Bool) {
        (self.id, self.isLive) = (id, isLive)
        (sequence, revision) = (document.sequence, document.current)
        self.parent = parent?.shortText ?? ""
        size = document.announcedSize(isLive: isLive)
    }

    /// The item of the list.
    func json(_ release: LiteRelease) -> JSONValue {
        let text = isLive || release == .release40 ? revision.wholeText : revision.shortText
        var item: [JSONValue] = [.string(id), .string(text)]
        if !parent.isEmpty || size != nil { item.append(.string(parent)) }
        if let size { item.append(JSONValue(size)) }
        return .array(item)
    }

    /// Returns what to send instead of the content, if the other side has an older one and the difference pays.
    func delta(of document: LiteDocument, remote: Int) -> (base: String, delta: JSONObject)? {
        guard !document.current.isDeleted, let body = document.current.body,
            let base = document.remotes[remote]?.revision, base.isNamed(parent),
            let old = base.body, !old.isEmpty, !base.isDeleted
        else { return nil }
        let (size, delta) = (FleeceSize.of(body), JSONDelta.create(from: .object(old), to: .object(body)))
        guard size >= 200, let object = delta.object, LiteSession.json(delta).count * 5 <= size * 6 else {
            return nil
        }
        return (base.shortText, object)
    }
}

/// A revision that came, and waits for its blobs.
struct LiteUpload {
    let request: Message
    let number: UInt64
    let index: Int
    let arrival: LiteDatabase.Arrival
    /// The blobs to ask for, one at a time.
    var missing: [BlobReference]
}

extension LiteDocument {
    /// The length that a list names; nil for most tombstones.
    func announcedSize(isLive: Bool) -> Int? {
        if !current.isDeleted { return FleeceSize.of(current.body ?? [:]) }
        return isLive ? liveSize : isTreeRecord ? 2 : nil
    }

    /// The properties of a message that carries the current revision, in Couchbase Lite's order.
    func properties(
        _ id: String,
        _ history: StateHistory,
        _ sequence: UInt64,
        _ index: Int,
        replaced: String? = nil
    ) -> MessageProperties {
        var properties: MessageProperties = [
            "Profile": "rev", "collection": String(index), "id": id, "rev": history.rev ?? "",
        ]
        properties["replacedRev"] = replaced
        properties["sequence"] = String(sequence)
        if current.isDeleted { properties["deleted"] = "1" }
        properties["history"] = history.history
        return properties
    }

    /// Whether the own state includes the one that a refused proposal returned (version-vectors.md §11.4). Couchbase Lite does not see that a source in
    /// it is its own: it takes its own older version for a stranger's.
    func descends(from text: String, source: SourceID) -> Bool {
        guard let returned = try? StateHistory(text) else { return false }
        let own = sentHistory(ancestors: [text])
        if returned.vector.isEmpty { return returned.revisions.first.map(own.revisions.contains) ?? false }
        let stranger = SourceID(high: .max, low: .max)
        return own.vector.renamed(source, stranger)?.relation(to: returned.vector) == .newer
    }
}

extension VersionVector {
    /// The vector with another name for one source; nil if that is not a vector.
    fileprivate func renamed(_ source: SourceID, _ other: SourceID) -> VersionVector? {
        let renamed = versions.compactMap { version in
            version.source == source ? try? Version(time: version.time, source: other) : version
        }
        return try? VersionVector(renamed, currentCount: versions.count - previous.count)
    }
}
