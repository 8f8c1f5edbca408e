private import Crypto
package import LoveseatModel
import Synchronization

/// The MD5s of blobs that are known. Peers of CouchDB's wire name contents by them, so they are computed when such a peer sends a content,
/// or asks for a document that has one.
///
/// A SHA-1 names one content, so an MD5 that was found once stays right. Those that were found since the last write transaction wait for the
/// next one, which writes them to the table `md5s`: nothing else is written for them.
package final class BlobMD5s: Sendable {
    /// How many are kept in memory at least, if so many are used, and how many wait at most. The others are computed again.
    private static let maximumKept = 20_000

    private struct State {
        var recent: [BlobDigest: MD5Digest] = [:]
        var older: [BlobDigest: MD5Digest] = [:]
        var unwritten: [BlobDigest: MD5Digest] = [:]
        var stored: (@Sendable (BlobDigest) throws -> MD5Digest?)?

        mutating func keep(_ md5: MD5Digest, of blob: BlobDigest) {
            if recent.count >= maximumKept { (recent, older) = ([:], recent) }
            recent[blob] = md5
        }
    }

    private let state = Mutex(State())

    /// Has those that are not in memory read from the table. `stored`: must not be called within a transaction.
    func read(from stored: @escaping @Sendable (BlobDigest) throws -> MD5Digest?) {
        state.withLock { $0.stored = stored }
    }

    /// The MD5 of a blob; nil if it is not known. Not for transactions: see ``StoreWriteTransaction/knownMD5(of:)``.
    package func known(_ blob: BlobDigest) throws -> MD5Digest? {
        if let md5 = inMemory(blob) { return md5 }
        guard let md5 = try state.withLock({ $0.stored })?(blob) else { return nil }
        state.withLock { $0.keep(md5, of: blob) }
        return md5
    }

    /// The MD5 of a blob, if it is in memory.
    package func inMemory(_ blob: BlobDigest) -> MD5Digest? {
        state.withLock { state in
            if let md5 = state.recent[blob] { return md5 }
            guard let md5 = state.older[blob] ?? state.unwritten[blob] else { return nil }
            state.keep(md5, of: blob)
            return md5
        }
    }

    /// Notes the MD5 that a blob's content has.
    func note(_ md5: MD5Digest, of blob: BlobDigest) {
        state.withLock { state in
            if state.unwritten.count < Self.maximumKept { state.unwritten[blob] = md5 }
            state.keep(md5, of: blob)
        }
    }

    /// Those that no transaction has written yet.
    package var unwritten: [BlobDigest: MD5Digest] { state.withLock { $0.unwritten } }

    func noteWritten(_ written: [BlobDigest: MD5Digest]) {
        if written.isEmpty { return }
        state.withLock { state in for blob in written.keys { state.unwritten[blob] = nil } }
    }
}

/// Computes the MD5 of a stored blob, a part at a time: a blob may have any size.
package struct BlobMD5Computation {
    private static let partPieces = 32
    private static let pieceSize = 256 << 10

    private let blob: BlobDigest
    private let files: BlobFiles
    private var md5 = Insecure.MD5()
    private var sha1 = Insecure.SHA1()
    /// How many bytes were read.
    package private(set) var done: UInt64 = 0
    /// The MD5, once all parts were read. It is known then.
    package private(set) var result: MD5Digest?

    package init(_ blob: BlobDigest, in files: BlobFiles) { (self.blob, self.files) = (blob, files) }

    /// Reads the next part, up to 8 MiB.
    ///
    /// - Returns: whether there may be more.
    /// - Throws: `notFound`; `corruptData` for content that is not the blob's; an error of the disk.
    package mutating func next() throws(LoveseatError) -> Bool {
        for _ in 0..<Self.partPieces {
            let piece = try files.read(blob, from: done, count: Self.pieceSize)
            guard !piece.isEmpty else {
                try end()
                return false
            }
            md5.update(data: piece)
            sha1.update(data: piece)
            done += UInt64(piece.count)
        }
        return true
    }

    private mutating func end() throws(LoveseatError) {
        // A damaged content has an MD5 that nobody may take for the blob's.
        guard BlobDigest(sha1: sha1.finalize()) == blob else {
            throw LoveseatError(.corruptData, "blob \(blob) is damaged or was cut: run `check`")
        }
        result = MD5Digest(bytes: Array(md5.finalize()))
        if let result { files.md5s.note(result, of: blob) }
    }
}
