package import LoveseatBLIP

/// The requests of the protocol, as the property `Profile` names them (replication.md §2.3).
package enum Profile: String, Sendable {
    case getCollections
    case getCheckpoint
    case setCheckpoint
    case subChanges
    case unsubChanges
    case changes
    case proposeChanges
    case revision = "rev"
    case noRevision = "norev"
    case getAttachment
    case proveAttachment
}

extension Message {
    private static let collectionProperty = "collection"

    /// Which request it is; nil for one that this build does not know.
    package var kind: Profile? {
        let name = profile
        // Most messages are of this kind, and comparing with all names takes its time.
        return name == Profile.revision.rawValue ? .revision : Profile(rawValue: name)
    }

    /// A request about a collection, which is named by its position in `getCollections`; nil for the only one of `CBMobile_2`.
    init(
        _ profile: Profile,
        collection: Int? = nil,
        body: [UInt8] = [],
        isUrgent: Bool = false,
        noReply: Bool = false
    ) {
        var properties: MessageProperties = ["Profile": profile.rawValue]
        properties[Self.collectionProperty] = collection.map(String.init)
        self.init(properties, body: body, isUrgent: isUrgent, noReply: noReply)
    }

    /// The text of the property that names a collection; nil if there is none.
    var collectionText: String? { properties[Self.collectionProperty] }

    /// The same message, compressed on its way if its body has at least so many bytes.
    func compressed(from threshold: Int) -> Message {
        var message = self
        message.isCompressed = body.count >= threshold
        return message
    }

    /// An empty answer, which only says that a request was received.
    static func acknowledgement(of request: Message) -> Message { Message(isUrgent: request.isUrgent) }
}
