package import LoveseatModel

/// What is kept of earlier sessions with a peer.
package struct StoredCheckpoint: Sendable {
    package var body: JSONText?
    package var marks = MarkState.unknown
    /// Whether the peer has ever taken documents away.
    package var wasTakenFrom = false
    /// Whether it took some away after the last checkpoint went to it, so that one from before says nothing of them.
    package var wasTakenFromSince = false

    package init() {}
}

/// A checkpoint that a peer keeps here.
package struct PeerCheckpoint: Hashable, Sendable {
    package let revision: Int
    package let body: JSONText

    package init(revision: Int, body: JSONText) { (self.revision, self.body) = (revision, body) }
}

/// What is known of the marks of what a remote has: who made the last ones, and whether a checkpoint covers them.
package enum MarkState: Hashable, Sendable {
    /// There are none, or it is not known who made them.
    case unknown
    /// The last session that made marks had this checkpoint ID.
    case ours(isCovered: Bool)
    /// It had another checkpoint ID, as one with other filters has.
    case others(isCovered: Bool)
}

/// Which marks of what a remote has count (docs/decisions/0006-lost-commits.md). Marks made in the session itself always do.
package struct MarkTrust: Hashable, Sendable {
    /// Whether a push leaves out what the remote was marked to have when the session began.
    package var leavesOutMarked = true
    /// The local sequences of the documents whose marks count when the remote says something else; nil for all.
    package var followed: SequenceSet?

    package init() {}
}

package struct BoundCollection: Hashable, Sendable {
    package let exists: Bool
    package let revision: Int
    package let checkpoint: JSONText?

    package init(exists: Bool, revision: Int = 0, checkpoint: JSONText? = nil) {
        self.exists = exists
        self.revision = revision
        self.checkpoint = checkpoint
    }
}
