import LoveseatModel
import LoveseatStorage
import Synchronization

/// Keeps blobs until the documents that refer to them are stored.
final class BlobPins: Sendable {
    let blobs: BlobFiles
    private let digests = Mutex<[BlobDigest]>([])
    /// The lengths of compressed blobs, as ``inflatedLength(of:)`` found them.
    private let lengths = Mutex<[BlobDigest: Int?]>([:])

    init(_ blobs: BlobFiles) { self.blobs = blobs }
    deinit { for digest in digests.withLock({ $0 }) { blobs.unpin(digest) } }

    func add(_ digest: BlobDigest) {
        blobs.pin(digest)
        digests.withLock { $0.append(digest) }
    }

    /// Puts content in its place, and keeps it.
    func finish(_ writer: BlobWriter) throws(LoveseatError) -> (digest: BlobDigest, length: UInt64) {
        let stored = try writer.finish(pins: true)
        digests.withLock { $0.append(stored.digest) }
        return stored
    }

    /// The length of a blob's content once it is inflated; nil if it is not a whole gzip. Each blob is inflated once.
    func inflatedLength(of digest: BlobDigest) throws -> Int? {
        if let known = lengths.withLock({ $0[digest] }) { return known }
        let length = try GzipContent.length(of: digest, in: blobs)
        lengths.withLock { $0[digest] = .some(length) }
        return length
    }

    /// Stores content that is in memory.
    func store(_ content: [UInt8]) throws -> BlobDigest {
        let writer = try blobs.writer()
        try writer.write(content)
        return try finish(writer).digest
    }
}
