import LoveseatBLIP
import LoveseatModel

/// `getAttachment` (replication.md §11.3).
struct GetAttachmentMessage: Hashable {
    var collection: Int?
    let digest: BlobDigest
    /// Nil if the peer does not say for which document.
    var documentID: String?
    var isCompressed = false
    /// The first byte wanted. Only a Loveseat sends it (docs/extensions.md).
    var offset: UInt64 = 0

    init(_ digest: BlobDigest, collection: Int?) { (self.digest, self.collection) = (digest, collection) }

    /// - Throws: ``ReplyError`` for a message that names no blob.
    init(_ message: Message) throws(ReplyError) {
        digest = try message.digest
        documentID = message.properties["docID"]
        isCompressed = message.properties.bool("compress")
        offset = message.properties[ProtocolExtensions.blobOffset].flatMap { UInt64($0) } ?? 0
    }

    var message: Message {
        var message = Message(.getAttachment, collection: collection)
        message.properties["digest"] = digest.text
        message.properties["docID"] = documentID
        if isCompressed { message.properties["compress"] = "true" }
        if offset > 0 { message.properties[ProtocolExtensions.blobOffset] = String(offset) }
        return message
    }
}

/// `proveAttachment` (replication.md §11.4), which no Loveseat sends.
struct ProveAttachmentMessage: Hashable {
    let digest: BlobDigest
    let nonce: [UInt8]

    /// - Throws: ``ReplyError`` for a message that names no blob, or has no nonce of 1 to 255 bytes.
    init(_ message: Message) throws(ReplyError) {
        digest = try message.digest
        guard (1...255).contains(message.body.count) else {
            throw ReplyError("BLIP", 400, "invalid nonce")
        }
        nonce = message.body
    }
}

extension Message {
    fileprivate var digest: BlobDigest {
        get throws(ReplyError) {
            guard let digest = properties["digest"].flatMap({ BlobDigest($0) }) else {
                throw ReplyError("LiteCore", 9, "invalid blob digest")
            }
            return digest
        }
    }
}
