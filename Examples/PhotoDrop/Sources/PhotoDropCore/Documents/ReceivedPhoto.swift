import Loveseat

/// A photo as it was received. It need not come from PhotoDrop: any document with a blob may be one.
package struct ReceivedPhoto: Hashable, Sendable {
    package static let maximumThumbnail: UInt64 = 64 << 10

    package let id: String
    /// The name that the sender proposes. Clean it before use.
    package let name: String
    package let sender: SenderID?
    package let blob: BlobReference
    /// Whether the blob's digest is that of its compressed form.
    package let isCompressed: Bool
    package let thumbnail: BlobReference?
    package let width: Int?
    package let height: Int?
    package let taken: String?
    /// When the sender's file was changed last.
    package let modified: String?

    /// Reads a received document; nil if it has no blob. The first bytes of the blob show whether it is an image.
    package init?(_ document: Document) {
        id = document.id
        let blobs = Self.blobs(of: document)
        guard
            let main = blobs.first(where: { $0.key == PhotoDocument.blobKey })
                ?? blobs.first(where: { $0.blob.contentType?.hasPrefix("image/") ?? false }) ?? blobs.first
        else { return nil }
        blob = main.blob
        isCompressed = document["_attachments"]?[main.key]?["encoding"]?.string == "gzip"
        thumbnail = document.blob(PhotoDocument.thumbnailKey).flatMap {
            $0.length ?? .max <= Self.maximumThumbnail && $0.digest != main.blob.digest ? $0 : nil
        }
        let named = document["name"]?.string ?? document["filename"]?.string
        let own = document.id.hasPrefix(PhotoDocument.prefix) ? "photo" : document.id
        name = named ?? (main.key == PhotoDocument.blobKey ? own : main.key)
        sender = document["sender"]?.string.flatMap { SenderID($0) } ?? SenderID(documentID: document.id)
        width = document["width"]?.int
        height = document["height"]?.int
        taken = document["taken"]?.string
        modified = document["modified"]?.string
    }

    /// The type that the sender says; nil for others than those that are known.
    package var type: ImageType? { ImageType.allCases.first { $0.mediaType == blob.contentType } }

    /// The blobs of a document's own properties and of its table of attachments, with their keys.
    package static func blobs(of document: Document) -> [(key: String, blob: BlobReference)] {
        var found: [(key: String, blob: BlobReference)] = []
        for (key, value) in document.properties.sorted(by: { $0.key < $1.key }) {
            if let blob = BlobReference(value) { found.append((key, blob)) }
        }
        let table = document["_attachments"]?.object ?? [:]
        for (key, value) in table.sorted(by: { $0.key < $1.key }) {
            var stub = value
            stub["@type"] = "blob"
            if let blob = BlobReference(stub) { found.append((key, blob)) }
        }
        return found
    }
}
