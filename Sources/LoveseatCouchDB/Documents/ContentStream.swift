import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import NIOCore

/// Sends stored content piece by piece.
struct ContentStream: Sendable {
    let blobs: BlobFiles
    private static let pieceSize = PacedWriter.maximumBytes

    func write(_ document: RenderedDocument, to writer: inout any ResponseBodyWriter) async throws {
        for piece in document.pieces {
            switch piece {
            case .bytes(let bytes): try await writer.write(bytes)
            case .base64(let digest, let inflates): try await writeBase64(digest, inflates, to: &writer)
            }
        }
    }

    /// Adds a document to text that is written later, or writes both if it has contents to read.
    func add(
        _ document: RenderedDocument,
        to text: inout [UInt8],
        _ writer: inout any ResponseBodyWriter
    ) async throws {
        if document.isPlain {
            text += document.bytes
        } else {
            try await writer.write(text)
            text = []
            try await write(document, to: &writer)
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
        var reader = try BlobReader(digest, inflates: true, blobs)
        while let piece = try reader.next() { if !piece.isEmpty { try await writer.write(piece) } }
    }

    private func writeBase64(_ digest: BlobDigest, _ inflates: Bool, to writer: inout any ResponseBodyWriter)
        async throws
    {
        var reader = try Base64Reader(digest, inflates: inflates, blobs)
        while let digits = try reader.next() { if !digits.isEmpty { try await writer.write(digits) } }
    }
}
