import Foundation
import Loveseat
import LoveseatWeb
import PhotoDropCore

/// Replies with the bytes of a photo, or of a part of it.
package enum PhotoResponse {
    /// The content of a blob, whole or the range that the browser asks for. Not an image: not found.
    package static func reply(
        _ request: WebRequest,
        _ blob: BlobReference,
        name: String,
        in database: Database
    ) throws -> WebReply {
        let start = try database.blobContent(blob, in: 0..<UInt64(ImageType.sniffedBytes))
        guard let type = ImageType(sniffing: start), let length = try database.blobLength(blob) else {
            return .notFound
        }
        let tag = "\"\(blob.digest.hexadecimal)\""
        var headers = [
            (name: "Content-Type", value: type.mediaType), (name: "ETag", value: tag),
            (name: "Cache-Control", value: "private, max-age=31536000, immutable"),
            (name: "Accept-Ranges", value: "bytes"),
            (name: "Content-Disposition", value: "inline; filename*=UTF-8''\(encoded(name))"),
            (name: "Content-Security-Policy", value: "sandbox; default-src 'none'"),
        ]
        if request.header("If-None-Match") == tag { return WebReply(.notModified, headers, .bytes([])) }
        var range = 0..<length
        var status = WebReply.Status.ok
        if let wanted = request.header("Range").flatMap({ self.range($0, length: length) }) {
            guard !wanted.isEmpty else {
                headers.append((name: "Content-Range", value: "bytes */\(length)"))
                return WebReply(.rangeNotSatisfiable, headers, .bytes([]))
            }
            (range, status) = (wanted, .partialContent)
            let shown = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
            headers.append((name: "Content-Range", value: shown))
        }
        return WebReply(
            status,
            headers,
            .stream(length: range.count) { [range] writer in
                for start in stride(from: range.lowerBound, to: range.upperBound, by: Int(pieceBytes)) {
                    let piece = start..<min(start + UInt64(pieceBytes), range.upperBound)
                    try await writer.write(try database.blobContent(blob, in: piece))
                }
            }
        )
    }

    private static let pieceBytes = 256 << 10

    /// The first range of a header; empty if it cannot be satisfied, nil if it is not understood.
    package static func range(_ header: String, length: UInt64) -> Range<UInt64>? {
        guard header.hasPrefix("bytes="), !header.contains(",") else { return nil }
        let bounds = header.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return nil }
        if bounds[0].isEmpty {
            guard let last = UInt64(bounds[1]) else { return nil }
            return length - min(last, length)..<length
        }
        guard let first = UInt64(bounds[0]) else { return nil }
        guard first < length else { return 0..<0 }
        guard !bounds[1].isEmpty else { return first..<length }
        guard let last = UInt64(bounds[1]), last >= first else { return nil }
        return first..<min(last, length - 1) + 1
    }

    private static func encoded(_ name: String) -> String {
        let allowed = CharacterSet(
            charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
        )
        return name.addingPercentEncoding(withAllowedCharacters: allowed) ?? "photo"
    }
}
