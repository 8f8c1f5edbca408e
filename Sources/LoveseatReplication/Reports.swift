package import LoveseatModel

/// A document whose conflict is to be resolved.
package struct ConflictNotice: Hashable, Sendable {
    package let collection: Int
    package let documentID: String
    /// The kind of peer: a hub takes only descendants of its own revision.
    package let peer: RevisionTree.PeerKind
    /// The revisions that a peer that keeps branches has sent; nil for a peer of Couchbase's protocol.
    package var pulled: [RevisionID]?

    package init(collection: Int, documentID: String, peer: RevisionTree.PeerKind) {
        (self.collection, self.documentID, self.peer) = (collection, documentID, peer)
    }
}

/// Documents to be fetched by their IDs: the feed of changes has passed them, and the peer's revisions are not here.
package struct FetchNotice: Hashable, Sendable {
    package let collection: Int
    package let documentIDs: [String]

    package init(collection: Int, documentIDs: [String]) {
        (self.collection, self.documentIDs) = (collection, documentIDs)
    }
}

/// A report to the app.
package enum ReplicationReport: Hashable, Sendable {
    case activity(isBusy: Bool, ReplicationProgress)
    case document(DocumentEvent)
    /// A piece of a blob was sent or received.
    case blob(BlobEvent)
    /// The last checkpoint, or the marks for the peer, could not be saved: the next replication does some work again.
    case checkpointNotSaved(LoveseatError)
    /// A pulled document is stored without these properties, whose names belong to replication.
    case propertiesLeftOut(collection: Int, documentID: String, names: [String])
    /// The error with which the session ends. A session that ends normally reports none.
    case failure(LoveseatError)
}

package struct DocumentEvent: Hashable, Sendable {
    package var collection: Int
    /// The collection's name, which the driver adds when it reports a document that could not be replicated.
    package var name: CollectionName?
    package let documentID: String
    package let isPush: Bool
    package let isDeleted: Bool
    /// The peer took the document away.
    package let isAccessRemoved: Bool
    package let error: LoveseatError?

    package init(
        collection: Int,
        documentID: String,
        isPush: Bool,
        isDeleted: Bool,
        isAccessRemoved: Bool = false,
        error: LoveseatError?
    ) {
        self.collection = collection
        self.documentID = documentID
        self.isPush = isPush
        self.isDeleted = isDeleted
        self.isAccessRemoved = isAccessRemoved
        self.error = error
    }
}

extension DocumentEvent {
    /// The outcome of a pull for a document.
    package static func pulled(
        _ id: String,
        in collection: Int,
        isDeleted: Bool = false,
        isAccessRemoved: Bool = false,
        _ error: LoveseatError?
    ) -> DocumentEvent {
        DocumentEvent(
            collection: collection,
            documentID: id,
            isPush: false,
            isDeleted: isDeleted,
            isAccessRemoved: isAccessRemoved,
            error: error
        )
    }

    /// The outcome of a push for a document.
    package static func pushed(
        _ id: String,
        in collection: Int,
        isDeleted: Bool = false,
        _ error: LoveseatError?
    ) -> DocumentEvent {
        DocumentEvent(
            collection: collection,
            documentID: id,
            isPush: true,
            isDeleted: isDeleted,
            error: error
        )
    }
}

/// How much of a blob was transferred.
package struct BlobEvent: Hashable, Sendable {
    package var collection: Int
    /// The document that the blob was requested for; nil if the peer did not say.
    package let documentID: String?
    package let digest: BlobDigest
    package let isPush: Bool
    /// The bytes from the blob's beginning that were handed to the socket, or that are here.
    package let transferred: UInt64
    /// Nil if a received document does not contain it.
    package let length: UInt64?
    /// Why this side cannot send the rest. A blob that could not be fetched is reported with its document instead.
    package let error: LoveseatError?

    package init(
        collection: Int,
        documentID: String?,
        digest: BlobDigest,
        isPush: Bool,
        transferred: UInt64,
        length: UInt64?,
        error: LoveseatError? = nil
    ) {
        self.collection = collection
        self.documentID = documentID
        self.digest = digest
        self.isPush = isPush
        self.transferred = transferred
        self.length = length
        self.error = error
    }
}
