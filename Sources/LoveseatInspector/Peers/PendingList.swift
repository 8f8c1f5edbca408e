import LoveseatCore
import LoveseatModel
import LoveseatReplication

/// Documents that are not at both sides, with the reasons: all counted, the first ones listed.
struct PendingList {
    static let maximumDocuments = 500

    private struct Key: Hashable {
        let collection: ExactText
        let id: ExactText
        let isPush: Bool

        init(collection: String, id: String, isPush: Bool) {
            (self.collection, self.id, self.isPush) = (ExactText(collection), ExactText(id), isPush)
        }
    }

    private var counts: [String: Int] = [:]
    private var documents: [JSONValue] = []
    private var added: Set<Key> = []
    /// Whether there are more than were counted.
    var isCut = false

    mutating func add(_ transfers: PendingTransfers) {
        for transfer in transfers.documents {
            add(
                Key(
                    collection: transfer.collection.fullName,
                    id: transfer.documentID,
                    isPush: transfer.isPush
                ),
                .pending,
                transfer.sentence
            )
        }
        let others = transfers.count - transfers.documents.count
        if others > 0 { counts[SyncState.pending.name, default: 0] += others }
        if !transfers.unread.isEmpty { isCut = true }
    }

    mutating func add(_ pending: PendingDocument) {
        let isPush = if case .notPulled = pending.state { false } else { true }
        let key = Key(collection: pending.collection, id: pending.id, isPush: isPush)
        add(key, pending.state, pending.state.sentence)
    }

    /// Adds the documents that could not be replicated.
    mutating func add(_ failures: FailedDocuments) {
        let listed = failures.listed
        for failure in listed {
            let key = Key(collection: failure.collection, id: failure.id, isPush: failure.isPush)
            add(key, named: failure.why.rawValue, failure.message, at: failure.time)
        }
        let others = failures.count - listed.count
        if others > 0, let why = listed.last?.why { counts[why.rawValue, default: 0] += others }
    }

    private mutating func add(_ key: Key, _ state: SyncState, _ sentence: String) {
        add(key, named: state.name, sentence)
    }

    private mutating func add(_ key: Key, named why: String, _ detail: String, at time: Int64? = nil) {
        // A document that is on its way may be pending in the database too.
        guard added.insert(key).inserted else { return }
        counts[why, default: 0] += 1
        if documents.count >= Self.maximumDocuments { return }
        var document: JSONObject = [
            "id": .string(key.id.text), "way": key.isPush ? "out" : "in", "why": .string(why),
            "detail": .string(detail),
        ]
        if !key.collection.text.isEmpty { document["collection"] = .string(key.collection.text) }
        document["time"] = time.map { JSONValue($0) }
        documents.append(.object(document))
    }

    var json: JSONValue {
        [
            "documents": .array(documents), "isCut": .bool(isCut),
            "counts": .object(JSONObject(counts.mapValues { JSONValue($0) })),
        ]
    }
}
