import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Answers in parts.
enum MultipartReply {
    /// The content of a part.
    enum Source: Hashable, Sendable {
        case text([UInt8])
        case blob(BlobDigest)
    }

    typealias Layout = MultipartLayout<Source>

    private static func boundary() -> String {
        var generator = SystemRandomNumberGenerator()
        return MultipartBoundary.random(using: &generator)
    }

    /// A document, and its attachments.
    static func related(_ document: RenderedDocument) throws -> Layout {
        var layout = try Layout(.related, boundary: boundary())
        let text = document.bytes
        try layout.append(.json, .text(text), length: text.count)
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

    /// Several revisions (protocol/couchdb.md §6.4).
    static func mixed(_ items: [Result<RenderedDocument, MissingRevision>]) throws -> Layout {
        var layout = try Layout(.mixed, boundary: boundary())
        for item in items {
            switch item {
            case .failure(let missing):
                let text = missing.json.bytes
                try layout.append(.jsonError, .text(text), length: text.count)
            case .success(let document): try append(document, PartHeaders(), to: &layout)
            }
        }
        return layout
    }

    /// Adds a document, in parts of its own if it has attachments.
    static func append(_ document: RenderedDocument, _ headers: PartHeaders, to layout: inout Layout) throws {
        guard document.parts.isEmpty else {
            return try layout.append(nested: try related(document), headers: headers)
        }
        let text = document.bytes
        var headers = headers
        try headers.append("Content-Type", "application/json")
        try layout.append(headers, .text(text), length: text.count)
    }

    static func reply(_ layout: Layout, blobs: BlobFiles) -> Reply {
        let stream = ContentStream(blobs: blobs)
        return .stream(type: layout.contentType, length: layout.length) { writer in
            for piece in layout.pieces {
                switch piece {
                case .bytes(let bytes): try await writer.write(bytes)
                case .content(.text(let bytes), _): try await writer.write(bytes)
                case .content(.blob(let digest), let length):
                    try await stream.write(digest, range: 0..<length, to: &writer)
                }
            }
        }
    }
}
