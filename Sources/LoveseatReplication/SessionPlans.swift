package import LoveseatModel

/// The plan of an active session.
package struct ActivePlan: Hashable, Sendable {
    package struct Binding: Hashable, Sendable {
        package let name: CollectionName
        /// The ID under which both sides keep the checkpoint (replication.md §5.2).
        package let checkpointID: String
        /// The only documents to replicate; nil for all.
        package var documentIDs: [String]?
        /// The gateway's channels to pull from; none for all.
        package var channels: [String] = []
        /// The app decides which received revisions are stored.
        package var filtersPull = false
        /// The collection holds nothing yet, so tombstones need not be pulled.
        package var isEmpty = false

        package init(name: CollectionName, checkpointID: String) {
            self.name = name
            self.checkpointID = checkpointID
        }
    }

    /// The results of earlier sessions that are not relied on.
    package enum Reset: Hashable, Sendable {
        case none
        /// Everything is compared again, except revisions that the peer is marked as having.
        case checkpoint
        /// Everything is offered again.
        case checkpointAndMarks
    }

    package var collections: [Binding]
    package var pushes: Bool
    package var pulls: Bool
    package var isContinuous: Bool
    package var reset = Reset.none
    /// Documents that the peer takes away are purged here.
    package var autoPurges = true
    package var usesDeltas = false
    /// Whether the session fetches documents by their IDs for another one: it keeps no checkpoint and asks for no fetch.
    package var isFetch = false
    /// Uses the protocol without extensions, as foreign peers do.
    package var isPlain = false

    package init(collections: [Binding], pushes: Bool, pulls: Bool, isContinuous: Bool) {
        self.collections = collections
        self.pushes = pushes
        self.pulls = pulls
        self.isContinuous = isContinuous
    }
}

/// The plan of a passive session, with the operations that it allows.
package struct PassivePlan: Hashable, Sendable {
    package var collections: [CollectionName]
    /// Peers may pull and keep checkpoints, and push nothing.
    package var isReadOnly = false
    /// Peers may push and keep checkpoints, and pull nothing.
    package var isWriteOnly = false
    package var usesDeltas = false
    /// Whether documents may be taken away from the peer.
    package var restrictsAccess = false
    /// The app decides which revisions are stored.
    package var filtersIncoming = false
    /// Uses the protocol without extensions, as foreign peers do.
    package var isPlain = false

    package init(collections: [CollectionName]) { self.collections = collections }
}
