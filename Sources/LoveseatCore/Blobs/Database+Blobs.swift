public import Foundation
public import LoveseatModel
import LoveseatStorage

/// Blobs: content that is kept beside documents, which refer to it by a ``BlobReference``.
///
/// ```swift
/// document["photo"] = try database.saveBlob(jpeg, contentType: "image/jpeg").json
/// ```
///
/// Content that no document refers to is removed by ``MaintenanceType/compact``.
extension Database {
    /// How much of a blob is in memory at a time, in bytes.
    package static let blobPiece = 256 << 10

    /// Stores content as a blob. It is on the disk when this returns.
    ///
    /// Equal contents are stored once. This call blocks the thread while it writes, and does not take part in a transaction.
    ///
    /// - Parameters:
    ///   - content: The bytes, such as a `Data` or `[UInt8]`.
    ///   - contentType: The media type, such as `image/jpeg`, which the reference carries.
    /// - Returns: The reference to put into a document.
    /// - Throws: ``LoveseatError``: `invalidParameter` for a media type of more than 256 bytes, `notOpen`, `notWriteable`, an error of the
    ///   disk.
    public func saveBlob(_ content: some Sequence<UInt8>, contentType: String? = nil) throws(LoveseatError)
        -> BlobReference
    {
        try Self.check(contentType)
        let writer = try store.blobs.writer()
        try writer.write(Array(content))
        return try Self.reference(writer, contentType)
    }

    /// Stores the content of a file as a blob, a piece at a time. It is on the disk when this returns.
    ///
    /// This call blocks the thread while it reads and writes.
    ///
    /// - Parameters:
    ///   - fileURL: The file to read.
    ///   - contentType: The media type, such as `video/mp4`, which the reference carries.
    /// - Returns: The reference to put into a document.
    /// - Throws: ``LoveseatError``: `cantOpenFile` or `ioError` if the file cannot be read; `invalidParameter` for a media type of more than 256
    ///   bytes; `notOpen`, `notWriteable`, an error of the disk.
    public func saveBlob(fileURL: URL, contentType: String? = nil) throws(LoveseatError) -> BlobReference {
        try Self.check(contentType)
        let writer = try store.blobs.writer()
        let file: FileHandle
        do { file = try FileHandle(forReadingFrom: fileURL) } catch {
            throw LoveseatError(.cantOpenFile, "cannot read \(fileURL.path): \(error.localizedDescription)")
        }
        // The file is only read: nothing is lost if closing fails.
        defer { try? file.close() }
        while true {
            let piece: Data?
            do { piece = try file.read(upToCount: Self.blobPiece) } catch {
                throw LoveseatError(.ioError, "cannot read \(fileURL.path): \(error.localizedDescription)")
            }
            guard let piece, !piece.isEmpty else { break }
            try writer.write(piece)
        }
        return try Self.reference(writer, contentType)
    }

    /// Stores content that arrives in pieces as a blob. It is on the disk when this returns.
    ///
    /// If the sequence throws or the task is cancelled, nothing is stored.
    ///
    /// - Parameters:
    ///   - stream: The pieces, in order.
    ///   - contentType: The media type, which the reference carries.
    /// - Returns: The reference to put into a document.
    /// - Throws: The error that the sequence throws; `CancellationError`; ``LoveseatError``: `invalidParameter` for a media type of
    ///   more than 256 bytes, `notOpen`, `notWriteable`, an error of the disk.
    public func saveBlob<S: AsyncSequence>(stream: S, contentType: String? = nil) async throws
        -> BlobReference
    where S.Element: Sequence<UInt8> {
        try Self.check(contentType)
        let writer = try store.blobs.writer()
        for try await piece in stream {
            try Task.checkCancellation()
            try writer.write(Array(piece))
        }
        // A stream that ends because the task is cancelled is not complete.
        try Task.checkCancellation()
        return try Self.reference(writer, contentType)
    }

    /// - Throws: `invalidParameter` for a media type that clients of listeners could not read.
    private static func check(_ contentType: String?) throws(LoveseatError) {
        guard contentType?.utf8.count ?? 0 <= BlobReference.maximumContentType else {
            throw LoveseatError(
                .invalidParameter,
                "the media type of the blob is longer than \(BlobReference.maximumContentType) bytes"
            )
        }
    }

    private static func reference(_ writer: BlobWriter, _ contentType: String?) throws(LoveseatError)
        -> BlobReference
    {
        let (digest, length) = try writer.finish()
        return BlobReference(digest: digest, length: length, contentType: contentType)
    }

    /// Returns the length of a blob's content in bytes, or nil if the blob is not in this database.
    ///
    /// An attachment that a CouchDB compressed counts with the length that its document names, which is that of the content.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; an error of the disk.
    public func blobLength(_ blob: BlobReference) throws(LoveseatError) -> UInt64? {
        let stored = try store.blobs.length(blob.digest)
        return stored == nil || !blob.isCompressed ? stored : blob.length ?? stored
    }

