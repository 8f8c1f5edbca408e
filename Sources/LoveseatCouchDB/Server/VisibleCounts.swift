import LoveseatCore
import LoveseatModel
import LoveseatStorage
import Synchronization

/// How many documents clients may read, remembered until the collection changes: an access policy has to be asked about each.
final class VisibleCounts: Sendable {
    struct Counts: Sendable {
        var live = 0
        var deleted = 0
        var sizes = ContentSizes()
    }

    private struct Key: Hashable {
        let peer: String
        let collection: Int64
    }

    private static let maximumKept = 256

    private let kept = Mutex<[Key: (sequence: UInt64, counts: Counts)]>([:])

    /// Forgets everything, since the policy's answers have changed.
    func forget() { kept.withLock { $0 = [:] } }

    /// Counts, or returns what was counted since the last change.
    private func counts(of entry: Databases.Entry, _ access: CollectionAccess) throws -> Counts {
        let key = Key(peer: access.peerName, collection: entry.handle.number)
        let sequence = entry.store.lastSequence(entry.handle)
        if let known = kept.withLock({ $0[key] }), known.sequence == sequence { return known.counts }
        var counts = Counts()
        var position: UInt64 = 0
        while true {
            var records: [DocumentRecord] = []
            try entry.store.readRows { view in
                try view.changes(in: entry.handle, since: position) { record in
                    records.append(record)
                    return records.count < 500
                }
            }
            guard let last = records.last else { break }
            position = last.sequence
            for record in try entry.renewed().visible(records) {
                if record.isDeleted { counts.deleted += 1 } else { counts.live += 1 }
                counts.sizes.add(record)
            }
        }
        kept.withLock { kept in
            if kept.count >= Self.maximumKept { kept = [:] }
            kept[key] = (sequence, counts)
        }
        return counts
    }

    /// The object `sizes` of a database, for a client that may read some of its documents or all.
    func sizes(of entry: Databases.Entry) throws -> JSONValue {
        if let access = entry.access { return try counts(of: entry, access).sizes.json(file: nil) }
        return try entry.store.readRows { view in
            let count = try view.count(entry.handle) + view.deletedCount(entry.handle)
            return try ContentSizes(of: entry.handle, count: count, in: view).json(file: view.fileSize())
        }
    }

    /// The numbers of documents and of tombstones that exist for a client.
    func counts(of entry: Databases.Entry) throws -> (live: Int, deleted: Int) {
        guard let access = entry.access else {
            return try entry.store.readRows { view in
                (try view.count(entry.handle), try view.deletedCount(entry.handle))
            }
        }
        let counts = try counts(of: entry, access)
        return (counts.live, counts.deleted)
    }
}
