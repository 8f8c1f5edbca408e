package import LoveseatModel

/// A document that is on its way over a connection, or waits for its turn.
package struct PendingTransfer: Hashable, Sendable {
    /// The state of a transfer.
    package enum Stage: Hashable, Sendable {
        /// To the peer: it has not been offered yet.
        case waits
        /// It was offered, and the peer has not answered.
        case offered
        /// The peer wants it.
        case wanted
        /// It was sent, and the peer has not confirmed it.
        case sent
        /// The peer refused it once, and is asked again when everything else is through.
        case refusedOnce
        /// The peer has another revision, which has to come first.
        case parked
        /// It could not be pushed over this connection.
        case failed
        /// From the peer: it was announced, and this side has not decided yet whether it wants it.
        case announced
        /// It was asked for, and has not come.
        case expected
        /// It was received, and some of its blobs are missing.
        case fetchingBlobs
        /// It was received, and is about to be stored.
        case received
    }

    package let collection: CollectionName
    package let documentID: String
    /// Whether it goes to the peer.
    package let isPush: Bool
    package let stage: Stage

    package init(collection: CollectionName, documentID: String, isPush: Bool, stage: Stage) {
        (self.collection, self.documentID) = (collection, documentID)
        (self.isPush, self.stage) = (isPush, stage)
    }
}

/// The documents that a connection has still to transfer, as far as this side knows.
package struct PendingTransfers: Sendable {
    /// The first ones, up to a limit.
    package var documents: [PendingTransfer] = []
    /// The number of those that go to the peer, without those of ``unread``.
    package private(set) var outgoing = 0
    /// The number of those that come from the peer.
    package private(set) var incoming = 0
    /// The collections with changes that were not read yet, each with the sequence after which those begin.
    package var unread: [CollectionName: UInt64] = [:]

    package init() {}

    /// Counts a document, and lists it if fewer than `limit` are listed.
    package mutating func add(
        _ id: String,
        in collection: CollectionName,
        isPush: Bool,
        _ stage: PendingTransfer.Stage,
        limit: Int
    ) {
        if isPush { outgoing += 1 } else { incoming += 1 }
        if documents.count >= limit { return }
        documents.append(
            PendingTransfer(collection: collection, documentID: id, isPush: isPush, stage: stage)
        )
    }

    /// All of them, without those of ``unread``.
    package var count: Int { outgoing + incoming }
}
