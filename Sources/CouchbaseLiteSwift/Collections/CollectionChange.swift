/// The documents of a collection that one transaction changed.
public struct CollectionChange: Sendable {
    /// The collection that changed.
    public let collection: Collection
    /// The IDs of the documents that were saved, deleted, purged, expired or replicated, each once. A transaction that changed more than 1,000
    /// documents is reported as several changes.
    public let documentIDs: [String]
}

/// A change of one document.
public struct DocumentChange: Sendable {
    /// The document's ID.
    public let documentID: String
    /// The document's collection.
    public let collection: Collection
}
