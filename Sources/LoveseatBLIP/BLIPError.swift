/// An error that ends a connection, mostly because of what the peer did (blip.md §12).
package enum BLIPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A frame that cannot be read.
    case frame(String)
    /// The running checksum does not match: bytes were changed on the way.
    case checksum
    /// Bytes that cannot be inflated, or deflated.
    case compression
    /// A message whose number or contents break the rules.
    case message(String)
    /// More bytes than this side accepts.
    case tooLarge(String)
    /// This side could not store a received body. The peer did nothing wrong.
    case spill(String)

    package var description: String {
        switch self {
        case .frame(let detail): "bad frame: \(detail)"
        case .checksum: "checksum mismatch: the frame was changed on the way"
        case .compression: "the compressed bytes cannot be inflated"
        case .message(let detail): "bad message: \(detail)"
        case .tooLarge(let detail): "too large: \(detail)"
        case .spill(let detail): detail
        }
    }
}
