import Loveseat

/// A photo as a document: `photo:<sha1>:<sender>`.
///
/// Its ID and its body depend on the file, with its name and date, and the sender only. Sending a file again makes the same revision, which the receiver has already.
/// If only one of two runs makes a thumbnail, the revisions differ and the ID does not: the receiver still saves the photo once.
package struct PhotoDocument: Hashable, Sendable {
    package static let prefix = "photo:"
    /// The property of the blob.
    package static let blobKey = "photo"
    package static let thumbnailKey = "thumb"

    package let sender: SenderID
    package let name: String
    package let photo: BlobReference
    package let info: ImageInfo
    /// A JPEG of at most ``ReceivedPhoto/maximumThumbnail`` bytes; nil if the receiver has to make its own.
    package var thumbnail: BlobReference?
    /// When the file was changed last, as `2026-11-21T10:00:00Z`: for files that do not say when they were taken.
    package var modified: String?

    package init(sender: SenderID, name: String, photo: BlobReference, info: ImageInfo) {
        self.sender = sender
        self.name = name
        self.photo = photo
        self.info = info
    }

    package var id: String { "\(Self.prefix)\(photo.digest.hexadecimal):\(sender.text)" }

    package var size: UInt64 { photo.length ?? 0 }

    package var document: Document {
        var properties: JSONObject = [
            "type": "photo",
            "name": .string(name),
            "size": JSONValue(size),
            "sender": .string(sender.text),
            Self.blobKey: photo.json,
        ]
        if let width = info.width, let height = info.height {
            properties["width"] = JSONValue(width)
            properties["height"] = JSONValue(height)
        }
        if let taken = info.taken { properties["taken"] = .string(taken) }
        if let modified { properties["modified"] = .string(modified) }
        if let thumbnail { properties[Self.thumbnailKey] = thumbnail.json }
        return Document(id: id, properties)
    }
}

/// The ID of a run of `photodrop send`: 16 hexadecimal digits.
package struct SenderID: Hashable, Sendable {
    package static let byteCount = 8

    package let text: String

    /// Creates an ID from random bytes.
    package init(bytes: [UInt8]) { text = TextCoding.hexadecimal(bytes) }

    /// Reads 16 hexadecimal digits; nil for anything else.
    package init?(_ text: String) {
        guard let bytes = TextCoding.bytes(hexadecimal: text), bytes.count == Self.byteCount else {
            return nil
        }
        self.text = TextCoding.hexadecimal(bytes)
    }

    /// The sender in the ID of a document of its own; nil for documents of other programs.
    package init?(documentID: String) {
        guard documentID.hasPrefix(PhotoDocument.prefix), let last = documentID.split(separator: ":").last
        else {
            return nil
        }
        self.init(String(last))
    }
}

extension BlobDigest {
    /// The SHA-1 as 40 hexadecimal digits.
    package var hexadecimal: String {
        TextCoding.hexadecimal(TextCoding.bytes(base64: text.dropFirst("sha1-".count)) ?? [])
    }
}
