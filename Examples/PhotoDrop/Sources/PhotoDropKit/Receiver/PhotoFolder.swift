import Crypto
import Foundation
import PhotoDropCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The folder in which received photos are saved. It is opened once; nothing in it is followed or overwritten.
package final class PhotoFolder: Sendable {
    private static let maximumNumber = 100_000
    private static let pieceBytes = 1 << 20

    package let path: String
    private let descriptor: Int32
    /// The beginning of the names of files that are not complete.
    private let partPrefix: String

    /// Opens a folder, and creates it if it does not exist.
    ///
    /// - Throws: `disk` if that is not possible, or no files can be created in it.
    package init(path: String, session: String) throws(DropError) {
        self.path = path
        partPrefix = ".part-\(session)-"
        do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch
        {
            throw DropError(.disk, "cannot create the folder \(path): \(error.localizedDescription)")
        }
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure("open", path) }
        removeParts()
        discard(try begin("test"))
    }

    deinit { close(descriptor) }

    /// A file that is being written.
    package struct Part {
        fileprivate let name: String
        fileprivate let descriptor: Int32

        /// - Throws: `disk` if the bytes cannot be written.
        package func write(_ bytes: some Sequence<UInt8>) throws(DropError) {
            let bytes = Array(bytes)
            var written = 0
            while written < bytes.count {
                let count = bytes.withUnsafeBytes { buffer in
                    Foundation.write(
                        descriptor,
                        buffer.baseAddress.map { $0 + written },
                        buffer.count - written
                    )
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw PhotoFolder.failure("write", name) }
                written += count
            }
        }
    }

    /// Begins a file. ``finish(_:name:date:)`` or ``discard(_:)`` has to follow.
    package func begin(_ digest: String) throws(DropError) -> Part {
        let name = partPrefix + digest
        unlinkat(descriptor, name, 0)
        let file = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw Self.failure("create a file in", path) }
        return Part(name: name, descriptor: file)
    }

    package func discard(_ part: Part) {
        close(part.descriptor)
        unlinkat(descriptor, part.name, 0)
    }

    /// Flushes a file to the disk, and gives it a name that is free, with a number if necessary. If a file with one of these names has the
    /// same content, that one stays, and this one is removed: a receiver that was killed may have written it.
    ///
    /// - Returns: The file's name, and whether it is this file; false if there was one with the same content.
    /// - Throws: `disk`. The file is removed then.
    package func finish(_ part: Part, name: String, date: String?) throws(DropError) -> (
        name: String, isNew: Bool
    ) {
        if let date, let time = Self.time(date) {
            var times = [time, time]
            futimens(part.descriptor, &times)
        }
        guard fsync(part.descriptor) == 0 else {
            let error = Self.failure("write", name)
            discard(part)
            throw error
        }
        for number in 1...Self.maximumNumber {
            let candidate = FileName.numbered(name, number)
            if try install(part, as: candidate) {
                close(part.descriptor)
                fsync(descriptor)
                return (candidate, true)
            }
            if isCopy(part, candidate) {
                discard(part)
                return (candidate, false)
            }
        }
        discard(part)
        throw DropError(.disk, "\(path) has too many files named \(name)")
    }

    /// Moves a file to the user's trash.
    ///
    /// - Throws: `disk` if there is none on this disk. The file stays then.
    package func trash(_ name: String) throws(DropError) { try Trash.take(name, from: path, descriptor) }

    /// Removes a file if its content has a SHA-1, of 40 hexadecimal digits. Others, and links, stay. Returns whether it was removed.
    package func remove(_ name: String, ifItsDigestIs digest: String) -> Bool {
        has(name, withDigest: digest) && unlinkat(descriptor, name, 0) == 0
    }

    /// Whether there is a file whose content has a SHA-1, of 40 hexadecimal digits. Links do not count.
    package func has(_ name: String, withDigest digest: String) -> Bool {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        let size = lseek(file, 0, SEEK_END)
        var hash = Insecure.SHA1()
        for start in stride(from: 0, to: max(0, size), by: Self.pieceBytes) {
            guard let piece = Self.read(file, min(Self.pieceBytes, Int(size - start)), from: start) else {
                return false
            }
            hash.update(data: piece)
        }
        return TextCoding.hexadecimal(hash.finalize()) == digest
    }

    /// Whether a file has the same content as a part.
    private func isCopy(_ part: Part, _ name: String) -> Bool {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let (one, other) = (openat(descriptor, part.name, flags), openat(descriptor, name, flags))
        defer { for file in [one, other] where file >= 0 { close(file) } }
        guard one >= 0, other >= 0 else { return false }
        let size = lseek(one, 0, SEEK_END)
        guard size >= 0, lseek(other, 0, SEEK_END) == size else { return false }
        for start in stride(from: 0, to: size, by: Self.pieceBytes) {
            let count = min(Self.pieceBytes, Int(size - start))
            guard let piece = Self.read(one, count, from: start),
                piece == Self.read(other, count, from: start)
            else { return false }
        }
        return true
    }

    /// Bytes of a file; nil if there are not as many.
    private static func read(_ file: Int32, _ count: Int, from start: off_t) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                pread(file, buffer.baseAddress.map { $0 + done }, count - done, start + off_t(done))
            }
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { return nil }
            done += more
        }
        return bytes
    }

    /// Gives a file its name, unless another one has it.
    private func install(_ part: Part, as name: String) throws(DropError) -> Bool {
        if linkat(descriptor, part.name, descriptor, name, 0) == 0 {
            unlinkat(descriptor, part.name, 0)
            return true
        }
        switch errno {
        case EEXIST: return false
        case EPERM, ENOTSUP, EOPNOTSUPP, EMLINK, ENOSYS: return try installByRenaming(part, as: name)
        default:
            let error = Self.failure("create \(name) in", path)
            discard(part)
            throw error
        }
    }

    /// For file systems without hard links: an empty file reserves the name.
    private func installByRenaming(_ part: Part, as name: String) throws(DropError) -> Bool {
        let reserved = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
        if reserved < 0, errno == EEXIST { return false }
        if reserved >= 0 { close(reserved) }
        guard reserved >= 0, renameat(descriptor, part.name, descriptor, name) == 0 else {
            let error = Self.failure("create \(name) in", path)
            discard(part)
            throw error
        }
        return true
    }

    /// Removes what an earlier process of the session has left.
    private func removeParts() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        for name in names where name.hasPrefix(partPrefix) { unlinkat(descriptor, name, 0) }
    }

    /// A time without a time zone counts as local time.
    private static func time(_ text: String) -> timespec? {
        guard let date = LocalTime.date(text) else { return nil }
        return timespec(tv_sec: Int(date.timeIntervalSince1970), tv_nsec: 0)
    }

    private static func failure(_ action: String, _ name: String) -> DropError {
        DropError(.disk, "cannot \(action) \(name): \(String(cString: strerror(errno)))")
    }
}
