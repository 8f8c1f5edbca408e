package import LoveseatModel
private import LoveseatPlatform
import Synchronization

/// Blobs that a connection received only in part. The beginnings are kept for the next connection, within limits.
extension BlobFiles {
    private static let prefix = "partial-"
    /// The maximum size of all beginnings together, in bytes.
    private static let maximumBytes: UInt64 = 1 << 30
    private static let maximumAge = 7 * 24 * 3_600

    /// Begins to receive a blob.
    ///
    /// `resumes`: whether to continue from the part that an earlier connection received (see ``BlobWriter/length``).
    package func writer(receiving digest: BlobDigest, resumes: Bool) throws(LoveseatError) -> BlobWriter {
        try requireWriteable()
        // If another connection is receiving the blob, each fetches it separately.
        guard receiving.withLock({ $0.insert(digest).inserted }) else { return try writer() }
        do {
            let path = "\(folder)/\(Self.prefix)\(digest.hexadecimalText)"
            return try BlobWriter(path: path, files: self, receiving: digest, resumes: resumes)
        } catch {
            receiving.withLock { _ = $0.remove(digest) }
            throw error
        }
    }

    /// Removes beginnings that are too old, and the oldest if there are too many.
    func trimBeginnings() throws(LoveseatError) {
        var beginnings: [(path: String, size: UInt64, time: Int)] = []
        let busy = receiving.withLock { Set($0.map(\.hexadecimalText)) }
        for name in try fileNames()
        where name.hasPrefix(Self.prefix) && !busy.contains(String(name.dropFirst(8))) {
            var status = stat()
            guard stat("\(folder)/\(name)", &status) == 0 else { continue }
            #if canImport(Darwin)
            let time = status.st_mtimespec.tv_sec
            #else
            let time = status.st_mtim.tv_sec
            #endif
            beginnings.append(("\(folder)/\(name)", UInt64(status.st_size), time))
        }
        var total: UInt64 = 0
        let oldest = time(nil) - Self.maximumAge
        for beginning in beginnings.sorted(by: { $0.time > $1.time }) {
            total += beginning.size
            if total > Self.maximumBytes || beginning.time < oldest { unlink(beginning.path) }
        }
    }
}
