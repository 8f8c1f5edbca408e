import GRDB
private import GRDBSQLite
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
        return try compactions.join { try performCompaction() }
    }

    /// Whether a compaction waits for the end of another one, so that one more call would change nothing.
    package var isCompactionWaiting: Bool { compactions.isWaiting }

    /// Writes something that reaches the disk with a transaction, even if nothing else does.
    private static let compactionNote = """
        INSERT INTO info (key, value) VALUES ('compactions', 1)
        ON CONFLICT (key) DO UPDATE SET value = value + 1
        """

    private func performCompaction() throws -> (blobs: Int, bytes: UInt64) {
        let sizeBefore = try databaseSize()
        let freed = try blobs.collectGarbage {
            // This waits for the running transaction, whose references are not recorded. Removed references reach the disk before their
            // blobs are removed: otherwise a power loss would bring back documents without their blobs.
            try write(durably: true) { transaction in
                try transaction.database.execute(sql: Self.compactionNote)
                try transaction.deletionTable.noteAll()
                try transaction.replacedTable.forgetAll()
            }
            return try read { try $0.referencedBlobs() }
        }
        try maintain { db in
            try vacuum(db)
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        // The rest of the compaction does not depend on the blobs that are left.
        if let failure = freed.failure { throw failure }
        let sizeAfter = try databaseSize()
        return (freed.count, freed.bytes + (sizeBefore > sizeAfter ? sizeBefore - sizeAfter : 0))
    }

    /// Returns free pages to the file system, on a connection of its own. GRDB records what a statement on its connections reads, which
    /// here is every table, and takes time with the square of their number.
    private func vacuum(_ db: Database) throws {
        guard let path = sqlite3_db_filename(db.sqliteConnection, "main"), path.pointee != 0 else {
            // A database in memory has one connection.
            return try db.execute(sql: "VACUUM")
        }
        var connection: OpaquePointer?
        defer { sqlite3_close_v2(connection) }
        var code = sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, nil)
        if code == SQLITE_OK, let connection {
            sqlite3_busy_timeout(connection, options.busyTimeout.milliseconds)
            // Indexes call the functions of queries.
            code = QuerySQLFunctions.register(on: connection)
        }
        if code == SQLITE_OK { code = sqlite3_exec(connection, "VACUUM", nil, nil, nil) }
        guard code == SQLITE_OK else {
            let message = connection.map { String(cString: sqlite3_errmsg($0)) }
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
        }
    }

    private func databaseSize() throws -> UInt64 {
        try read { transaction in
            let pages = try Int.fetchOne(transaction.database, sql: "PRAGMA page_count") ?? 0
            let size = try Int.fetchOne(transaction.database, sql: "PRAGMA page_size") ?? 0
            return UInt64(pages * size)
        }
    }

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
        // All data is in the files of the copy, even if they are not merged into one.
        defer { try? copy.close() }
        try copy.renewIdentity()
    }

    /// Gives a copy an identity of its own.
    package func renewIdentity() throws { try write { try DatabaseIdentity.renew($0.database, options) } }
}
