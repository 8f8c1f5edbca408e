import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import NIOCore

/// Sends stored content piece by piece.
struct ContentStream: Sendable {
    let blobs: BlobFiles
    private static let pieceSize = 256 << 10

    func write(_ document: RenderedDocument, to writer: inout any ResponseBodyWriter) async throws {
        for piece in document.pieces {
            switch piece {
            case .bytes(let bytes): try await writer.write(bytes)
            case .base64(let digest, let inflates): try await writeBase64(digest, inflates, to: &writer)
            }
        }
    }

    /// Writes stored bytes, or a range of them.
    func write(_ digest: BlobDigest, range: Range<Int>, to writer: inout any ResponseBodyWriter) async throws
    {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let piece = try blobs.read(
                digest,
                from: UInt64(offset),
                count: min(Self.pieceSize, range.upperBound - offset)
            )
            // The announced length cannot be kept: the answer is cut.
            guard !piece.isEmpty else {
                throw LoveseatError(.corruptData, "blob \(digest) is shorter than it was: run `check`")
            }
            try await writer.write(piece)
            offset += piece.count
        }
    }

    /// Writes stored bytes as they were before they were compressed.
    func writeInflated(_ digest: BlobDigest, to writer: inout any ResponseBodyWriter) async throws {
        let inflater = try GzipInflater()
        var offset: UInt64 = 0
        while let pieces = try inflated(digest, &offset, inflater) {
            for piece in pieces { try await writer.write(piece) }
        }
    }

    private func inflated(_ digest: BlobDigest, _ offset: inout UInt64, _ inflater: GzipInflater) throws
        -> [[UInt8]]?
    {
        guard !inflater.isEnded else { return nil }
        // A small piece may become a thousand times as large.
        let piece = try blobs.read(digest, from: offset, count: 4 << 10)
        guard !piece.isEmpty else { return nil }
        offset += UInt64(piece.count)
        var output: [[UInt8]] = []
        try piece.withUnsafeBytes { bytes in try inflater.inflate(bytes) { output.append(Array($0)) } }
        return output
    }

    private func writeBase64(_ digest: BlobDigest, _ inflates: Bool, to writer: inout any ResponseBodyWriter)
        async throws
    {
        var left: [UInt8] = []
        var offset: UInt64 = 0
        let inflater = inflates ? try GzipInflater() : nil
        while true {
            let pieces: [[UInt8]]
            if let inflater {
                guard let inflated = try inflated(digest, &offset, inflater) else { break }
                pieces = inflated
            } else {
                let piece = try blobs.read(digest, from: offset, count: Self.pieceSize)
                guard !piece.isEmpty else { break }
                offset += UInt64(piece.count)
                pieces = [piece]
            }
            for piece in pieces {
                left += piece
                let whole = left.count - left.count % 3
                try await writer.write(BulkBase64.encode(left[..<whole]))
                left.removeFirst(whole)
            }
        }
        if !left.isEmpty { try await writer.write(BulkBase64.encode(left)) }
    }
}
