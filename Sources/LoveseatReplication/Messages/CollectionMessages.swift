import LoveseatBLIP
import LoveseatModel

/// `getCollections` (replication.md §B.2).
enum GetCollectionsMessage {
    static func request(_ names: [CollectionName], checkpoints: [String]) -> Message {
        let body: JSONValue = [
            "checkpoint_ids": .array(checkpoints.map { .string($0) }),
            "collections": .array(names.map { .string($0.path) }),
        ]
        return Message(["Profile": "getCollections"], body: JSONText(canonical: body).bytes)
    }

    /// The names asked for; nil where a path is no name, which is the same as not having it.
    static func parse(_ body: [UInt8]) throws(ReplyError) -> (names: [CollectionName?], checkpoints: [String])
    {
        func invalid(_ detail: String) -> ReplyError {
            ReplyError("BLIP", 400, "Invalid getCollections message: \(detail)")
        }
        guard let root = try? JSONElement(parsing: body), root.kind == .object else {
            throw invalid("no root")
        }
        guard let ids = root["checkpoint_ids"], ids.kind == .array else { throw invalid("no checkpoint_ids") }
        guard let paths = root["collections"], paths.kind == .array, paths.count > 0 else {
            throw invalid("no collections")
        }
        guard ids.count == paths.count else { throw invalid("mismatched checkpoint_ids and collections") }
        let checkpoints = ids.items.compactMap(\.string)
        let texts = paths.items.compactMap(\.string)
        guard checkpoints.count == ids.count, texts.count == paths.count, !texts.contains("") else {
            throw invalid("empty collection path")
        }
        guard Set(texts).count == texts.count else { throw invalid("duplicate collection path") }
        return (texts.map { CollectionName(path: $0) }, checkpoints)
    }

    /// `extensions`: what this side says beyond the protocol.
    static func answer(_ bound: [BoundCollection], extensions: String?) -> Message {
        let items: [JSONValue] = bound.map { collection in
            guard collection.exists else { return .null }
            guard let checkpoint = collection.checkpoint else { return [:] }
            var value = JSONElement(checkpoint).value
            // Couchbase Lite reads `rev`, gateways `_rev` (gateway.md 20).
            value["rev"] = .string(CheckpointRevision.text(collection.revision))
            value["_rev"] = value["rev"]
            return value
        }
        var properties = MessageProperties()
        properties[ProtocolExtensions.property] = extensions
        return Message(properties, body: ChangesMessage.json(items))
    }
}

/// The names that our checkpoints' revisions get: `1-cc`, `2-cc`, … (replication.md §5.4).
enum CheckpointRevision {
    static func text(_ revision: Int) -> String { "\(revision)-cc" }

    /// The number; 0 for none, nil for what is no name of ours.
    static func number(_ text: String?) -> Int? {
        guard let text, !text.isEmpty else { return 0 }
        guard text.hasSuffix("-cc") else { return nil }
        return Int(text.dropLast(3))
    }
}

/// `subChanges` (replication.md §6).
struct Subscription: Hashable, Sendable {
    var since: UInt64 = 0
    var isContinuous = false
    var batch = 200
    var activeOnly = false
    var sendsReplacements = false
    /// Whether the peer wants to hear of documents that it may not have any more.
    var wantsRevocations = false
    var documentIDs: Set<String>?
    /// The peer is a gateway that replicates from here, and refuses lists that do not say so (gateway.md 49).
    var isGateway = false

    init(_ message: Message) throws(ReplyError) {
        guard (message.properties["versioning"] ?? "rev-trees") == "rev-trees" else {
            throw ReplyError("LiteCore", 501, "Incompatible document versioning.")
        }
        guard message.properties["filter"] == nil else {
            throw ReplyError("LiteCore", 19, "Filtering not supported")
        }
        // What is higher than any sequence can be is the end.
        since = min(message.properties["since"].flatMap { UInt64($0) } ?? 0, UInt64(Int64.max) - 1)
        isContinuous = message.properties["continuous"].map { $0.lowercased() != "false" } ?? false
        batch = min(max(message.properties.int("batch") ?? 200, 10), 1_000)
        activeOnly = message.properties.bool("activeOnly")
        sendsReplacements = message.properties.bool("sendReplacementRevs")
        wantsRevocations = message.properties.bool("revocations")
        isGateway = message.properties.bool("client_sgr2")
        guard !message.body.isEmpty else { return }
        guard let body = try? JSONElement(parsing: message.body) else {
            throw ReplyError("HTTP", 400, "Invalid JSON body")
        }
        documentIDs = body["docIDs"].map { Set($0.items.compactMap(\.string)) }
    }

    static func request(
        collection: Int?,
        since: RemoteSequence?,
        isContinuous: Bool,
        batch: Int,
        activeOnly: Bool,
        wantsRevocations: Bool,
        channels: [String],
        documentIDs: [String]?
    ) -> Message {
        var properties: MessageProperties = ["Profile": "subChanges"]
        properties["collection"] = collection.map(String.init)
        properties["since"] = since?.text
        if isContinuous { properties["continuous"] = "true" }
        properties["batch"] = String(batch)
        properties["sendReplacementRevs"] = "true"
        properties["versioning"] = "rev-trees"
        if activeOnly { properties["activeOnly"] = "true" }
        if wantsRevocations { properties["revocations"] = "true" }
        properties[ProtocolExtensions.property] = ProtocolExtensions.all
        if !channels.isEmpty {
            properties["filter"] = "sync_gateway/bychannel"
            properties["channels"] = channels.joined(separator: ",")
        }
        let body: [UInt8] =
            if let documentIDs {
                JSONText(canonical: ["docIDs": .array(documentIDs.map { .string($0) })]).bytes
            } else { [] }
        return Message(properties, body: body)
    }
}
