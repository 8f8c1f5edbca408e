import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// `subChanges` (replication.md §6).
struct SubChangesMessage: Hashable, Sendable {
    private static let gatewayChannels = "sync_gateway/bychannel"

    var collection: Int?
    /// How the subscriber wants revisions to be named.
    let names: RevisionNaming
    /// The last sequence that the subscriber has; nil for none.
    var since: RemoteSequence?
    var isContinuous = false
    /// The maximum number of changes in one list.
    var batch = 200
    /// Whether tombstones that were there before are left out.
    var activeOnly = false
    /// The same for a peer that announces deletions that are made after it subscribed; others ignore it.
    var lateActiveOnly = false
    /// A newer revision may come in place of an announced one.
    var sendsReplacements = false
    /// Whether the peer wants to hear of documents that it may not have any more.
    var wantsRevocations = false
    /// The gateway's channels to pull from; empty for all.
    var channels: [String] = []
    /// Only these documents; nil for all.
    var documentIDs: ListedIDs?
    /// The peer is a gateway that replicates from here, and refuses lists that do not say so (gateway.md 49).
    private(set) var isGateway = false
    /// The protocol extensions that the subscriber supports.
    var extensions: String?

    init(_ names: RevisionNaming) { self.names = names }

    /// - Throws: ``ReplyError`` for a request that this side does not support, or a body that is not JSON.
    init(_ message: Message, _ names: RevisionNaming) throws(ReplyError) {
        let properties = message.properties
        self.names = names
        guard names.isNamed(by: properties["versioning"]) else {
            throw ReplyError("LiteCore", 501, "Incompatible document versioning.")
        }
        guard properties["filter"] == nil else {
            throw ReplyError("LiteCore", 19, "Filtering not supported")
        }
        since = properties["since"].flatMap { RemoteSequence(json: $0) }
        isContinuous = properties["continuous"].map { $0.lowercased() != "false" } ?? false
        batch = min(max(properties.int("batch") ?? 200, 10), 1_000)
        lateActiveOnly = properties.bool(ProtocolExtensions.activeOnly)
        activeOnly = properties.bool("activeOnly")
        sendsReplacements = properties.bool("sendReplacementRevs")
        wantsRevocations = properties.bool("revocations")
        isGateway = properties.bool("client_sgr2")
        extensions = properties[ProtocolExtensions.property]
        if message.body.isEmpty { return }
        guard let body = try? JSONElement(parsing: message.body) else {
            throw ReplyError("HTTP", 400, "Invalid JSON body")
        }
        documentIDs = body["docIDs"].map {
            // Each is here with two quotation marks and a comma.
            ListedIDs(
                $0.items.lazy.compactMap(\.string),
                count: $0.count,
                size: message.body.count - $0.count
            )
        }
    }

    /// The subscriber's place in our own feed. A number that is higher than any sequence can be counts as the highest.
    var position: UInt64 { min(since.flatMap { UInt64($0.text) } ?? 0, UInt64(Int64.max)) }

    var message: Message {
        var message = Message(.subChanges, collection: collection)
        message.properties["since"] = since?.text
        if isContinuous { message.properties["continuous"] = "true" }
        message.properties["batch"] = String(batch)
        if sendsReplacements { message.properties["sendReplacementRevs"] = "true" }
        message.properties["versioning"] = names.versioning
        if activeOnly { message.properties["activeOnly"] = "true" }
        if lateActiveOnly { message.properties[ProtocolExtensions.activeOnly] = "true" }
        if wantsRevocations { message.properties["revocations"] = "true" }
        message.properties[ProtocolExtensions.property] = extensions
        if !channels.isEmpty {
            message.properties["filter"] = Self.gatewayChannels
            message.properties["channels"] = channels.joined(separator: ",")
        }
        if let documentIDs {
            message.body = JSONText(canonical: ["docIDs": .array(documentIDs.ids.map { .string($0) })]).bytes
        }
        return message
    }

    /// The answer, which only names the protocol extensions of its sender.
    struct Answer: Hashable {
        let extensions: String?
        let isUrgent: Bool

        var message: Message {
            var message = Message(isUrgent: isUrgent)
            message.properties[ProtocolExtensions.property] = extensions
            return message
        }
    }
}
