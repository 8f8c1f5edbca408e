package import LoveseatModel

/// Decides which marks for a remote count, for one collection and one session (docs/decisions/0006-lost-commits.md).
///
/// It is a value without a database: it is told of events, and answers questions.
package struct MarkLedger: Sendable {
    /// The maximum bytes of the document IDs that are remembered as marked in a session. Further documents are offered once in vain.
    package static let namesKept = 8_000_000

    private var trust = MarkTrust()
    /// The collection's last sequence when it was decided which marks count.
    private var beginning: UInt64 = 0
    /// Whether there are marks from before this session, which may be in doubt.
    private var hasOlder = false
    /// The documents that this session marked while older marks are in doubt.
    private var marked = NameSet(bytes: Self.namesKept)
    /// How many transactions made marks, and how many had when the last checkpoint went to the peer; nil before one did.
    private var made = 0
    private var covered: Int?
    /// How often the peer has taken documents away.
    package private(set) var removals = RemovalCount()

    package init() {}

    // MARK: Events

    /// Notes that there are marks, or a checkpoint, from before this session.
    package mutating func foundOlder() { hasOlder = true }

    /// Notes how often the peer has taken documents away, as earlier sessions have saved it.
    package mutating func found(_ removals: RemovalCount) { self.removals = removals }

    /// Notes which marks count, after the session has compared checkpoints. `lastSequence`: the collection's at this moment.
    package mutating func believe(_ trust: MarkTrust, at lastSequence: UInt64) {
        (self.trust, beginning) = (trust, lastSequence)
    }

    /// Notes that a transaction made marks.
    package mutating func marksMade() { made += 1 }

    /// Notes that the session has marked these documents.
    package mutating func mark(_ ids: some Sequence<String>) {
        if !hasOlder || trust.leavesOutMarked { return }
        for id in ids { marked.insert(id) }
    }

    /// Notes that a checkpoint is sent to the peer. `removals`: how often the peer has taken documents away by now; nil for never.
    package mutating func checkpointBegan(removals: Int?) {
        covered = made
        self.removals.checkpointBegan(at: removals)
    }

    /// Notes that the checkpoint was saved, with ``RemovalCount/unsaved``.
    package mutating func checkpointSaved() { removals.checkpointSaved() }

    // MARK: Answers

    /// Whether marked revisions need not be offered, if their documents were here when the session began.
    package var leavesOutMarked: Bool { trust.leavesOutMarked }

    /// Whether the last checkpoint that went to the peer covers every mark that was made.
    package var isCovered: Bool { covered == made }

    /// Whether a mark for the remote counts for a push.
    ///
    /// While older marks are in doubt, two kinds count: those that this session made, whether or not the document was here when it began,
    /// and that of the revision on which an edit of this session was made. A document can come back to a revision with an older mark, for
    /// example when a resolver takes the remote's: such a mark proves nothing.
    ///
    /// `isCurrent`: whether the mark is on the document's current revision.
    package func counts(isCurrent: Bool, of documentID: String, at sequence: UInt64) -> Bool {
        guard !trust.leavesOutMarked else { return true }
        guard isCurrent else { return !isDoubted(sequence) }
        return !hasOlder || marked.contains(documentID)
    }

    /// Whether a document with this sequence was here when a session began whose marks are in doubt.
    package func isDoubted(_ sequence: UInt64) -> Bool {
        !trust.leavesOutMarked && sequence <= beginning
    }

    /// Whether every document that was in doubt when the session began has been offered again. `completed`: the sequence up to which a
    /// checkpoint says that everything was.
    package func hasOfferedDoubted(upTo completed: UInt64?) -> Bool {
        trust.leavesOutMarked || completed ?? 0 >= beginning
    }

    /// The local sequences of the documents whose marks count when the remote says something else; nil for all.
    package var followed: SequenceSet? {
        guard var followed = trust.followed else { return nil }
        if beginning < .max { followed.insert(beginning + 1 ... .max) }
        return followed
    }
}
