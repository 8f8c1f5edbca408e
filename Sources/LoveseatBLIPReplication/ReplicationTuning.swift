/// Every limit and delay of replication, each with its reason (replication.md §16).
package struct ReplicationTuning: Hashable, Sendable {
    /// Changes in one `changes` or `proposeChanges` message.
    package var changesPerMessage = 200
    /// Changes in a list that an active side asks for: half of the revisions that may be requested, so that the next list is answered while
    /// revisions of the one before still arrive.
    package var changesAskedFor = 100
    /// The same for another Loveseat, which sends revisions as they are requested and needs no such care.
    package var changesAskedOfLoveseat = 200
    /// Lists sent and not answered. One is enough once the backlog is done.
    package var listsInFlight = 5
    /// Revisions waiting to be sent before the feed of changes pauses.
    package var revisionsQueued = 600
    /// Revisions whose bytes are being read or handed to the socket.
    package var revisionsTransmitting = 64
    /// Bytes of these revisions together. A single one may have more.
    package var transmittingBytes = 256 << 10
    /// Bytes of revisions sent and not answered. Limits what is lost when a connection breaks, and the peer's queue.
    package var unansweredBytes = 2 << 20
    /// Announced revisions requested and not received. The next list is answered when all that it may ask for fit too.
    package var revisionsRequested = 200
    /// The same for another Loveseat.
    package var revisionsRequestedOfLoveseat = 500
    /// Bytes of requested revisions, as announced, or else as large as bodies were so far. A single list is always answered.
    package var requestedBytes = 16 << 20
    /// Proposed revisions agreed to and not received. Beyond it no more lists are answered. Pushing peers limit themselves.
    package var proposalsAgreed = 500
    /// Revisions received and not stored, because some of their blobs are missing or others come first. Beyond it no more lists are
    /// answered.
    package var revisionsHandled = 500
    /// Revisions stored in one transaction.
    package var insertBatch = 100
    /// Bytes of revisions stored in one transaction.
    package var insertBytes = 1 << 20
    /// How long a revision waits for others to be stored with it, in milliseconds.
    package var insertDelay = 20
    /// How many ancestors an answer to `changes` names.
    package var ancestorsNamed = 10
    /// How much history is asked for and sent.
    package var maxHistory = 50
    /// How long after a change the checkpoint is saved, in milliseconds.
    package var checkpointDelay = 5_000
    /// How long a peer may say nothing at all during a single pass, in milliseconds; up to twice as long passes before it counts.
    /// Pings do not tell whether anything goes on.
    package var silence = 300_000
    /// How many just-received revisions are remembered, so as not to announce them back.
    package var echoes = 250
    /// Blobs fetched at the same time over one connection.
    package var blobsFetching = 4
    /// Bytes of a blob read from disk at a time.
    package var blobPiece = 64 << 10
    /// The same for another Loveseat.
    package var largeBlobPiece = 256 << 10
    /// Blobs sent at the same time to another Loveseat, which asks for fewer.
    package var largeBlobsSending = 8
    /// Bytes of a blob that another Loveseat may not have acknowledged. Other peers were made for the protocol's 128,000.
    package var blobWindow: UInt64 = 1 << 20
    /// Bytes of unanswered lists that a peer may leave with us before it counts as a violation. Good peers have a few lists under way; the
    /// most from our own was a hundred bytes for every document in conflict, in one list.
    package var listBytesAccepted = 16 << 20
    /// A peer's messages that break a rule, each of which is refused, before the peer is disconnected.
    package var violationsAccepted = 100
    /// Bytes of received revisions that are not stored yet, because some of their blobs are missing. Beyond it further revisions wait
    /// outside the session, on disk if they are long.
    package var receivedBytes = 8 << 20
    /// Blobs sent at the same time over one connection; others wait for their turn.
    package var blobsSending = 32
    /// Blobs that a peer may have waiting.
    package var blobsWaiting = 10_000
    /// How often a checkpoint that the peer refuses is saved again under the revision that the peer has.
    package var checkpointRepairs = 5
    /// Bodies at least this long, in bytes, travel compressed.
    package var compressionThreshold = 100
    /// How many more documents are worth a report of progress.
    package var reportDocuments: UInt64 = 100
    /// How many more bytes are worth a report of progress.
    package var reportBytes: UInt64 = 256 << 10
    /// How many more compared changes are worth a report of progress.
    package var reportCompared: UInt64 = 10_000
    /// How long a stop waits for the peer to take the last checkpoint, in milliseconds.
    package var stopDelay = 2_000

    /// How often two sides may disagree about a revision before it is left to the next session.
    package var disagreements = 3
    /// The delay before a continuous pull requests again what the peer could not send, in milliseconds. It doubles each time.
    package var retryDelay = 5_000
    /// The maximum of ``retryDelay``, in milliseconds.
    package var maximumRetryDelay = 600_000
    /// Documents fetched by their IDs at once.
    package var documentsFetched = 500
    /// Checkpoints that a peer may save over one connection, under different IDs, unless it has more collections.
    package var checkpointsSaved = 100
    /// Entries of one list. We send 200.
    package var listEntriesAccepted = 10_000
    /// The bytes of unsent output beyond which no more requests are handled: the peer asks faster than it reads. Everything else is
    /// handled, since acknowledgements make room.
    package var unsentBytes = 16 << 20
    /// Requests that a peer may have waiting. Real peers have some hundred, and read the answers.
    package var requestsHeld = 20_000
    /// Bytes of bodies of waiting requests that are kept in memory; others go to the disk.
    package var heldBytes = 4 << 20
    /// Bytes of other leaves' content in one message, of a document whose branches are kept. The rest follows in further messages.
    package var keptTreeBodies = 4 << 20

    package init() {}
}

