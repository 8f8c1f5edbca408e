import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// `getCollections` (replication.md §B.2).
struct GetCollectionsMessage: Hashable {
    /// Nil where a path is not a valid name, which is the same as not having the collection.
    let names: [CollectionName?]
    let checkpoints: [String]
    /// The sender's name as an author of versions, which peers with versions send, and nobody needs (version-vectors.md §3).
    private(set) var source: SourceID?

    init(_ names: [CollectionName], checkpoints: [String], source: SourceID?) {
        (self.names, self.checkpoints, self.source) = (names, checkpoints, source)
    }

    /// - Throws: ``ReplyError`` for a body that does not name collections with their checkpoints.
    init(_ message: Message) throws(ReplyError) {
        func invalid(_ detail: String) -> ReplyError {
            ReplyError("BLIP", 400, "Invalid getCollections message: \(detail)")
        }
        guard let root = try? JSONElement(parsing: message.body), root.kind == .object else {
            throw invalid("no root")
        }
        guard let ids = root["checkpoint_ids"], ids.kind == .array else { throw invalid("no checkpoint_ids") }
        guard let paths = root["collections"], paths.kind == .array, paths.count > 0 else {
            throw invalid("no collections")
        }
        guard ids.count == paths.count else { throw invalid("mismatched checkpoint_ids and collections") }
        checkpoints = ids.items.compactMap(\.string)
        let texts = paths.items.compactMap(\.string)
        guard checkpoints.count == ids.count, texts.count == paths.count, !texts.contains("") else {
            throw invalid("empty collection path")
        }
        guard Set(texts).count == texts.count else { throw invalid("duplicate collection path") }
        names = texts.map { CollectionName(path: $0) }
    }

    var message: Message {
        let body: JSONValue = [
            "checkpoint_ids": .array(checkpoints.map { .string($0) }),
            "collections": .array(names.map { .string($0?.path ?? "") }),
        ]
        var message = Message(.getCollections, body: JSONText(canonical: body).bytes)
        message.properties["uuid"] = source?.uuidText
        return message
    }

    /// The peer's collections, with their checkpoints.
    struct Answer {
        enum Item {
            case missing
            /// Without a checkpoint.
            case empty
            case checkpoint(JSONElement, revision: String?)
        }

        let items: [Item]
        /// The protocol extensions that the sender supports.
        var extensions: String?

        init(_ bound: [BoundCollection], extensions: String?) {
            self.extensions = extensions
            items = bound.map { collection in
                guard collection.exists else { return .missing }
                guard let checkpoint = collection.checkpoint else { return .empty }
                return .checkpoint(
                    JSONElement(checkpoint),
                    revision: CheckpointRevision.text(collection.revision)
                )
            }
        }

        /// Couchbase Lite says `rev`, gateways `_rev`; anything but an empty object is a checkpoint.
        init(_ message: Message) throws(ReplyError) {
            extensions = message.properties[ProtocolExtensions.property]
            items = try JSONElement.list(message.body).map { item in
                if item.isNull { return .missing }
                guard item.kind == .object, item.count > 0 else { return .empty }
                return .checkpoint(item, revision: (item["rev"] ?? item["_rev"])?.string)
            }
        }

        var message: Message {
            let items: [JSONValue] = items.map { item in
                switch item {
                case .missing: return .null
                case .empty: return [:]
                case .checkpoint(let body, let revision):
                    var value = body.value
                    // Couchbase Lite reads `rev`, gateways `_rev` (gateway.md 20).
                    value["rev"] = revision.map { .string($0) }
                    value["_rev"] = value["rev"]
                    return value
                }
            }
            var message = Message(body: JSONText(canonical: .array(items)).bytes)
            message.properties[ProtocolExtensions.property] = extensions
            return message
        }
    }
}
