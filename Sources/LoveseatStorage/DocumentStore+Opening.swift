import GRDB
package import LoveseatModel
private import LoveseatPlatform

/// How a store is opened, created and migrated.
extension DocumentStore {
    /// Opens a database folder, and creates it if it does not exist.
    ///
    /// - Throws: ``LoveseatError``: `busy` if another process has it open, `unreadableDatabase` for a file of another
    ///   kind, `corruptData` for one that lost its content, `databaseTooNew`, or an error of the disk.
    package static func open(folder: String, options: Options = Options()) throws(LoveseatError)
        -> DocumentStore
    {
        if options.isReadOnly { return try openForReading(folder: folder, options: options) }
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw BlobFiles.failure("make", folder) }
        let lock = try FolderLock(folder: folder)
        try DatabaseFile.refuseEmptied(folder)
        return try wrapping {
            let file = "\(folder)/db.sqlite"
            try DatabaseFile.create(file)
            let changes = ChangeHub()
            var transactions = SQLiteConnections.configuration(options, cacheSize: options.cacheSize)
            transactions.targetQueue = markedQueue(changes)
            // A transaction that cannot be rolled back is an error of the next call, and not the end of the program.
            transactions.allowsUnsafeTransactions = true
            let pool = try DatabasePool(path: file, configuration: transactions)
            try DatabaseFile.prepare(pool, options: options, folder: folder)
            try DatabaseIdentity.claim(file, pool, options)
            try SourceRenewal.perform(pool, options)
            var readOnly = SQLiteConnections.configuration(options, cacheSize: options.cacheSize)
            readOnly.readonly = true
            // See KeptRead.
            readOnly.allowsUnsafeTransactions = true
            let rows = RowsConnection { [readOnly] in try DatabaseQueue(path: file, configuration: readOnly) }
            let blobs = try BlobFiles(folder: "\(folder)/blobs", syncs: true)
            var options = options
            try DatabaseFile.rememberAncestorBodies(&options, pool)
            return try DocumentStore(
                name: name(ofFolder: folder),
                writer: pool,
                snapshots: pool,
                rows: rows,
                lock: lock,
                blobs: blobs,
                changes: changes,
                options: options
            )
        }
    }

    /// A database's name is that of its folder, without the ending.
    private static func name(ofFolder folder: String) -> String {
        let last = folder.split(separator: "/").last ?? ""
        return String(last.lastIndex(of: ".").map { last[..<$0] } ?? last)
    }

    /// Opens a database folder without writing to it. SQLite separates readers from the writing process.
    private static func openForReading(folder: String, options: Options) throws(LoveseatError)
        -> DocumentStore
    {
        try DatabaseFile.refuseEmptied(folder)
        let readLock = options.excludesWriters ? FolderLock(excludingWritersOf: folder) : nil
        return try wrapping {
            let changes = ChangeHub()
            var readOnly = SQLiteConnections.configuration(options, cacheSize: options.cacheSize)
            readOnly.readonly = true
            var path = "\(folder)/db.sqlite"
            // An SQLite that does not take URIs fails here. Any other error occurs again with the plain path.
            if readLock != nil, !DatabaseFile.hasLog(path),
                (try? DatabaseQueue(path: DatabaseFile.unchangingPath(path), configuration: readOnly)) != nil
            {
                path = DatabaseFile.unchangingPath(path)
            }
            let rows = try DatabaseQueue(path: path, configuration: readOnly)
            readOnly.targetQueue = markedQueue(changes)
            let snapshots = try DatabaseQueue(path: path, configuration: readOnly)
            guard try rows.read({ try DatabaseFile.checkFormat($0) }) > 0 else {
                throw DatabaseFile.wasCreated(folder)
                    ? DatabaseFile.emptied(folder) : DatabaseFile.isUnfinished(folder)
            }
            let name = name(ofFolder: folder)
            let blobs = BlobFiles(readingFrom: "\(folder)/blobs", refusal: .isReadOnly(name))
            return try DocumentStore(
                name: name,
                writer: snapshots,
                snapshots: snapshots,
                rows: RowsConnection(rows),
                lock: nil,
                readLock: readLock,
                blobs: blobs,
                changes: changes,
                options: options
            )
        }
    }

    /// Creates a store in memory, for simulations; its blobs are files in the caller's folder.
    package static func inMemory(
        blobFolder: String,
        options: Options = Options()
    ) throws(LoveseatError) -> DocumentStore {
        try wrapping {
            let changes = ChangeHub()
            var transactions = SQLiteConnections.configuration(options, cacheSize: 2 << 20)
            transactions.targetQueue = markedQueue(changes)
            let queue = try DatabaseQueue(configuration: transactions)
            try DatabaseFile.prepare(queue, options: options, folder: nil)
            let blobs = try BlobFiles(folder: blobFolder, syncs: false)
            return try DocumentStore(
                name: "memory",
                writer: queue,
                snapshots: queue,
                rows: RowsConnection(queue),
                lock: nil,
                blobs: blobs,
                changes: changes,
                options: options
            )
        }
    }
}
