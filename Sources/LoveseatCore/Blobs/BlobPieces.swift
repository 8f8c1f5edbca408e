public import Foundation
public import LoveseatModel
import LoveseatStorage

/// The content of a blob as a sequence of pieces. It can be iterated several times.
public struct BlobPieces: AsyncSequence, Sendable {
    /// A piece of up to 256 kB.
    public typealias Element = Data
    /// Reading throws ``LoveseatError``.
    public typealias Failure = LoveseatError
    let files: BlobFiles
    let digest: BlobDigest
    let length: UInt64
    var pieceBytes = DatabaseBlobs.pieceBytes
    /// The reference, if the content is stored compressed.
    var compressed: BlobReference?

    /// Returns an iterator that starts at the first byte.
    public func makeAsyncIterator() -> Iterator { Iterator(pieces: self) }

    /// Reads a blob's pieces, on the thread that asks for them.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pieces: BlobPieces
        fileprivate var offset: UInt64 = 0
        private var inflating: CompressedBlobReader?
        /// Bytes that were inflated and not returned yet.
        private var left: ArraySlice<UInt8> = []

        fileprivate init(pieces: BlobPieces) { self.pieces = pieces }

        /// Reads the next piece, or returns nil at the end.
        ///
        /// - Throws: ``LoveseatError``: `corruptData` if the file is shorter than it was, `ioError` if it cannot be read.
        public mutating func next() async throws(LoveseatError) -> Data? { try read() }

        /// Reads the next piece, or returns nil at the end.
        ///
        /// - Throws: ``LoveseatError``: `corruptData` if the file is shorter than it was, `ioError` if it cannot be read.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(LoveseatError) -> Data?
        {
            try read()
        }

        package var isAtEnd: Bool { offset >= pieces.length }

        package mutating func read() throws(LoveseatError) -> Data? {
            if let blob = pieces.compressed { return try inflate(blob) }
            guard offset < pieces.length else { return nil }
            let bytes = try pieces.files.read(pieces.digest, from: offset, count: pieces.pieceBytes)
            guard !bytes.isEmpty else {
                throw LoveseatError(.corruptData, "blob \(pieces.digest) is shorter than it was")
            }
            offset += UInt64(bytes.count)
            return Data(bytes)
        }

        private mutating func inflate(_ blob: BlobReference) throws(LoveseatError) -> Data? {
            if left.isEmpty {
                // The operator ?? would lose the type of the error.
                var reader: CompressedBlobReader
                if let inflating {
                    reader = inflating
                } else {
                    reader = try CompressedBlobReader(blob, in: pieces.files, pieceBytes: pieces.pieceBytes)
                }
                left = try reader.next()?[...] ?? []
                inflating = reader
            }
            let piece = left.prefix(pieces.pieceBytes)
            left = left.dropFirst(piece.count)
            return piece.isEmpty ? nil : Data(piece)
        }
    }
}
