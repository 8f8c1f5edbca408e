import Loveseat

/// What a sender sends in one run: `batch:<16 hexadecimal digits>`. It is pushed first, and once more when everything is stored.
package struct BatchDocument: Hashable, Sendable {
    package static let prefix = "batch:"
    private static let maximumName = 64

    package let id: String
    package let sender: SenderID
    /// The name that the sender gives itself. Nothing proves it.
    package let senderName: String?
    package let photos: [String]
    package let count: Int
    package let bytes: UInt64
    package var isDone = false

    /// `photos`: the IDs; empty if there are too many for one document.
    package init(
        random: [UInt8],
        sender: SenderID,
        senderName: String?,
        photos: [String],
        count: Int,
        bytes: UInt64
    ) {
        id = Self.prefix + TextCoding.hexadecimal(random)
        self.sender = sender
        self.senderName = senderName.map { String($0.prefix(Self.maximumName)) }
        self.photos = photos
        self.count = count
        self.bytes = bytes
    }

    /// Reads a received document; nil if it is not a batch.
    package init?(_ document: Document) {
        guard document.id.hasPrefix(Self.prefix), document["type"]?.string == "batch",
            let sender = document["sender"]?.string.flatMap({ SenderID($0) })
        else { return nil }
        id = document.id
        self.sender = sender
        senderName = document["senderName"]?.string.map { Self.cleaned($0) }
        photos = document["photos"]?.array?.compactMap(\.string) ?? []
        count = max(0, document["count"]?.int ?? 0)
        bytes = UInt64(clamping: document["bytes"]?.int ?? 0)
        isDone = document["done"]?.bool ?? false
    }

    private static func cleaned(_ name: String) -> String {
        let scalars = name.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: false
            default: true
            }
        }
        return String(String(String.UnicodeScalarView(scalars)).prefix(maximumName))
    }

    package var document: Document {
        var properties: JSONObject = [
            "type": "batch",
            "sender": .string(sender.text),
            "count": JSONValue(count),
            "bytes": JSONValue(bytes),
            "photos": .array(photos.map { .string($0) }),
        ]
        if let senderName { properties["senderName"] = .string(senderName) }
        if isDone { properties["done"] = true }
        return Document(id: id, properties)
    }
}
