package import LoveseatModel

/// The state that is kept of earlier sessions with a peer.
package struct StoredCheckpoint: Sendable {
    package var body: JSONText?
    package var marks = MarkState.unknown
    /// Whether the peer has ever taken documents away.
    package var wasTakenFrom = false
    /// Whether the peer took documents away after the last checkpoint was sent to it, so that an older checkpoint says nothing of them.
    package var wasTakenFromSince = false

    package init() {}
}

/// A checkpoint that a peer keeps here.
package struct PeerCheckpoint: Hashable, Sendable {
    package let revision: Int
    package let body: JSONText

    package init(revision: Int, body: JSONText) { (self.revision, self.body) = (revision, body) }
}

/// The state of the marks for a remote: which session made the last ones, and whether a checkpoint covers them.
package enum MarkState: Hashable, Sendable {
    /// There are no marks, or it is not known which session made them.
    case unknown
    /// The last session that made marks had this checkpoint ID.
    case ours(isCovered: Bool)
    /// That session had another checkpoint ID, for example because of other filters.
    case others(isCovered: Bool)
}

/// Which marks for a remote count (docs/decisions/0006-lost-commits.md). Marks made in the session itself always do.
package struct MarkTrust: Hashable, Sendable {
    /// Whether a push leaves out revisions that the remote was marked as having when the session began.
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
