package import Foundation
package import LoveseatModel
import LoveseatStorage

/// The blobs of an open database.
package struct DatabaseBlobs: Sendable {
    /// How much of a blob is in memory at a time, in bytes.
    package static let pieceBytes = 256 << 10

    private let files: BlobFiles
    private let databaseName: String

    init(_ files: BlobFiles, databaseName: String) {
        (self.files, self.databaseName) = (files, databaseName)
    }

    // MARK: Saving

    func save(_ content: some Sequence<UInt8>, contentType: String?) throws(LoveseatError) -> BlobReference {
        try Self.check(contentType)
        let writer = try files.writer()
        try writer.write(Array(content))
        return try Self.reference(writer, contentType)
    }

    /// Stores the content of a file, a piece at a time.
    func save(fileURL: URL, contentType: String?) throws(LoveseatError) -> BlobReference {
        try Self.check(contentType)
        let writer = try files.writer()
        let file: FileHandle
        do { file = try FileHandle(forReadingFrom: fileURL) } catch {
            throw LoveseatError(.cantOpenFile, "cannot read \(fileURL.path): \(error.localizedDescription)")
        }
        // The file is only read: nothing is lost if closing fails.
        defer { try? file.close() }
        while true {
            let piece: Data?
            do { piece = try file.read(upToCount: Self.pieceBytes) } catch {
                throw LoveseatError(.ioError, "cannot read \(fileURL.path): \(error.localizedDescription)")
            }
            guard let piece, !piece.isEmpty else { break }
            try writer.write(piece)
        }
        return try Self.reference(writer, contentType)
    }

    func save<S: AsyncSequence>(stream: S, contentType: String?) async throws -> BlobReference
    where S.Element: Sequence<UInt8> {
        try Self.check(contentType)
        let writer = try files.writer()
        for try await piece in stream {
            try Task.checkCancellation()
            try writer.write(Array(piece))
        }
        // A stream that ends because the task is cancelled is not complete.
        try Task.checkCancellation()
        return try Self.reference(writer, contentType)
    }

    /// Begins to store a blob whose digest is known.
    package func receive(_ digest: BlobDigest) throws(LoveseatError) -> BlobReceiver {
        BlobReceiver(digest: digest, writer: try files.writer())
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

    // MARK: Reading

    /// The length of a blob's content, that of a compressed one as its document names it; nil if it is not here.
    func length(_ blob: BlobReference) -> UInt64? {
        let stored = files.length(blob.digest)
        return stored == nil || !blob.isCompressed ? stored : blob.length ?? stored
    }

    func content(_ blob: BlobReference) throws(LoveseatError) -> Data {
        let length = try knownLength(blob)
        guard !blob.isCompressed else { return try inflatedContent(blob, in: 0..<UInt64.max) }
        return Data(try files.read(blob.digest, from: 0, count: Int(length)))
    }

    func content(_ blob: BlobReference, in range: Range<UInt64>) throws(LoveseatError) -> Data {
        let length = try knownLength(blob)
        guard !blob.isCompressed else { return try inflatedContent(blob, in: range) }
        let range = range.clamped(to: 0..<length)
        return Data(try files.read(blob.digest, from: range.lowerBound, count: range.count))
    }

    private func inflatedContent(_ blob: BlobReference, in range: Range<UInt64>) throws(LoveseatError) -> Data
    {
        var reader = try CompressedBlobReader(blob, in: files, pieceBytes: Self.pieceBytes)
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
        guard let length = length(blob) else {
            throw LoveseatError(.notFound, "blob \(blob.digest) is not in database \"\(databaseName)\"")
        }
        return length
    }

    func pieces(_ blob: BlobReference) throws(LoveseatError) -> BlobPieces {
        BlobPieces(
            files: files,
            digest: blob.digest,
            length: try knownLength(blob),
            compressed: blob.isCompressed ? blob : nil
        )
    }

    /// The content of a blob in pieces of a given size; nil if the blob is not here.
    package func pieces(_ digest: BlobDigest, pieceBytes: Int) throws(LoveseatError)
        -> BlobPieces.Iterator?
    {
        guard let length = files.length(digest) else { return nil }
        let pieces = BlobPieces(files: files, digest: digest, length: length, pieceBytes: pieceBytes)
        return pieces.makeAsyncIterator()
    }

    /// Reads a blob, and returns what is wrong with it; nil if its content is that of its digest.
    package func damage(of digest: BlobDigest) throws(LoveseatError) -> String? {
        do throws(LoveseatError) {
            return try files.hash(digest) == digest
                ? nil : "the content of blob \(digest) is damaged: it has another digest"
        } catch {
            return error.code == .notFound
                ? Self.absence(of: digest) : "blob \(digest) cannot be read: \(error.message)"
        }
    }

    static func absence(of digest: BlobDigest) -> String { "blob \(digest) is missing" }
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
