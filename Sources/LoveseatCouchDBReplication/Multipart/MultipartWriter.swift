/// Renders the delimiters and headers of a multipart body. The data of the parts goes between them.
///
/// ```
/// begin(headers) data begin(headers) data … end()
/// ```
package struct MultipartWriter: Hashable, Sendable {
    /// The kind of a multipart body.
    package enum Kind: String, Hashable, Sendable {
        /// Independent parts, such as the revisions of a document.
        case mixed
        /// A document and its attachments.
        case related
    }

    /// The boundary between the parts.
    package let boundary: String
    private var isFirst = true

    /// Creates a writer for one body.
    ///
    /// - Throws: ``MultipartError/invalidBoundary``.
    package init(boundary: String) throws(MultipartError) {
        guard MultipartBoundary.isValid(boundary) else { throw .invalidBoundary }
        self.boundary = boundary
    }

    /// The value of the `Content-Type` header that announces the body.
    package func contentType(_ kind: Kind) -> String {
        "multipart/\(kind.rawValue); boundary=\(HeaderText.quoted(boundary))"
    }

    /// Returns the bytes before the data of the next part: the delimiter, the headers, and an empty line.
    package mutating func begin(_ headers: PartHeaders) -> [UInt8] {
        let bytes = delimiter + [0x0D, 0x0A] + headers.rendered + [0x0D, 0x0A]
        isFirst = false
        return bytes
    }

    /// Returns the closing delimiter. A body without parts consists of it alone.
    package func end() -> [UInt8] { delimiter + [0x2D, 0x2D] }

    private var delimiter: [UInt8] {
        (isFirst ? [] : [0x0D, 0x0A]) + [0x2D, 0x2D] + Array(boundary.utf8)
    }
}
