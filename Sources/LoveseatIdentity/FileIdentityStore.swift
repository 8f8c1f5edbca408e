private import CoreFoundation
public import Foundation
public import LoveseatModel
import LoveseatPlatform

/// An identity store that keeps PEM files in a folder to which only its owner has access.
///
/// The folder has the mode 0700 and its files have 0600. If others could read or write them, every call throws `crypto`. With a
/// passphrase, the keys are encrypted (PKCS#8, PBES2).
public struct FileIdentityStore: IdentityStore {
    /// The folder that contains the files. It is created when the first identity is stored.
    public let folder: URL
    private let passphrase: String?

    /// Creates a store in a folder. With a passphrase, keys are encrypted; it must not be empty.
    public init(folder: URL, passphrase: String? = nil) {
        self.folder = folder
        self.passphrase = passphrase
    }

    /// The folder that the environment variable `LOVESEAT_IDENTITIES` names, or `loveseat/identities` in `$XDG_DATA_HOME` or
    /// `$HOME/.local/share`. Without `$HOME`, the user's home is the one of the account.
    public static var standardFolder: URL {
        let environment = ProcessInfo.processInfo.environment
        if let folder = environment["LOVESEAT_IDENTITIES"], !folder.isEmpty { return URL(filePath: folder) }
        let data = environment["XDG_DATA_HOME"].flatMap { $0.isEmpty ? nil : URL(filePath: $0) }
        return (data ?? URL.userHome.appending(path: ".local/share"))
            .appending(path: "loveseat/identities")
    }

    /// Returns the identity with a label, or nil if there is none.
    ///
    /// - Throws: ``LoveseatError``: `crypto` for a file or folder that others can access, a wrong passphrase, or a damaged file;
    ///   `ioError`.
    public func identity(label: String) throws(LoveseatError) -> TLSIdentity? {
        let path = try path(label)
        guard try check(folder.path, isFolder: true), try check(path, isFolder: false) else { return nil }
        let pem: String
        do { pem = try String(contentsOfFile: path, encoding: .utf8) } catch {
            throw LoveseatError(
                .ioError,
                "cannot read the identity file \(path): \(error.localizedDescription)"
            )
        }
        do throws(LoveseatError) {
            return try TLSIdentity.importIdentity(
                withCertificates: pem,
                privateKey: pem,
                password: passphrase,
                label: nil,
                in: self
            )
        } catch { throw LoveseatError(error.code, "the identity \"\(label)\" in \(path): \(error.message)") }
    }

    /// Stores an identity under a label of 1 to 200 bytes. It is on the disk when this returns.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if the label is in use or not allowed, or if others have access to the folder; `EACCES` or
    ///   `EPERM` of the domain `posix` if the folder cannot be created, or must not be written to; `ioError`.
    public func add(_ identity: TLSIdentity, label: String) throws(LoveseatError) {
        let path = try path(label)
        try makeFolder()
        let temporary = "\(path).\(UInt64.random(in: 0...UInt64.max)).new"
        try write(Array(try identity.pem(passphrase: passphrase).utf8), to: temporary)
        defer { unlink(temporary) }
        // Unlike a rename, a link never replaces what is there.
        guard link(temporary, path) == 0 else {
            guard errno == EEXIST else { throw failure("keep", path) }
            throw LoveseatError(
                .crypto,
                "an identity \"\(label)\" exists already: delete it first, or use another label"
            )
        }
        try syncFolder()
    }

