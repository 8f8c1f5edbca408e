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
    package var blobs: DatabaseBlobs {
        get throws(LoveseatError) { DatabaseBlobs(try store.blobs, databaseName: name) }
    }

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
        try blobs.save(content, contentType: contentType)
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
        try blobs.save(fileURL: fileURL, contentType: contentType)
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
        try await blobs.save(stream: stream, contentType: contentType)
    }

    /// Returns the length of a blob's content in bytes, or nil if the blob is not in this database.
    ///
    /// An attachment that a CouchDB compressed counts with the length that its document names, which is that of the content.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; an error of the disk.
    public func blobLength(_ blob: BlobReference) throws(LoveseatError) -> UInt64? {
        try blobs.length(blob)
    }

    /// Returns the whole content of a blob. For large blobs, use ``blobPieces(_:)``.
    ///
    /// An attachment that a CouchDB compressed is inflated. This call blocks the thread while it reads.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `corruptData` if compressed content is damaged, or
    ///   longer than its document says; `notOpen`; an error of the disk.
    public func blobContent(_ blob: BlobReference) throws(LoveseatError) -> Data {
        try blobs.content(blob)
    }

    /// Returns some bytes of a blob, and fewer than asked for if the range extends beyond its end.
    ///
    /// An attachment that a CouchDB compressed is inflated from its beginning for that.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `corruptData` if compressed content is damaged;
    ///   `notOpen`; an error of the disk.
    public func blobContent(_ blob: BlobReference, in range: Range<UInt64>) throws(LoveseatError) -> Data {
        try blobs.content(blob, in: range)
    }

    /// Returns the content of a blob as a sequence of pieces of up to 256 kB. An attachment that a CouchDB compressed is inflated.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the blob is not in this database; `notOpen`.
    public func blobPieces(_ blob: BlobReference) throws(LoveseatError) -> BlobPieces {
        try blobs.pieces(blob)
    }
}
