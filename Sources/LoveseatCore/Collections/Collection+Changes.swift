public import LoveseatModel
private import LoveseatStorage

/// The documents of a collection that one transaction changed.
public struct CollectionChange: Sendable {
    /// The collection that changed.
    public let collection: Collection
    /// The IDs of documents that were saved, deleted, purged, expired or replicated, each once, in the order of the changes.
    public internal(set) var documentIDs: [String]
    /// Whether IDs are missing, because the consumer of the feed fell too far behind. Then look at the whole collection.
    public internal(set) var isIncomplete = false
}

/// A change of a document that is observed by ``Collection/documentChanges(id:)``.
public struct DocumentChange: Sendable {
    /// The document's ID.
    public let documentID: String
    /// The document's collection.
    public let collection: Collection
}

extension Collection {
    private static let idsPerChange = 1_000

    /// Returns a feed of the changes to this collection from now on, made in this process by the app, a replicator, or the
    /// expiration of a document.
    ///
    /// There is one event for each transaction, or several if a transaction changed more than 1,000 documents. The feed keeps up to
    /// 4 MB of events that were not consumed; beyond that, IDs are left out and ``CollectionChange/isIncomplete`` is set. It ends
    /// when the database is closed or the collection deleted.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`.
    public func changes() throws(LoveseatError) -> Feed<CollectionChange> {
        let buffer = FeedBuffer<CollectionChange>(
            cost: { $0.documentIDs.reduce(64) { $0 + $1.utf8.count + 32 } },
            merge: { last, _ in last.isIncomplete = true }
        )
        return try Feed(of: [self], in: database, buffer) { ids in
            for start in stride(from: 0, to: ids.count, by: Self.idsPerChange) {
                let part = ids[start..<min(ids.count, start + Self.idsPerChange)]
                buffer.push(CollectionChange(collection: self, documentIDs: Array(part)))
            }
        }
    }

    /// Returns a feed of the changes to one document from now on: its creation, every save, its deletion, purge or expiration.
    ///
    /// The document need not exist. A consumer that falls behind gets fewer events than there were changes, but always one after the
    /// last change. The feed ends when the database is closed or the collection deleted.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`.
    public func documentChanges(id: String) throws(LoveseatError) -> Feed<DocumentChange> {
        let change = DocumentChange(documentID: id, collection: self)
        // A consumer that falls behind is told that the document changed, not how often.
        let buffer = FeedBuffer<DocumentChange>(limit: 64 << 10, cost: { _ in 64 }, merge: { _, _ in })
        return try Feed(of: [self], in: database, buffer) { ids in
            if ids.contains(where: { $0.isExactly(id) }) { buffer.push(change) }
        }
    }
}
