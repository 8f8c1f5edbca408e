import LoveseatModel
import LoveseatStorage
import Synchronization

/// Keeps blobs until the documents that refer to them are stored.
final class BlobPins: Sendable {
    /// How large a blob may be whose MD5 is computed at once, in bytes.
    private static let maximumHashed: UInt64 = 64 << 20

    let blobs: BlobFiles
    /// Whether the MD5 of each content is computed while it comes, because clients will ask for it.
    private let hashesMD5: Bool
    private let digests = Mutex<[BlobDigest]>([])
    /// The lengths of compressed blobs, as ``inflatedLength(of:)`` found them.
    private let lengths = Mutex<[BlobDigest: Int?]>([:])

    init(_ blobs: BlobFiles, hashesMD5: Bool = false) { (self.blobs, self.hashesMD5) = (blobs, hashesMD5) }
    deinit { for digest in digests.withLock({ $0 }) { blobs.unpin(digest) } }

    func add(_ digest: BlobDigest) {
        blobs.pin(digest)
        digests.withLock { $0.append(digest) }
    }

    /// Begins a content. `isNamedByMD5`: whether its MD5 is needed in any case.
    func writer(isNamedByMD5: Bool = false) throws(LoveseatError) -> BlobWriter {
        try blobs.writer(hashesMD5: hashesMD5 || isNamedByMD5)
    }

    /// The MD5 of a blob; nil if the blob is not here or is damaged, or if it would take long to compute.
    func md5(of digest: BlobDigest) throws -> MD5Digest? {
        if let known = try blobs.md5s.known(digest) { return known }
        guard let length = blobs.length(digest), length <= Self.maximumHashed else { return nil }
        var computation = BlobMD5Computation(digest, in: blobs)
        do { while try computation.next() {} } catch { return nil }
        return computation.result
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
        let writer = try writer()
        try writer.write(content)
        return try finish(writer).digest
    }
}
