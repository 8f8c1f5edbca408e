/// The reason why a multipart body cannot be read or written.
package enum MultipartError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The boundary is empty, longer than 200 characters, or has characters that a header cannot carry.
    case invalidBoundary
    /// The body ended without any boundary in it, an empty body included.
    case missingBoundary
    /// The text before the first boundary is longer than the limit.
    case preambleTooLong(limit: Int)
    /// The headers of one part are longer than the limit.
    case headersTooLong(limit: Int)
    /// The body has more parts than the limit.
    case tooManyParts(limit: Int)
    /// A boundary or header line ends with LF instead of CRLF.
    case bareLineFeed
    /// A line in the headers of a part is not a header field.
    case malformedHeader
    /// The body ended inside the headers of a part.
    case truncatedHeaders
    /// A length is negative, or the sum of the lengths does not fit into an `Int`.
    case invalidLength

    package var description: String {
        switch self {
        case .invalidBoundary:
            "the multipart boundary is empty, too long, or has characters that are not allowed"
        case .missingBoundary: "the multipart body does not contain its boundary"
        case .preambleTooLong(let limit):
            "the text before the first multipart boundary exceeds \(limit) bytes"
        case .headersTooLong(let limit): "the headers of a multipart part exceed \(limit) bytes"
        case .tooManyParts(let limit): "the multipart body has more than \(limit) parts"
        case .bareLineFeed: "a line of the multipart body ends with LF instead of CRLF"
        case .malformedHeader: "a multipart part has a malformed header"
        case .truncatedHeaders: "the multipart body ends inside the headers of a part"
        case .invalidLength: "the length of a multipart part is negative or too large"
        }
    }
}
