package import LoveseatModel

/// Which marks of what a remote has count, for one collection and one session (docs/decisions/0006-lost-commits.md).
///
/// A value without a database: it is told what happens, and answers.
package struct MarkLedger: Sendable {
    /// How many bytes of names of documents that were marked in a session are kept. More are offered once in vain.
    package static let namesKept = 8_000_000

    private var trust = MarkTrust()
    /// The last sequence of the collection when it was said which marks count.
    private var beginning: UInt64 = 0
    /// Whether there are marks from before this session, which may be in doubt.
    private var hasOlder = false
    /// What this session marked while older marks are in doubt.
    private var marked = NameSet(bytes: Self.namesKept)
    /// How many transactions made marks, and how many had when the last checkpoint went to the peer; nil before one did.
    private var made = 0
    private var covered: Int?

    package init() {}

    // MARK: What happens

    /// There are marks, or a checkpoint, from before this session.
    package mutating func foundOlder() { hasOlder = true }

    /// The session has compared checkpoints, and says which marks count. `lastSequence`: the collection's at this moment.
    package mutating func believe(_ trust: MarkTrust, at lastSequence: UInt64) {
        (self.trust, beginning) = (trust, lastSequence)
    }

    /// A transaction made marks.
    package mutating func marksMade() { made += 1 }

    /// The session has marked these documents.
    package mutating func mark(_ ids: some Sequence<String>) {
        if !hasOlder || trust.leavesOutMarked { return }
        for id in ids { marked.insert(id) }
    }

    /// A checkpoint goes to the peer.
    package mutating func checkpointBegan() { covered = made }

    // MARK: What follows

    /// Whether what the remote is marked to have of documents that were here when the session began need not be offered.
    package var leavesOutMarked: Bool { trust.leavesOutMarked }

    /// Whether the last checkpoint that went to the peer covers every mark that was made.
    package var isCovered: Bool { covered == made }

    /// Whether a mark of what the remote has counts for a push.
    ///
    /// With older marks in doubt, those count that this session made, whether or not the document was here when it began, and what an
    /// edit of this session was made on. A document can come back to a revision with an older mark, as when a resolver takes the
    /// remote's: such a mark proves nothing.
    ///
    /// `isCurrent`: whether it is of the document's current revision.
    package func counts(isCurrent: Bool, of documentID: String, at sequence: UInt64) -> Bool {
        guard !trust.leavesOutMarked else { return true }
        guard isCurrent else { return !isDoubted(sequence) }
        return !hasOlder || marked.contains(documentID)
    }

    /// Whether a document with this sequence was here when a session began whose marks are in doubt.
    package func isDoubted(_ sequence: UInt64) -> Bool {
        !trust.leavesOutMarked && sequence <= beginning
    }

    /// Whether all that was in doubt when the session began has been offered anew. `completed`: the sequence up to which a checkpoint
    /// says that everything was.
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
