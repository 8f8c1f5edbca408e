import Foundation
import PhotoDropCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A folder of a session in the system's folder for temporary files, which only this user can read.
package struct TemporaryFolder: Sendable {
    private static let prefix = "photodrop-"
    private static let newPrefix = "photodrop-new-"
    private static let senderPrefix = "send-"
    private static let idBytes = 8
    private static let ownerFile = "owner"

    package private(set) var path: String

    /// Creates a folder with a random name for a sender, and removes those of processes that were killed.
    ///
    /// - Throws: `disk` if it cannot be created.
    package static func forSender() throws(DropError) -> TemporaryFolder {
        try TemporaryFolder(name: senderPrefix + TextCoding.hexadecimal(RandomBytes.make(idBytes)))
    }

    /// Creates a folder for a session, and removes those of processes that were killed.
    ///
    /// - Throws: `disk` if it cannot be created.
    package init(session: String) throws(DropError) { try self.init(name: session) }

    private init(name: String) throws(DropError) {
        Self.removeAbandoned()
        let final = Self.root + "/" + Self.prefix + name
        // Until it says whose it is, its name does.
        path = Self.root + "/" + Self.newPrefix + "\(getpid())-\(name)"
        guard mkdir(path, 0o700) == 0 else { throw Self.failure(path) }
        try write("\(getpid())", to: Self.ownerFile)
        guard rename(path, final) == 0 else { throw Self.failure(final) }
        path = final
    }

    private static func failure(_ path: String) -> DropError {
        DropError(.disk, "cannot create the folder \(path): \(String(cString: strerror(errno)))")
    }

    /// Opens the folder of an earlier session.
    ///
    /// - Throws: `notFound` if there is none, `usage` if its process still runs.
    package init(existing path: String) throws(DropError) {
        guard FileManager.default.fileExists(atPath: path) else {
            throw DropError(.notFound, "there is no session at \(path)")
        }
        if let owner = Self.owner(of: path), owner != getpid(), Self.isRunning(owner) {
            throw DropError(.usage, "process \(owner) still uses the session at \(path): stop it first")
        }
        self.path = path
        try write("\(getpid())", to: Self.ownerFile)
    }

    private static var root: String {
        let given = ProcessInfo.processInfo.environment["TMPDIR"] ?? ""
        let folder = given.isEmpty ? "/tmp" : given
        return folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
    }

    /// Writes a small file that only this user can read.
    package func write(_ text: String, to name: String) throws(DropError) {
        let file = "\(path)/\(name)"
        let created = FileManager.default.createFile(
            atPath: file,
            contents: Data(text.utf8),
            attributes: [.posixPermissions: 0o600]
        )
        guard created else { throw DropError(.disk, "cannot write \(file)") }
    }

    package func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// The number of bytes that can be written where the folder is; nil if the system does not say.
    package var freeBytes: UInt64? { DiskSpace.free(at: path) }

    /// Leaves the folder to a later process, and keeps it from being removed as abandoned.
    package func keep() throws(DropError) { try write("kept", to: Self.ownerFile) }

    private static func owner(of path: String) -> pid_t? {
        guard let text = try? String(contentsOfFile: "\(path)/\(ownerFile)", encoding: .utf8) else {
            return nil
        }
        return pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    private static func isRunning(_ process: pid_t) -> Bool { kill(process, 0) == 0 || errno == EPERM }

    /// Removes the folders of processes that ended without doing so. Sessions that are kept have another owner.
    private static func removeAbandoned() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        for name in names where isAbandoned(name) {
            try? FileManager.default.removeItem(atPath: "\(root)/\(name)")
        }
    }

    /// Whether this program made a folder that no process uses. One without an owner was being removed when its process was killed.
    private static func isAbandoned(_ name: String) -> Bool {
        if name.hasPrefix(newPrefix) {
            let owner = name.dropFirst(newPrefix.count).prefix { $0 != "-" }
            return pid_t(owner).map { !isRunning($0) } ?? false
        }
        guard name.hasPrefix(prefix) else { return false }
        let rest = name.dropFirst(prefix.count)
        let digits = rest.hasPrefix(senderPrefix) ? rest.dropFirst(senderPrefix.count) : rest
        guard digits.utf8.count == 2 * idBytes, TextCoding.bytes(hexadecimal: digits) != nil else {
            return false
        }
        let path = "\(root)/\(name)"
        guard !FileManager.default.fileExists(atPath: "\(path)/\(SessionRecord.fileName)") else {
            return false
        }
        return owner(of: path).map { !isRunning($0) } ?? true
    }
}

/// Free space on disks.
enum DiskSpace {
    /// The number of bytes that this user can write; nil if the system does not say.
    static func free(at path: String) -> UInt64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize)
    }
}
