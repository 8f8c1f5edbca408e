import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The rows that the feed has read and that are about to be sent, so that most are read once only.
///
/// Only documents with a single revision, for peers that have none: what is sent with others depends on their tree, which
/// may change meanwhile. A row that has changed since is as good as one that changes while it is on its way: its new
/// revision follows.
struct RecentRecords {
    private struct Key: Hashable {
        let collection: Int64
        let documentID: String
    }

    private static let bound = 2 << 20

    private var young: [Key: DocumentRecord] = [:]
    private var old: [Key: DocumentRecord] = [:]
    private var youngBytes = 0

    mutating func keep(_ record: DocumentRecord, of collection: CollectionHandle) {
        let key = Key(collection: collection.number, documentID: record.id)
        guard record.encodedTree == nil, record.body.bytes.count < Self.bound / 16 else {
            // What was kept before knew less.
            (young[key], old[key]) = (nil, nil)
            return
        }
        youngBytes += record.body.bytes.count
        if youngBytes > Self.bound {
            (old, young) = (young, [:])
            youngBytes = record.body.bytes.count
        }
        young[key] = record
    }

    mutating func take(_ request: RevisionRequest, of collection: CollectionHandle) -> DocumentRecord? {
        let key = Key(collection: collection.number, documentID: request.documentID)
        let found = young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
        return found?.revision == request.revision && request.known.isEmpty ? found : nil
    }
}
