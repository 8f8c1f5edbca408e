import GRDB
import LoveseatModel
private import LoveseatPlatform

extension DocumentStore {
    /// Removes blobs that no document refers to, and returns free pages to the file system.
    ///
    /// Calls while a compaction runs share the next one, which begins after it.
    ///
    /// - Throws: `notWriteable` if the database is open for reading only; an error of the disk.
    package func compact() throws -> (blobs: Int, bytes: UInt64) {
        try requireNoTransaction()
        // Another process may be storing blobs that only it knows.
        try requireWriteable()
        return try compactions.join { try Compaction(store: self).perform() }
    }

    /// Whether a compaction waits for the end of another one, so that one more call would change nothing.
    package var isCompactionWaiting: Bool { compactions.isWaiting }

    /// Rebuilds every index.
    package func reindex() throws {
        try maintain { try $0.execute(sql: "REINDEX") }
        try write { try $0.indexTable.rebuild() }
    }

    /// Updates the planner's statistics: the outdated ones, or all.
    package func optimize(isFull: Bool) throws {
        try maintain { try $0.execute(sql: isFull ? "ANALYZE" : "PRAGMA optimize") }
    }

    /// Copies everything to an empty folder, with a new identity.
    package func copy(to folder: String) throws {
        try requireNoTransaction()
        guard mkdir(folder, 0o700) == 0 else { throw BlobFiles.failure("make", folder) }
        try DatabaseFile.create("\(folder)/db.sqlite")
        try maintain { try $0.execute(sql: "VACUUM INTO ?", arguments: ["\(folder)/db.sqlite"]) }
        try blobs.copy(to: try BlobFiles(folder: "\(folder)/blobs", syncs: true))
        let copy = try DocumentStore.open(folder: folder)
        // It has its identity since it was opened, as any database in a file that is not its own. All data is in the files of the copy, even
        // if they are not merged into one.
        try? copy.close()
    }

    /// Gives a copy an identity of its own where no file says that it is one, as in the simulator.
    package func renewIdentity() throws {
        try write {
            try DatabaseIdentity.renew($0.database, options)
            try $0.versionTable.reload()
        }
    }
}