    /// Removes the identity with a label. Does nothing if there is none.
    ///
    /// - Throws: ``LoveseatError``: `ioError`.
    public func remove(label: String) throws(LoveseatError) {
        let path = try path(label)
        guard unlink(path) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return }
            throw failure("delete", path)
        }
        try syncFolder()
    }

    /// Returns the labels of all identities, in any order.
    ///
    /// - Throws: ``LoveseatError``: `crypto` if others have access to the folder; `ioError`.
    public func labels() throws(LoveseatError) -> [String] {
        guard try check(folder.path, isFolder: true) else { return [] }
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: folder.path) } catch {
            throw LoveseatError(.ioError, "cannot list \(folder.path): \(error.localizedDescription)")
        }
        return names.compactMap { name in
            name.hasSuffix(Self.suffix)
                ? String(name.dropLast(Self.suffix.count)).removingPercentEncoding : nil
        }
    }

    // MARK: Files

    private static let suffix = ".pem"
    private static let plainCharacters = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )

    private func path(_ label: String) throws(LoveseatError) -> String {
        guard let name = label.addingPercentEncoding(withAllowedCharacters: Self.plainCharacters),
            (1...200).contains(name.utf8.count)
        else {
            throw LoveseatError(.crypto, "the label of the identity is not valid: use 1 to 200 bytes")
        }
        return folder.appending(path: name + Self.suffix, directoryHint: .notDirectory).path
    }

    /// Whether there is something at a path; throws if others can get at it.
    private func check(_ path: String, isFolder: Bool) throws(LoveseatError) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return false }
            throw failure("look at", path)
        }
        let kind = status.st_mode & S_IFMT
        guard kind == (isFolder ? S_IFDIR : S_IFREG) else {
            throw LoveseatError(
                .crypto,
                "\(path) is not a \(isFolder ? "folder" : "file"): identities are not kept there"
            )
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw LoveseatError(
                .crypto,
                "\(path) is open to others (mode \(mode)): run `chmod \(isFolder ? "700" : "600") '\(path)'`"
            )
        }
        guard status.st_uid == geteuid() else {
            throw LoveseatError(.crypto, "\(path) belongs to another user (\(status.st_uid))")
        }
        return true
    }

    private func makeFolder() throws(LoveseatError) {
        if try check(folder.path, isFolder: true) { return }
        try makeParent(of: folder.path)
        // Foundation would make it open to others, and close it then: somebody who makes it at the same time would be told of that.
        guard mkdir(folder.path, 0o700) == 0 else {
            guard errno == EEXIST, try check(folder.path, isFolder: true) else {
                throw folderFailure(folder.path)
            }
            return
        }
        guard chmod(folder.path, 0o700) == 0 else { throw failure("protect", folder.path) }
    }

    /// Makes the folders above a path that do not exist.
    private func makeParent(of path: String) throws(LoveseatError) {
        // The path is that of a folder in the root, which exists.
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        let parent = String(path[..<slash])
        if access(parent, F_OK) == 0 { return }
        try makeParent(of: parent)
        guard mkdir(parent, 0o777) == 0 || errno == EEXIST else { throw folderFailure(parent) }
    }

    /// The error that a folder cannot be made, with a way out if the user has chosen no folder. Where there is no home that can be
    /// written to, the reasons differ: a permission, a read-only disk, a file in the way.
    private func folderFailure(_ path: String) -> LoveseatError {
        let isDiskFailure = [ENOSPC, EDQUOT, EIO].contains(errno)
        let error = failure("create the folder", path)
        let advice =
            folder.path == Self.standardFolder.path
            ? ": set LOVESEAT_IDENTITIES to a folder that this user may write to" : ""
        return LoveseatError(
            isDiskFailure ? .ioError : .init(Int(EACCES), domain: .posix),
            error.message + advice
        )
    }

    private func write(_ bytes: [UInt8], to path: String) throws(LoveseatError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("make", path) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("write", path) }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0 else { throw failure("write", path) }
    }

    private func syncFolder() throws(LoveseatError) {
        let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", folder.path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("write", folder.path) }
    }

    private func failure(_ verb: String, _ path: String) -> LoveseatError {
        let number = errno
        let isDenied = number == EACCES || number == EPERM
        return LoveseatError(
            isDenied ? .init(Int(number), domain: .posix) : .ioError,
            "cannot \(verb) \(path): \(String(cString: strerror(number)))"
        )
    }
}

extension URL {
    /// The home folder of the user: `$HOME`, which a user may set to another folder than the one of the account.
    package static var userHome: URL {
        let home = ProcessInfo.processInfo.environment["HOME"] ?? ""
        return home.hasPrefix("/") ? URL(filePath: home, directoryHint: .isDirectory) : .homeDirectory
    }
}
