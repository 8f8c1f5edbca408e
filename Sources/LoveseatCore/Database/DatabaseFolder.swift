private import Foundation
package import LoveseatModel
import LoveseatStorage

/// The folder of a database, which may exist or not.
package struct DatabaseFolder: CustomStringConvertible {
    let path: String

    init(path: String) { self.path = path }

    /// - Throws: `invalidParameter` for a name that is not allowed.
    package init(name: String, _ config: DatabaseConfiguration) throws(LoveseatError) {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")),
            !name.utf8.contains(0), name.utf8.count <= 240
        else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(name)\" is not a valid database name: use 1 to 240 bytes without a slash"
            )
        }
        path = "\(config.directory)/\(name).\(config.folderExtension)"
    }

    package var description: String { path }
    package var hasDatabase: Bool { FileManager.default.fileExists(atPath: "\(path)/db.sqlite") }

    /// Creates a folder that contains databases.
    static func create(directory: String) throws(LoveseatError) {
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        } catch {
            throw LoveseatError(
                .cantOpenFile,
                "cannot create the folder \(directory): \(error.localizedDescription)"
            )
        }
    }

    /// Removes a folder that this process does not have open, and keeps other processes from opening it meanwhile.
    func remove() throws(LoveseatError) {
        let lock = try FolderLock(folder: path)
        defer { lock.release() }
        do { try FileManager.default.removeItem(atPath: path) } catch {
            throw LoveseatError(.ioError, "cannot remove \(path): \(error.localizedDescription)")
        }
    }

    /// Removes the folder if it exists.
    ///
    /// - Throws: `busy` if it is open.
    package func removeUnused() throws(LoveseatError) {
        if !FileManager.default.fileExists(atPath: path) { return }
        let folder = DatabaseFolder(path: try DatabaseInstance.beginRemoval(path, heldBy: 0))
        defer { folder.endRemoval() }
        try remove()
    }

    /// Lets the folder be opened again.
    func endRemoval() { DatabaseInstance.endRemoval(path) }

    /// Copies another database to this folder. If that fails, nothing is left of the copy.
    ///
    /// `directory`: the folder that contains this one, which is created if it does not exist.
    func copy(from source: String, creating directory: String) throws(LoveseatError) {
        let (target, files) = (path, FileManager.default)
        guard DatabaseFolder(path: source).hasDatabase else {
            throw LoveseatError(.notFound, "there is no database at \(source)")
        }
        guard !files.fileExists(atPath: target) else {
            throw LoveseatError(
                .invalidParameter,
                "\(target) exists already: delete it or choose another name"
            )
        }
        let open = try DatabaseInstance.open(folder: source, options: DocumentStore.Options())
        // The copy is whole by then, or has its own error: that the source cannot be closed changes neither.
        defer { try? open.leave() }
        do {
            try files.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try open.store.copy(to: target)
        } catch {
            // There is nothing to remove if the copy was not begun. The first error is the one to report.
            try? files.removeItem(atPath: target)
            throw LoveseatError(storage: error)
        }
    }
}
