public import LoveseatModel
private import LoveseatStorage

/// Documents of a collection that one transaction changed.
public struct CollectionChange: Sendable {
    /// The collection.
    public let collection: Collection
    /// The documents saved, deleted, purged, expired or replicated, each once, in order.
    public internal(set) var documentIDs: [String]
    /// Whether so much happened before anybody looked that IDs had to be left out: look at the whole collection.
    public internal(set) var isIncomplete = false
}

/// A change of one document.
public struct DocumentChange: Sendable {
    /// The document.
    public let documentID: String
    /// Its collection.
    public let collection: Collection
}

extension Collection {
    private static let idsPerChange = 1_000

    /// The changes of this collection from now on, by whomever they are made: one event a transaction, or several where
    /// that changed more than 1,000 documents.
    ///
    /// - Throws: `notOpen`.
    public func changes() throws(LoveseatError) -> Feed<CollectionChange> {
        let buffer = FeedBuffer<CollectionChange>(
            cost: { $0.documentIDs.reduce(64) { $0 + $1.utf8.count + 32 } },
            merge: { last, _ in last.isIncomplete = true }
        )
        return try observe(buffer) { ids in
            for start in stride(from: 0, to: ids.count, by: Self.idsPerChange) {
                let part = ids[start..<min(ids.count, start + Self.idsPerChange)]
                buffer.push(CollectionChange(collection: self, documentIDs: Array(part)))
            }
        }
    }

    /// The changes of one document from now on: its creation, every save, its deletion, purge or expiration.
    ///
    /// - Throws: `notOpen`.
    public func documentChanges(id: String) throws(LoveseatError) -> Feed<DocumentChange> {
        let change = DocumentChange(documentID: id, collection: self)
        // Who falls behind learns that the document changed, not how often.
        let buffer = FeedBuffer<DocumentChange>(limit: 64 << 10, cost: { _ in 64 }, merge: { _, _ in })
        return try observe(buffer) { ids in if ids.contains(id) { buffer.push(change) } }
    }

    private func observe<Element>(
        _ buffer: FeedBuffer<Element>,
        _ notify: @escaping @Sendable ([String]) -> Void
    ) throws(LoveseatError) -> Feed<Element> {
        let hub = try openStore().changes
        let token = hub.subscribe(
            collection: handle.number,
            onClose: { buffer.finish() },
            { notify($0.documentIDs) }
        )
        return Feed(buffer) { hub.unsubscribe(token) }
    }
}
