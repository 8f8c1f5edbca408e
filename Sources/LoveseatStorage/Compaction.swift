import GRDB
private import GRDBSQLite
import LoveseatModel

/// One compaction of a store.
struct Compaction {
    let store: DocumentStore

    /// Writes something that reaches the disk with a transaction, even if nothing else does.
    private static let compactionNote = """
        INSERT INTO info (key, value) VALUES ('compactions', 1)
        ON CONFLICT (key) DO UPDATE SET value = value + 1
        """

    func perform() throws -> (blobs: Int, bytes: UInt64) {
        let sizeBefore = try databaseSize()
        let freed = try store.blobs.collectGarbage {
            // This waits for the running transaction, whose references are not recorded. Removed references reach the disk before their
            // blobs are removed: otherwise a power loss would bring back documents without their blobs.
            try store.write(call: "compact()", durably: true) { transaction in
                try transaction.database.execute(sql: Self.compactionNote)
                try transaction.deletionTable.noteAll()
                try transaction.replacedTable.forgetAll()
            }
            return try store.read { try $0.referencedBlobs() }
        }
        try forgetMD5s()
        try store.maintain { db in
            try vacuum(db)
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        // The rest of the compaction does not depend on the blobs that are left.
        if let failure = freed.failure { throw failure }
        let sizeAfter = try databaseSize()
        return (freed.count, freed.bytes + (sizeBefore > sizeAfter ? sizeBefore - sizeAfter : 0))
    }

    /// Removes the MD5s of blobs that are not here any more.
    private func forgetMD5s() throws {
        var last: [UInt8] = []
        while true {
            let keys = try store.read { try $0.md5Keys(after: last) }
            // That was the last page.
            guard let end = keys.last else { return }
            last = end
            // A key that names no blob is damaged.
            let gone = keys.filter { key in
                key.count != 20 || store.blobs.length(BlobDigest(sha1: key)) == nil
            }
            if !gone.isEmpty { try store.write(call: "compact()") { try $0.md5Table.forget(gone) } }
        }
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
            sqlite3_busy_timeout(connection, store.options.busyTimeout.milliseconds)
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
        try store.read { try $0.fileSize().all }
    }
}