    /// Returns the whole content of a blob. For large blobs, use ``blobPieces(_:)``.
    ///
    /// An attachment that a CouchDB compressed is inflated. This call blocks the thread while it reads.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `corruptData` if compressed content is damaged, or
    ///   longer than its document says; `notOpen`; an error of the disk.
    public func blobContent(_ blob: BlobReference) throws(LoveseatError) -> Data {
        let files = try store.blobs
        let length = try knownLength(blob)
        guard !blob.isCompressed else { return try inflatedContent(blob, in: 0..<UInt64.max) }
        return Data(try files.read(blob.digest, from: 0, count: Int(length)))
    }

    /// Returns some bytes of a blob, and fewer than asked for if the range extends beyond its end.
    ///
    /// An attachment that a CouchDB compressed is inflated from its beginning for that.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `corruptData` if compressed content is damaged;
    ///   `notOpen`; an error of the disk.
    public func blobContent(_ blob: BlobReference, in range: Range<UInt64>) throws(LoveseatError) -> Data {
        let length = try knownLength(blob)
        guard !blob.isCompressed else { return try inflatedContent(blob, in: range) }
        let range = range.clamped(to: 0..<length)
        return Data(try store.blobs.read(blob.digest, from: range.lowerBound, count: range.count))
    }

    private func inflatedContent(_ blob: BlobReference, in range: Range<UInt64>) throws(LoveseatError) -> Data
    {
        var reader = try CompressedBlobReader(blob, in: try store.blobs, pieceBytes: Self.blobPiece)
        var content = Data()
        var offset: UInt64 = 0
        while offset < range.upperBound, let piece = try reader.next() {
            let end = offset + UInt64(piece.count)
            let wanted = range.clamped(to: offset..<end)
            if !wanted.isEmpty {
                content.append(
                    contentsOf: piece[Int(wanted.lowerBound - offset)..<Int(wanted.upperBound - offset)]
                )
            }
            offset = end
        }
        return content
    }

    private func knownLength(_ blob: BlobReference) throws(LoveseatError) -> UInt64 {
        guard let length = try blobLength(blob) else {
            throw LoveseatError(.notFound, "blob \(blob.digest) is not in database \"\(name)\"")
        }
        return length
    }

    /// Returns the content of a blob as a sequence of pieces of up to 256 kB. An attachment that a CouchDB compressed is inflated.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `notOpen`.
    public func blobPieces(_ blob: BlobReference) throws(LoveseatError) -> BlobPieces {
        BlobPieces(
            files: try store.blobs,
            digest: blob.digest,
            length: try knownLength(blob),
            compressed: blob.isCompressed ? blob : nil
        )
    }

    /// The content of a blob in pieces of a given size; nil if the blob is not here.
    package func blobPieces(_ digest: BlobDigest, pieceBytes: Int) throws(LoveseatError)
        -> BlobPieces.Iterator?
    {
        let files = try store.blobs
        guard let length = files.length(digest) else { return nil }
        let pieces = BlobPieces(files: files, digest: digest, length: length, pieceBytes: pieceBytes)
        return pieces.makeAsyncIterator()
    }

    /// Reads a blob, and returns what is wrong with it; nil if its content is that of its digest.
    ///
    /// - Throws: `notOpen`.
    package func damage(of digest: BlobDigest) throws(LoveseatError) -> String? {
        let files = try store.blobs
        do throws(LoveseatError) {
            return try files.hash(digest) == digest
                ? nil : "the content of blob \(digest) is damaged: it has another digest"
        } catch {
            return error.code == .notFound
                ? Self.absence(of: digest) : "blob \(digest) cannot be read: \(error.message)"
        }
    }

    static func absence(of digest: BlobDigest) -> String { "blob \(digest) is missing" }

    /// Begins to store a blob whose digest is known.
    package func receiveBlob(_ digest: BlobDigest) throws(LoveseatError) -> BlobReceiver {
        BlobReceiver(digest: digest, writer: try store.blobs.writer())
    }
}

/// A blob that arrives in pieces, and must have the digest with which it was announced.
package struct BlobReceiver {
    package let digest: BlobDigest
    private let writer: BlobWriter

    init(digest: BlobDigest, writer: BlobWriter) {
        self.digest = digest
        self.writer = writer
    }

    package func write(_ piece: Data) throws(LoveseatError) { try writer.write(piece) }

    /// Puts the blob in its place.
    ///
    /// - Throws: `corruptData` if the content has another digest.
    package func finish() throws(LoveseatError) { _ = try writer.finish(expected: digest) }
}

extension Document {
    /// The blobs that the document refers to, those of its `_attachments` included.
    package var blobDigests: [BlobDigest] { BlobReference.all(in: json).map(\.digest) }
}

/// The content of a blob as a sequence of pieces. It can be iterated several times.
public struct BlobPieces: AsyncSequence, Sendable {
    /// A piece of up to 256 kB.
    public typealias Element = Data
    /// Reading throws ``LoveseatError``.
    public typealias Failure = LoveseatError
    let files: BlobFiles
    let digest: BlobDigest
    let length: UInt64
    var pieceBytes = Database.blobPiece
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
