import LoveseatModel

/// A revision that the peer wants, on its way from the feed to the peer's answer.
struct QueuedRevision: Hashable, Sendable {
    /// The session's name for it.
    let key: Int
    let sequence: UInt64
    let documentID: String
    let revision: RevisionID
    let isDeleted: Bool
    let bodySize: Int
    /// It was proposed rather than announced.
    let isProposal: Bool
    /// Revisions that the peer has. The first one is what a proposal is to go on top of.
    let known: [RevisionID]
    let maxHistory: Int
    /// What is actually sent, which may be a newer revision.
    var sent: RevisionID
    /// That the sent one was made for the hub.
    var copy: SendableRevision.HubCopy?
    /// The bytes sent, while their answer is awaited.
    var sentBytes = 0
    var isTransmitting = false
    var wasForbidden = false
    /// There are others between it and the one that the hub has.
    var isDistant = false
    /// The hub refused the line, so only the content goes there.
    var isCopyOnly = false
    var isDelta = false
    /// The peer could not use a delta of it.
    var refusesDelta = false

    /// As it was read from the feed.
    var change: LocalChange {
        LocalChange(
            sequence: sequence,
            documentID: documentID,
            revision: revision,
            isDeleted: isDeleted,
            bodySize: bodySize,
            remoteAncestor: known.first
        )
    }
}

/// How far one direction of one collection is.
struct DirectionProgress: Hashable, Sendable {
    var completed: UInt64 = 0
    var total: UInt64 = 0
    var documents: UInt64 = 0
    var deltas = DeltaStatistics()

    mutating func finish(_ units: Int, isDocument: Bool) {
        completed += UInt64(max(1, units))
        if isDocument { documents += 1 }
    }
}
