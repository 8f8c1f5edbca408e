private import Crypto
package import LoveseatModel
private import LoveseatPlatform
import Synchronization

/// Writes a blob to the disk, and never holds more than the piece it is given.
package final class BlobWriter {
    /// The minimum size of a beginning that is kept, in bytes.
    private static let shortestKept = 64 << 10

    private let path: String
    private let files: BlobFiles
    /// The blob that is being received into its `partial-` file; nil for one whose digest is not known yet.
    private let received: BlobDigest?
    private var descriptor: Int32
    /// Whether the file is closed, and still waits for ``finish(expected:)``.
    private var isResting = false
    private var hasher = Insecure.SHA1()
    /// Nil if nobody needs it.
    private var md5Hasher: Insecure.MD5?
    /// The MD5 of the content, once the blob is complete; nil if it is not computed.
    package private(set) var md5: MD5Digest?
    /// The number of bytes written so far.
    package private(set) var length: UInt64 = 0

    init(path: String, files: BlobFiles, hashesMD5: Bool) throws(LoveseatError) {
        self.path = path
        self.files = files
        md5Hasher = hashesMD5 ? Insecure.MD5() : nil
        received = nil
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("create", path) }
    }

    /// Continues from the part that an earlier connection received, or starts over.
    init(path: String, files: BlobFiles, receiving digest: BlobDigest, resumes: Bool) throws(LoveseatError) {
        self.path = path
        self.files = files
        received = digest
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | (resumes ? 0 : O_TRUNC)
        descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("create", path) }
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw BlobFiles.failure("read", path) }
            if count == 0 { break }
            hasher.update(data: buffer[..<count])
            length += UInt64(count)
        }
    }

    deinit { cancel() }

    package func write(_ bytes: some Collection<UInt8>) throws(LoveseatError) {
        let bytes = Array(bytes)
        hasher.update(data: bytes)
        md5Hasher?.update(data: bytes)
        length += UInt64(bytes.count)
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                // The name is also that of this method.
                LoveseatPlatform.write(
                    descriptor,
                    buffer.baseAddress.map { $0 + written },
                    buffer.count - written
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw BlobFiles.failure("write", path) }
            written += count
        }
    }

    /// Completes the blob, and moves it to its place unless the same content is stored already.
    ///
    /// `expected`: the digest it must have; otherwise ``LoveseatError/Code/corruptData`` is thrown. `pins`: whether to pin it, before it
    /// is in its place, so that no compaction comes between; an error leaves no pin.
    package func finish(expected: BlobDigest? = nil, pins: Bool = false) throws(LoveseatError) -> (
        digest: BlobDigest, length: UInt64
    ) {
        if isResting {
            descriptor = open(path, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw BlobFiles.failure("open", path) }
            isResting = false
        }
        let digest = BlobDigest(sha1: hasher.finalize())
        guard expected == nil || expected == digest else {
            cancel()
            throw LoveseatError(
                .corruptData,
                "the content of blob \(expected?.text ?? "") has digest \(digest)"
            )
        }
        defer { closeFile() }
        if pins { files.pin(digest) }
        if files.contains(digest) {
            unlink(path)
        } else {
            do { try files.install(path, descriptor: descriptor, as: digest) } catch {
                if pins { files.unpin(digest) }
                // On a full disk, other files need this space.
                cancel()
                throw error
            }
            // A compaction may have begun while the disk was waited for.
            files.touch([digest])
        }
        md5 = md5Hasher.flatMap { MD5Digest(bytes: Array($0.finalize())) }
        if let md5 { files.md5s.note(md5, of: digest) }
        return (digest, length)
    }

    /// Keeps the beginning of a blob, from which another connection can continue.
    package func suspend() {
        guard received != nil, length >= Self.shortestKept else { return cancel() }
        closeFile()
        // The blob is kept in any case. The next compaction trims too, and throws.
        try? files.trimBeginnings()
    }

    /// Closes the file of a blob that is written and not finished yet: any number of them can wait.
    package func rest() {
        // A blob that is being received keeps its file open; one that rests or is discarded has none.
        guard received == nil, descriptor >= 0 else { return }
        closeFile()
        isResting = true
    }

    /// Discards the blob.
    package func cancel() {
        // The blob may be complete, suspended or discarded, or its file could not be opened.
        guard descriptor >= 0 || isResting else { return }
        isResting = false
        unlink(path)
        closeFile()
    }

    private func closeFile() {
        // A blob that rests may be discarded.
        guard descriptor >= 0 else { return }
        close(descriptor)
        descriptor = -1
        if let received { files.receiving.withLock { _ = $0.remove(received) } }
    }
}
