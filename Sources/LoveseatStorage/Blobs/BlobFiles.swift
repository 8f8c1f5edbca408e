private import Crypto
package import LoveseatModel
private import LoveseatPlatform
import Synchronization

/// Blobs as files named by their SHA-1, in one folder.
///
/// A blob is written to a temporary file, flushed and renamed, so that a file with its name is always complete.
package final class BlobFiles: Sendable {
    package let folder: String
    private let syncs: Bool
    /// The reason why nothing can be stored; nil if it can.
    private let refusal: LoveseatError?
    private let nextTemporary = Mutex(0)
    private let keeping = Mutex(Keeping())
    package let md5s = BlobMD5s()
    /// Blobs that a connection is receiving into their `partial-` file.
    let receiving = Mutex<Set<BlobDigest>>([])

    /// The blobs that compaction must not remove although no document refers to them yet.
    private struct Keeping {
        /// Blobs that running saves and pulls rely on, with the number of those.
        var pins: [BlobDigest: Int] = [:]
        /// Blobs that were written or looked for since the running compaction began; nil while none runs.
        var touched: Set<BlobDigest>?
        /// Blobs that compactions removed, so that no save that began before refers to one: at least the last 50,000.
        var removed: (recent: Set<BlobDigest>, older: Set<BlobDigest>) = ([], [])

        mutating func noteRemoval(of digest: BlobDigest) {
            if removed.recent.count == 50_000 { removed = ([], removed.recent) }
            removed.recent.insert(digest)
        }
    }

    /// `syncs`: whether new files reach the disk before they count; false only in tests.
    package init(folder: String, syncs: Bool) throws(LoveseatError) {
        self.folder = folder
        self.syncs = syncs
        refusal = nil
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw Self.failure("make", folder) }
        try removeTemporaries()
    }

    /// Opens blobs that another process may be writing: nothing is created or removed, and storing throws `refusal`.
    init(readingFrom folder: String, refusal: LoveseatError) {
        self.folder = folder
        self.refusal = refusal
        syncs = true
    }

    static func failure(_ action: String, _ path: String) -> LoveseatError {
        let number = errno
        return LoveseatError(
            .init(Int(number), domain: .posix),
            "cannot \(action) \(path): \(String(cString: strerror(number)))"
        )
    }

    func path(_ digest: BlobDigest) -> String { "\(folder)/\(digest.hexadecimalText)" }

    /// Half-written files of a process that ended early are useless.
    private func removeTemporaries() throws(LoveseatError) {
        for name in try fileNames() where name.hasPrefix("incoming-") { unlink("\(folder)/\(name)") }
    }

    /// The names of all files; none if the folder does not exist.
    ///
    /// - Throws: an error of the disk: a list that is cut short would look like blobs that are not there.
    func fileNames() throws(LoveseatError) -> [String] {
        guard let directory = opendir(folder) else {
            if errno == ENOENT { return [] }
            throw Self.failure("read", folder)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            // Only this distinguishes an error from the end.
            errno = 0
            guard let entry = readdir(directory) else {
                if errno != 0 { throw Self.failure("read", folder) }
                return names
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
    }

    package func length(_ digest: BlobDigest) -> UInt64? {
        var status = stat()
        return stat(path(digest), &status) == 0 ? UInt64(status.st_size) : nil
    }

    /// Whether the blob is here. The caller may then refer to it: a running compaction keeps it.
    package func contains(_ digest: BlobDigest) -> Bool {
        touch([digest])
        return length(digest) != nil
    }

    /// Reports to a running compaction that these blobs are referred to.
    package func touch(_ digests: some Sequence<BlobDigest>) {
        keeping.withLock { $0.touched?.formUnion(digests) }
    }

    /// Reports to a running compaction that a document is about to be saved which refers to these blobs.
    ///
    /// - Throws: `notFound` if a compaction removed one of them since the app has seen it.
    func refer(to digests: [BlobDigest]) throws(LoveseatError) {
        let removed: [BlobDigest] = keeping.withLock { keeping in
            keeping.touched?.formUnion(digests)
            let removed = keeping.removed
            guard !removed.recent.isEmpty || !removed.older.isEmpty else { return [] }
            return digests.filter { removed.recent.contains($0) || removed.older.contains($0) }
        }
        for digest in removed where length(digest) == nil {
            throw LoveseatError(
                .notFound,
                "blob \(digest) was removed by a compaction, because no document referred to it: save its content again, then the document"
            )
        }
    }

    /// Keeps a blob until ``unpin(_:)``, even if no document refers to it.
    package func pin(_ digest: BlobDigest) { keeping.withLock { $0.pins[digest, default: 0] += 1 } }

    package func unpin(_ digest: BlobDigest) {
        keeping.withLock { keeping in
            keeping.pins[digest] = keeping.pins[digest].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
    }

    /// Removes every blob that no document refers to, and returns the number of bytes that this freed.
    ///
    /// `referenced`: waits for saves that have begun, and reads what documents refer to; called once, after new references are being
    /// recorded. One call at a time.
    ///
    /// - Returns: also the first failure, if the disk refused to remove a blob. The others were removed.
    package func collectGarbage(referenced: () throws -> Set<BlobDigest>) throws -> (
        count: Int, bytes: UInt64, failure: LoveseatError?
    ) {
        try trimBeginnings()
        keeping.withLock { $0.touched = [] }
        defer { keeping.withLock { $0.touched = nil } }
        let names = try fileNames()
        let wanted = Set(try referenced().map(\.hexadecimalText))
        var freed: (count: Int, bytes: UInt64, failure: LoveseatError?) = (0, 0, nil)
        for name in names where !wanted.contains(name) {
            guard let digest = BlobDigest(fileName: name) else { continue }
            keeping.withLock { keeping in
                // A save or a pull may have begun to rely on it since the documents were read.
                guard keeping.pins[digest] == nil, keeping.touched?.contains(digest) != true else { return }
                let bytes = length(digest) ?? 0
                guard unlink(path(digest)) == 0 else {
                    // Another process may have removed it meanwhile.
                    if errno != ENOENT, freed.failure == nil {
                        freed.failure = Self.failure("remove", path(digest))
                    }
                    return
                }
                freed.bytes += bytes
                freed.count += 1
                keeping.noteRemoval(of: digest)
            }
        }
        return freed
    }

    /// The digests of all blobs.
    ///
    /// - Throws: an error of the disk.
    package func all() throws(LoveseatError) -> [BlobDigest] {
        try fileNames().compactMap { BlobDigest(fileName: $0) }
    }

    /// Reads a range: fewer bytes than requested at the end, and none after it.
    package func read(_ digest: BlobDigest, from offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8]
    {
        let descriptor = open(path(digest), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw errno == ENOENT
                ? LoveseatError(.notFound, "blob \(digest) is not in this database")
                : Self.failure("open", path(digest))
        }
        defer { close(descriptor) }
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = 0
            while filled < count {
                let got = pread(
                    descriptor,
                    buffer.baseAddress.map { $0 + filled },
                    count - filled,
                    off_t(offset) + off_t(filled)
                )
                if got < 0, errno == EINTR { continue }
                failed = got < 0
                if got <= 0 { return }
                filled += got
            }
        }
        if failed { throw Self.failure("read", path(digest)) }
        return bytes
    }

    /// Begins a new blob, whose digest is known when it is complete. `hashesMD5`: whether its MD5 is known then, too.
    ///
    /// - Throws: `notWriteable` if the database is open for reading only; an error of the disk.
    package func writer(hashesMD5: Bool = false) throws(LoveseatError) -> BlobWriter {
        try requireWriteable()
        let number = nextTemporary.withLock {
            $0 += 1
            return $0
        }
        return try BlobWriter(
            path: "\(folder)/incoming-\(getpid())-\(number)",
            files: self,
            hashesMD5: hashesMD5
        )
    }

    func requireWriteable() throws(LoveseatError) { if let refusal { throw refusal } }

    /// Moves a complete file to its place.
    func install(_ temporary: String, descriptor: Int32, as digest: BlobDigest)
        throws(LoveseatError)
    {
        if syncs, fsync(descriptor) != 0 { throw Self.failure("sync", temporary) }
        guard rename(temporary, path(digest)) == 0 else { throw Self.failure("rename", temporary) }
        if !syncs { return }
        let directory = open(folder, O_RDONLY | O_CLOEXEC)
        guard directory >= 0 else { throw Self.failure("open", folder) }
        defer { close(directory) }
        if fsync(directory) != 0 { throw Self.failure("sync", folder) }
    }

    /// The SHA-1 of a prefix and stored content.
    package func hash(_ digest: BlobDigest, prefix: [UInt8] = []) throws(LoveseatError) -> BlobDigest {
        var hasher = Insecure.SHA1()
        hasher.update(data: prefix)
        var offset: UInt64 = 0
        while true {
            let piece = try read(digest, from: offset, count: 256 << 10)
            if piece.isEmpty { return BlobDigest(sha1: hasher.finalize()) }
            hasher.update(data: piece)
            offset += UInt64(piece.count)
        }
    }
}

extension BlobFiles {
    /// Copies all blobs to another folder.
    func copy(to target: BlobFiles) throws(LoveseatError) {
        for digest in try all() {
            let writer = try target.writer()
            var offset: UInt64 = 0
            while true {
                let piece = try read(digest, from: offset, count: 1 << 20)
                if piece.isEmpty { break }
                try writer.write(piece)
                offset += UInt64(piece.count)
            }
            _ = try writer.finish(expected: digest)
        }
    }
}
