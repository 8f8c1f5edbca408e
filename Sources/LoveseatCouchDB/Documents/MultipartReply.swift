import HummingbirdCore
import LoveseatAssertions
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Answers in parts.
enum MultipartReply {
    /// The content of a part.
    enum Source: Hashable, Sendable {
        case text([UInt8])
        /// The text of a document that is made when it is sent, by its number.
        case later(Int)
        case blob(BlobDigest)
    }

    typealias Layout = MultipartLayout<Source>

    private static func boundary() -> String {
        var generator = SystemRandomNumberGenerator()
        return MultipartBoundary.random(using: &generator)
    }

    static func mixed() throws -> Layout { try Layout(.mixed, boundary: boundary()) }

    /// A document, and its attachments. `number`: if its text is made when it is sent.
    static func related(_ document: RenderedDocument, later number: Int? = nil) throws -> Layout {
        var layout = try Layout(.related, boundary: boundary())
        let text = document.bytes
        try layout.append(.json, number.map { .later($0) } ?? .text(text), length: text.count)
        for part in document.parts {
            try layout.append(
                MultipartAttachment(
                    name: part.name,
                    contentType: part.contentType,
                    length: part.storedLength,
                    encoding: part.encoding
                ),
                .blob(part.digest)
            )
        }
        return layout
    }

    /// Adds a revision that is not there (protocol/couchdb.md §6.4).
    static func append(_ missing: MissingRevision, to layout: inout Layout) throws {
        let text = missing.json.bytes
        try layout.append(.jsonError, .text(text), length: text.count)
    }

    /// Adds a document, in parts of its own if it has attachments. `number`: if its text is made when it is sent.
    static func append(
        _ document: RenderedDocument,
        _ headers: PartHeaders = PartHeaders(),
        later number: Int? = nil,
        to layout: inout Layout
    ) throws {
        guard document.parts.isEmpty else {
            return try layout.append(nested: try related(document, later: number), headers: headers)
        }
        let text = document.bytes
        var headers = headers
        try headers.append("Content-Type", "application/json")
        try layout.append(headers, number.map { .later($0) } ?? .text(text), length: text.count)
    }

    /// `text`: makes a text that was left for later.
    static func reply(
        _ layout: Layout,
        blobs: BlobFiles,
        text: @escaping @Sendable (Int) async throws -> [UInt8] = { number in
            impossible("text \(number) of an answer was not left for later")
            return []
        }
    ) -> Reply {
        let stream = ContentStream(blobs: blobs)
        return .stream(type: layout.contentType, length: layout.length) { writer in
            for piece in layout.pieces {
                switch piece {
                case .bytes(let bytes): try await writer.write(bytes)
                case .content(.text(let bytes), _): try await writer.write(bytes)
                case .content(.later(let number), let length):
                    let bytes = try await text(number)
                    // Its length stands in the headers already.
                    guard bytes.count == length else {
                        throw CouchDBError(500, "changed", "the document changed")
                    }
                    try await writer.write(bytes)
                case .content(.blob(let digest), let length):
                    try await stream.write(digest, range: 0..<length, to: &writer)
                }
            }
        }
    }
}
