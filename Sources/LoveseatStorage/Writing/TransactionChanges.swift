import LoveseatModel

/// The documents that a transaction changed, and the collections that it deleted.
struct TransactionChanges {
    /// The IDs changed in each collection, in order.
    private var changed: [(collection: CollectionHandle, ids: [String])] = []
    private var deleted: [CollectionHandle] = []

    mutating func record(_ id: String, in collection: CollectionHandle) {
        if let index = changed.firstIndex(where: { $0.collection.number == collection.number }) {
            changed[index].ids.append(id)
        } else {
            changed.append((collection, [id]))
        }
    }

    mutating func recordDeletion(of collection: CollectionHandle) { deleted.append(collection) }

    /// The commits to be reported, in order of the collections' numbers.
    ///
    /// `lastSequence`: the last sequences of the collections that exist.
    func commits(lastSequence: [Int64: UInt64]) -> [CollectionCommit] {
        let commits = changed.filter { !$0.ids.isEmpty }
            .sorted { $0.collection.number < $1.collection.number }
            .map {
                var seen = DocumentSet(minimumCapacity: $0.ids.count)
                return CollectionCommit(
                    collection: $0.collection.name,
                    number: $0.collection.number,
                    documentIDs: $0.ids.count == 1 ? $0.ids : $0.ids.filter { seen.insert($0) },
                    lastSequence: lastSequence[$0.collection.number] ?? 0
                )
            }
        let gone = deleted.filter { lastSequence[$0.number] == nil }.map {
            CollectionCommit(collection: $0.name, number: $0.number, documentIDs: [], lastSequence: 0)
        }
        return commits + gone
    }
}
