import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The rows that the feed has read and that are about to be sent, so that most are read once only.
///
/// Only for peers that have no revision of the document: what is sent to others depends on more than the row. A row that has
/// changed since is as good as one that changes while it is on its way: what is new has a sequence of its own, and follows.
struct RecentRecords {
    private struct Key: Hashable {
        let collection: Int64
        let documentID: ExactText
    }

    /// Bytes that one connection keeps of each age, and all connections together.
    private static let (bound, boundOfAll) = (2 << 20, 32 << 20)
    private static let smallestBound = 64 << 10

    private var young: [Key: DocumentRecord] = [:]
    private var old: [Key: DocumentRecord] = [:]
    private var youngBytes = 0

    /// `connections`: how many there are. Of many each keeps less.
    mutating func keep(_ record: DocumentRecord, of collection: CollectionHandle, among connections: Int) {
        let key = Key(collection: collection.number, documentID: ExactText(record.id))
        let size = record.body.bytes.count + (record.encodedTree?.count ?? 0)
        let bound = min(Self.bound, max(Self.smallestBound, Self.boundOfAll / (2 * connections)))
        let isKept = size < bound / 16
        if isKept { youngBytes += size }
        if youngBytes > bound {
            (old, young) = (young, [:])
            youngBytes = size
        }
        // What was kept before knew less.
        if !old.isEmpty { old[key] = nil }
        young[key] = isKept ? record : nil
    }

    mutating func take(_ request: RevisionRequest, of collection: CollectionHandle) -> DocumentRecord? {
        let key = Key(collection: collection.number, documentID: ExactText(request.documentID))
        let found = young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
        return found?.revision == request.revision && request.known.isEmpty ? found : nil
    }
}
