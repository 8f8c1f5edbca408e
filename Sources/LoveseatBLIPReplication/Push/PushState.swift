import LoveseatModel
import LoveseatReplication

/// The direction, the collection and the limits of a push.
struct PushSetup {
    enum Mode: Hashable {
        /// With `proposeChanges` (replication.md §8). Without pull a conflict is final.
        case proposing(pulls: Bool)
        /// With `changes`, for a peer that subscribed (replication.md §7).
        case announcing(SubChangesMessage)
    }

    let collection: Int
    let wireIndex: Int?
    let mode: Mode
    let isContinuous: Bool
    /// Whether deltas are sent to a peer that takes them.
    let sendsDeltas: Bool
    /// How messages name revisions.
    let names: RevisionNaming
    /// The protocol extensions that proposals name.
    let extensions: String?
    let tuning: ReplicationTuning
}

extension PushSetup {
    /// Reports the outcome for a document. A passive side's app is told only of errors; that a peer forbids a revision is not an error
    /// there.
    func report(_ change: LocalChange, _ error: LoveseatError?, _ effects: inout SessionEffects) {
        if case .announcing = mode, error == nil || error?.code == .httpForbidden { return }
        effects.append(
            .report(
                .document(.pushed(change.documentID, in: collection, isDeleted: change.isDeleted, error))
            )
        )
    }
}

/// How far a push has read its feed, and which of the changes are done with.
struct PushFeed {
    /// How far the feed was read.
    enum Backlog: Hashable {
        case isRead(toItsEnd: Bool)
        /// The peer was told that the backlog is done.
        case isAnnounced
    }

    let initiallyCompleted: SequenceSet
    /// Only these documents; nil for all.
    var documentIDs: ListedIDs?
    private(set) var lastRead: UInt64
    var hasMore = true
    var backlog = Backlog.isRead(toItsEnd: false)
    /// The sequence up to which tombstones are not announced to the peer.
    var tombstonesSkipped: UInt64 = 0
    /// The local sequences that are done with.
    var completed: SequenceSet

    init(start: SequenceSet) {
        initiallyCompleted = start
        lastRead = start.completeUpTo ?? 0
        completed = start
        completed.insert(0...lastRead)
    }

    /// Notes that a page was read. Sequences without a change count as done.
    mutating func read(through sequence: UInt64, hasMore: Bool) {
        self.hasMore = hasMore
        if sequence > lastRead { completed.insert(lastRead + 1...sequence) }
        lastRead = max(lastRead, sequence)
    }

    func query(since sequence: UInt64, limit: Int) -> ChangeQuery {
        var query = ChangeQuery(since: sequence, limit: limit)
        query.documentIDs = documentIDs
        query.tombstonesSkipped = tombstonesSkipped
        return query
    }
}

/// The lists that are not answered.
struct OfferedLists {
    private(set) var documents: [Int: [Outgoing]] = [:]
    /// How many of the documents to be offered, from the first one on, get lists of their own.
    var alone = 0
    private var last = 0

    var count: Int { documents.count }
    var isEmpty: Bool { documents.isEmpty }

    /// Returns the list's number.
    mutating func add(_ list: [Outgoing]) -> Int {
        last += 1
        documents[last] = list
        return last
    }

    mutating func remove(_ number: Int) -> [Outgoing]? { documents.removeValue(forKey: number) }
}

/// The revisions that were sent and are not answered.
struct SentRevisions {
    /// Their documents, by the number of the message.
    private(set) var inFlight: [Int: Outgoing] = [:]
    private var last = 0
    /// The messages of which the transport has not got all bytes, with the sizes of their bodies, and the sum of these.
    private(set) var transmitting: [Int: Int] = [:]
    private(set) var transmittingBytes = 0
    var unansweredBytes = 0

    var isEmpty: Bool { inFlight.isEmpty }

    /// Whether so much has been transmitted and answered that more may be read and sent.
    func hasRoom(_ tuning: ReplicationTuning) -> Bool {
        transmitting.count * 2 <= tuning.revisionsTransmitting
            && transmittingBytes * 2 <= tuning.transmittingBytes && unansweredBytes < tuning.unansweredBytes
    }

    /// Returns the message's number.
    mutating func add(_ document: Outgoing, _ parcel: Parcel) -> Int {
        unansweredBytes += parcel.bytes
        last += 1
        inFlight[last] = document
        transmitting[last] = parcel.bytes
        transmittingBytes += parcel.bytes
        return last
    }

    /// Notes that the transport has all bytes of a message.
    mutating func transmitted(_ number: Int) {
        if let size = transmitting.removeValue(forKey: number) { transmittingBytes -= size }
    }

    /// Removes a message that is answered.
    mutating func remove(_ number: Int) -> Outgoing? {
        transmitted(number)
        return inFlight.removeValue(forKey: number)
    }
}

/// The peer, as a push knows it.
struct PushTarget {
    var kind: RevisionTree.PeerKind
    /// It asks for the blobs of the leaves that a tree brings.
    var takesTreeBlobs = false
    /// Its own description; nil before it has answered a list.
    private(set) var receiver: Receiver?
    /// Why it takes nothing. A session that also pulls goes on until it has pulled what there is, and ends with this error.
    var refusal: LoveseatError?

    init(_ kind: RevisionTree.PeerKind, takesTreeBlobs: Bool) {
        (self.kind, self.takesTreeBlobs) = (kind, takesTreeBlobs)
    }

    /// A peer that took deltas once takes them for the rest of the session.
    mutating func record(_ new: Receiver) {
        let tookDeltas = receiver?.takesDeltas == true
        receiver = new
        if tookDeltas { receiver?.takesDeltas = true }
    }
}
