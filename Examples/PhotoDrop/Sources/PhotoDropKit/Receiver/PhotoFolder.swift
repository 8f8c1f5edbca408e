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

    package let path: String
    private let descriptor: Int32
    /// The beginning of the names of files that are not complete.
    private let partPrefix: String

    /// Opens a folder, and creates it if it does not exist.
    ///
    /// - Throws: `disk` if that is not possible.
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

    /// Begins a file. ``finish(_:name:taken:)`` or ``discard(_:)`` has to follow.
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

    /// Flushes a file to the disk, and gives it a name that is free, with a number if necessary.
    ///
    /// - Returns: The file's name.
    /// - Throws: `disk`. The file is removed then.
    package func finish(_ part: Part, name: String, taken: String?) throws(DropError) -> String {
        if let taken, let time = Self.time(taken) {
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
                return candidate
            }
        }
        discard(part)
        throw DropError(.disk, "\(path) has too many files named \(name)")
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
    private static func time(_ taken: String) -> timespec? {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd'T'HH:mm:ss"
        guard let date = formatter.date(from: taken) else { return nil }
        return timespec(tv_sec: Int(date.timeIntervalSince1970), tv_nsec: 0)
    }

    private static func failure(_ action: String, _ name: String) -> DropError {
        DropError(.disk, "cannot \(action) \(name): \(String(cString: strerror(errno)))")
    }
}
