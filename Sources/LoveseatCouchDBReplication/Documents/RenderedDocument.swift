package import LoveseatModel

/// A document as text with places for the content of its attachments.
package struct RenderedDocument: Sendable {
    package enum Piece: Sendable {
        case bytes([UInt8])
        /// The content of a blob in Base64. `inflates`: whether it is stored compressed and sent as it was.
        case base64(BlobDigest, inflates: Bool)
    }

    package let pieces: [Piece]
    /// The attachments whose content follows in parts of its own, in this order.
    package let parts: [StoredAttachment]

    package init(pieces: [Piece] = [], parts: [StoredAttachment] = []) {
        (self.pieces, self.parts) = (pieces, parts)
    }

    /// The text, if it has no places.
    package var bytes: [UInt8] {
        pieces.reduce(into: []) { if case .bytes(let bytes) = $1 { $0 += bytes } }
    }

    package var isPlain: Bool { pieces.allSatisfy { if case .bytes = $0 { true } else { false } } }

    /// The length of the text and of the content in parts, in bytes.
    var length: Int { textLength + parts.reduce(0) { $0 + $1.storedLength } }

    /// The length of the text without the content of blobs, in bytes.
    package var textLength: Int {
        pieces.reduce(0) { if case .bytes(let bytes) = $1 { $0 + bytes.count } else { $0 } }
    }
}
