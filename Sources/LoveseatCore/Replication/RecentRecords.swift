import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The rows that the feed has read and that are about to be sent, so that most are read once only.
///
/// It is only used for peers that have no revision of the document: for others, more than the row is needed. A row that has changed since
/// may be sent like one that changes while it is on its way: the change has a new sequence, and follows.
struct RecentRecords {
    private struct Key: Hashable {
        let collection: Int64
        let documentID: ExactText
    }

    /// The maximum bytes of each age for one connection, and for all connections together.
    private static let (bound, boundOfAll) = (2 << 20, 32 << 20)
    private static let smallestBound = 64 << 10

    private var young: [Key: DocumentRecord] = [:]
    private var old: [Key: DocumentRecord] = [:]
    private var youngBytes = 0

    /// `connections`: the number of connections. If there are many, each keeps less.
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
        // An older row is outdated.
        if !old.isEmpty { old[key] = nil }
        young[key] = isKept ? record : nil
    }

    mutating func remove(_ request: RevisionRequest, of collection: CollectionHandle) -> DocumentRecord? {
        let key = Key(collection: collection.number, documentID: ExactText(request.documentID))
        let found = young.removeValue(forKey: key) ?? old.removeValue(forKey: key)
        return found?.revision == request.revision && request.known.isEmpty ? found : nil
    }
}
