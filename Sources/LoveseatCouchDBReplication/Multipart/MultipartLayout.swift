/// The pieces of a multipart body in the order of the wire, with its exact length before any data is read.
///
/// `Source` is the caller's name for the data of a part. Send the pieces in order: bytes as they are, content from its
/// source.
package struct MultipartLayout<Source: Hashable & Sendable>: Hashable, Sendable {
    /// A piece of the body.
    package enum Piece: Hashable, Sendable {
        /// Delimiters and headers.
        case bytes([UInt8])
        /// The data of a part.
        case content(Source, length: Int)
    }

    /// The value of the `Content-Type` header that announces the body.
    package let contentType: String
    private var writer: MultipartWriter
    private var partPieces: [Piece] = []
    private var partsLength = 0
    /// The boundaries of this body and of those within it.
    private var boundaries: Set<String>

    /// Creates a body without parts.
    ///
    /// - Throws: ``MultipartError/invalidBoundary``.
    package init(_ kind: MultipartWriter.Kind, boundary: String) throws(MultipartError) {
        writer = try MultipartWriter(boundary: boundary)
        contentType = writer.contentType(kind)
        boundaries = [boundary]
    }

    /// The length of the whole body in bytes, for `Content-Length`.
    package var length: Int { partsLength + writer.end().count }

    /// The pieces of the whole body.
    package var pieces: [Piece] { partPieces + [.bytes(writer.end())] }

    /// Adds a part.
    ///
    /// - Throws: ``MultipartError/invalidLength``. The layout is unchanged then.
    package mutating func append(
        _ headers: PartHeaders,
        _ source: Source,
        length: Int
    ) throws(MultipartError) {
        try append(headers, [.content(source, length: length)], length: length)
    }

    /// Adds an attachment of the document in a multipart/related body.
    ///
    /// Receivers match attachments by order: add them in the order of the keys of `_attachments` that have `follows`.
    ///
    /// - Throws: ``MultipartError/invalidLength``. The layout is unchanged then.
    package mutating func append(
        _ attachment: MultipartAttachment,
        _ source: Source
    ) throws(MultipartError) {
        try append(PartHeaders(attachment), source, length: attachment.length)
    }

    /// Adds a part that is a multipart body itself, with additional headers such as `X-Doc-Id`. The inner boundary must
    /// differ from the outer one.
    ///
    /// - Throws: ``MultipartError/invalidLength``, or ``MultipartError/invalidBoundary`` if the inner delimiters would end
    ///   the outer part. The layout is unchanged then.
    package mutating func append(
        nested inner: MultipartLayout,
        headers: PartHeaders = PartHeaders()
    ) throws(MultipartError) {
        guard !inner.contains(boundary: writer.boundary) else { throw .invalidBoundary }
        try append(
            PartHeaders(nested: inner.contentType, extra: headers),
            inner.pieces,
            length: inner.length
        )
        boundaries.formUnion(inner.boundaries)
    }

    private mutating func append(
        _ headers: PartHeaders,
        _ content: [Piece],
        length: Int
    ) throws(MultipartError) {
        var next = writer
        let opening = next.begin(headers)
        let (sum, overflows) = partsLength.addingReportingOverflow(length)
        let margin = opening.count + MultipartBoundary.maximumLength + 8
        guard length >= 0, !overflows, sum <= Int.max - margin else { throw .invalidLength }
        writer = next
        partsLength = sum + opening.count
        partPieces.append(.bytes(opening))
        partPieces += content
    }

    /// Whether a delimiter in this body, or in one within it, begins like a delimiter of another boundary.
    private func contains(boundary: String) -> Bool {
        boundaries.contains { ($0 + "--").utf8.starts(with: (boundary + "--").utf8) }
    }
}
