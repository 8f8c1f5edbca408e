import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatWeb

/// `/api/blobs` and `/api/blob`.
extension InspectorRoutes {
    func blobList(_ request: WebRequest) async throws -> WebReply {
        let offset = try request.number("offset", in: 0...1_000_000_000, default: 0)
        let limit = try request.number("limit", in: 1...200, default: 60)
        let database = database
        let uses = try await blobs.value(version: try await version()) { try BlobUses.all(in: database) }
        let page = uses.uses.dropFirst(offset).prefix(limit)
        return .json([
            "count": JSONValue(uses.uses.count), "offset": JSONValue(offset), "isCut": .bool(uses.isCut),
            "blobs": .array(
                page.map { use in
                    var json = use.blob.inspectorJSON
                    json["references"] = JSONValue(use.count)
                    json["referrers"] = .array(
                        use.referrers.map { [.string($0.collection), .string($0.document)] }
                    )
                    return .object(json)
                }
            ),
        ])
    }

    /// The content of a blob: shown if it is an image, otherwise only downloaded. The browser keeps it.
    func blob(_ request: WebRequest) async throws -> WebReply {
        guard let digest = BlobDigest(try request.required("digest")) else {
            throw LoveseatError(.invalidParameter, "the digest is not valid: it begins with sha1-")
        }
        let blob = BlobReference(digest: digest, length: nil, contentType: nil)
        let database = database
        let (start, length) = try await Reading.run {
            guard let length = try database.blobLength(blob) else {
                throw LoveseatError(.notFound, "blob \(digest) is not in this database")
            }
            let sniffed = min(length, UInt64(ImageType.sniffedBytes))
            return (Array(try database.blobContent(blob, in: 0..<sniffed)), length)
        }
        let type = ImageType(sniffing: start)
        let tag = "\"\(digest.hexadecimalText)\""
        let headers = [
            (name: "Content-Type", value: type?.rawValue ?? "application/octet-stream"),
            (name: "ETag", value: tag),
            (name: "Cache-Control", value: "private, max-age=31536000, immutable"),
            (
                name: "Content-Disposition",
                value: type == nil ? "attachment; filename=\"\(digest.hexadecimalText)\"" : "inline"
            ),
            (name: "Content-Security-Policy", value: "sandbox; default-src 'none'"),
        ]
        if request.header("If-None-Match") == tag { return WebReply(.notModified, headers, .bytes([])) }
        return WebReply(
            .ok,
            headers,
            .stream(length: Int(clamping: length)) { writer in
                for start in stride(from: 0, to: length, by: Int(Self.pieceBytes)) {
                    let range = start..<min(start + Self.pieceBytes, length)
                    let piece = try await Reading.run { try database.blobContent(blob, in: range) }
                    try await writer.write(piece)
                }
            }
        )
    }

    private static let pieceBytes: UInt64 = 256 << 10
}
