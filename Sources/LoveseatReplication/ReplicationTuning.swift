/// Every limit and delay of replication, each with its reason (replication.md §16).
package struct ReplicationTuning: Hashable, Sendable {
    /// Changes in one `changes` or `proposeChanges` message.
    package var changesPerMessage = 200
    /// Changes in a list that an active side asks for: half of what may be asked for, so that the next list is answered while
    /// revisions of the one before still come.
    package var changesAskedFor = 100
    /// Lists sent and not answered. One is enough once the backlog is done.
    package var listsInFlight = 5
    /// Revisions waiting to be sent before the feed of changes pauses.
    package var revisionsQueued = 600
    /// Revisions whose bytes are being read or handed to the socket, and
    package var revisionsTransmitting = 64
    /// how many bytes they may have, but for a single one.
    package var transmittingBytes = 256 << 10
    /// Bytes of revisions sent and not answered. Keeps what is lost by a cut, and the peer's queue, small.
    package var unansweredBytes = 2 << 20
    /// Announced revisions asked for and not received: the next list is answered when all that it may ask for fit too,
    package var revisionsRequested = 200
    /// and so do their bytes, as announced or else as bodies have been so far. A single list is always answered.
    package var requestedBytes = 16 << 20
    /// Proposed revisions agreed to and not received; beyond it no more lists are answered. Pushers hold back by themselves.
    package var proposalsAgreed = 500
    /// Revisions received and not stored, because blobs of theirs are missing or others come first; beyond it no more
    /// lists are answered.
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
    /// Bytes of unanswered lists that a peer may leave with us before it is a mistake of its own. Good peers have a few lists
    /// under way; the worst of ours had one of a hundred bytes for every document in conflict.
    package var listBytesAccepted = 16 << 20
    /// Messages of a peer's that break a rule, each of which is refused, before it is not listened to any more.
    package var violationsAccepted = 100
    /// Bytes of received revisions that are not stored yet, because blobs of theirs are missing; beyond it what comes
    /// waits outside, on disk if it is long.
    package var receivedBytes = 8 << 20
    /// Blobs sent at the same time over one connection; others wait for their turn.
    package var blobsSending = 32
    /// Blobs that a peer may have waiting.
    package var blobsWaiting = 10_000
    /// How often a checkpoint that the peer refuses is saved again under the revision that the peer has.
    package var checkpointRepairs = 5
    /// Bodies at least this long, in bytes, travel compressed.
    package var compressionThreshold = 100
    /// How many documents more, or
    package var reportDocuments: UInt64 = 100
    /// how many bytes more, are worth a report of progress.
    package var reportBytes: UInt64 = 256 << 10
    /// How long a stop waits for the peer to take the last checkpoint, in milliseconds.
    package var stopDelay = 2_000

    package init() {}
}