extension ReplicationTuning {
    /// The number of connections up to which each has all of its room.
    private static let fewConnections = 16

    /// The limits for one of many connections, so that all together hold a bounded amount for peers that read slowly. A fast peer among
    /// them has a shorter pipeline.
    func shared(among connections: Int) -> Self {
        guard connections > Self.fewConnections else { return self }
        var tuning = self
        tuning.unansweredBytes = min(unansweredBytes, max(128 << 10, (32 << 20) / connections))
        tuning.revisionsQueued = min(revisionsQueued, max(100, 16_000 / connections))
        tuning.listsInFlight = min(listsInFlight, max(1, 320 / connections))
        tuning.transmittingBytes = min(transmittingBytes, max(64 << 10, (16 << 20) / connections))
        return tuning
    }
}

/// The limits of a single message. No good peer comes near these.
extension ReplicationTuning {
    /// In bytes. A list of 200 changes, the maximum that is ever requested, has less than 100 kB.
    static let maximumListSize = 4 << 20
    /// In bytes; real ones have some hundred.
    static let maximumCheckpointSize = 64 << 10
    /// Larger announced sizes of bodies, in bytes, are taken for this one.
    static let largestBodyAnnounced = 1 << 40
    /// More edits than any document has had, and so few that an app's next ones can be counted too.
    static let highestGenerationReceived: UInt32 = 1 << 31
    /// Entries of one table of attachments. Looking for each of more would take long.
    static let attachments = 10_000
    /// Parts of a path to an attachment that may be read as keys with `/` in them.
    static let rawPathParts = 32
    /// Lines of one tree.
    static let treeLines = 1_024
    /// Revisions in all lines of one tree.
    static let treeRevisions = 16_384
    /// Closed revisions of one tree, and copies.
    static let treeNotes = 4_096
    /// The bytes of other candidates' bodies beyond which these are left out of a tree, as are those with blobs. A peer that lacks a body
    /// asks for it when it matters.
    static let treeBodies = 64 << 10
    /// Bytes of content beyond which no other leaf's is added to a message. A peer takes messages of up to 24 MB.
    static let fullMessage = 20 << 20
    /// Leaves of a document whose content is asked for at once.
    static let leavesAsked = 100
    /// The maximum number of versions in a vector that a list of changes contains. Of longer vectors it names the current version only.
    static let versionsAnnounced = 64
    /// Bodies shorter than this, in bytes, are not worth a delta (replication.md §16).
    static let shortestForDelta = 200
    /// Refused documents of which another revision may come without being asked for.
    static let refusalsRemembered = 1_000
}
