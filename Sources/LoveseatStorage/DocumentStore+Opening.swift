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
        try refuseEmptied(folder)
        return try wrapping {
            let file = "\(folder)/db.sqlite"
            try createPrivateFile(file)
            let changes = ChangeHub()
            var transactions = configuration(options, cacheSize: options.cacheSize)
            transactions.targetQueue = markedQueue(changes)
            // A transaction that cannot be rolled back is an error of the next call, and not the end of the program.
            transactions.allowsUnsafeTransactions = true
            let pool = try DatabasePool(path: file, configuration: transactions)
            try prepare(pool, options: options, folder: folder)
            try DatabaseIdentity.claim(file, pool, options)
            var readOnly = configuration(options, cacheSize: options.cacheSize)
            readOnly.readonly = true
            // See KeptRead.
            readOnly.allowsUnsafeTransactions = true
            let rows = try DatabaseQueue(path: file, configuration: readOnly)
            let blobs = try BlobFiles(folder: "\(folder)/blobs", syncs: true)
            var options = options
            try rememberAncestorBodies(&options, pool)
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
        return String(last.hasSuffix(".loveseat") ? last.dropLast(9) : last)
    }

    /// Records that ancestors keep their bodies, or reads that an earlier process requested it.
    private static func rememberAncestorBodies(_ options: inout Options, _ writer: any DatabaseWriter) throws
    {
        let key = "ancestor_bodies"
        let before =
            try writer.unsafeReentrantWrite {
                try Int.fetchOne($0, sql: "SELECT value FROM info WHERE key = ?", arguments: [key])
            } ?? 0
        if options.remembersAncestorBodies {
            options.ancestorBodiesKept = max(options.ancestorBodiesKept, before)
        }
        let now = options.ancestorBodiesKept
        if now == before { return }
        try writer.writeWithoutTransaction {
            try $0.execute(
                sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
                arguments: [key, now]
            )
        }
    }

    /// Creates an empty file that only its owner can read, if it does not exist. SQLite gives its other files the same mode.
    static func createPrivateFile(_ path: String) throws(LoveseatError) {
        // The names of these functions are also those of methods here.
        let descriptor = LoveseatPlatform.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("open", path) }
        _ = LoveseatPlatform.close(descriptor)
    }

    /// Opens a database folder without writing to it. SQLite separates readers from the writing process.
    private static func openForReading(folder: String, options: Options) throws(LoveseatError)
        -> DocumentStore
    {
        try refuseEmptied(folder)
        let readLock = options.excludesWriters ? FolderLock(excludingWritersOf: folder) : nil
        return try wrapping {
            let changes = ChangeHub()
            var readOnly = configuration(options, cacheSize: options.cacheSize)
            readOnly.readonly = true
            var path = "\(folder)/db.sqlite"
            // An SQLite that does not take URIs fails here. Any other error occurs again with the plain path.
            if readLock != nil, !hasLog(path),
                (try? DatabaseQueue(path: unchangingPath(path), configuration: readOnly)) != nil
            {
                path = unchangingPath(path)
            }
            let rows = try DatabaseQueue(path: path, configuration: readOnly)
            readOnly.targetQueue = markedQueue(changes)
            let snapshots = try DatabaseQueue(path: path, configuration: readOnly)
            guard try rows.read({ try checkFormat($0) }) > 0 else {
                throw wasCreated(folder) ? emptied(folder) : isUnfinished(folder)
            }
            let name = name(ofFolder: folder)
            let blobs = BlobFiles(readingFrom: "\(folder)/blobs", refusal: isReadOnly(name))
            return try DocumentStore(
                name: name,
                writer: snapshots,
                snapshots: snapshots,
                rows: rows,
                lock: nil,
                readLock: readLock,
                blobs: blobs,
                changes: changes,
                options: options
            )
        }
    }

    /// Whether commits are in a file beside the database, which another process left there.
    private static func hasLog(_ path: String) -> Bool {
        var status = stat()
        return stat("\(path)-wal", &status) == 0 && status.st_size > 0
    }

    /// The URI of a file that does not change. An SQLite that does not take URIs finds no such file.
    private static func unchangingPath(_ path: String) -> String {
        let escaped = path.replacing("%", with: "%25").replacing("?", with: "%3F").replacing("#", with: "%23")
        return "file:\(escaped)?immutable=1"
    }

    /// Creates a store in memory, for simulations; its blobs are files in the caller's folder.
    package static func inMemory(
        blobFolder: String,
        options: Options = Options()
    ) throws(LoveseatError) -> DocumentStore {
        try wrapping {
            let changes = ChangeHub()
            var transactions = configuration(options, cacheSize: 2 << 20)
            transactions.targetQueue = markedQueue(changes)
            let queue = try DatabaseQueue(configuration: transactions)
            try prepare(queue, options: options, folder: nil)
            let blobs = try BlobFiles(folder: blobFolder, syncs: false)
            return try DocumentStore(
                name: "memory",
                writer: queue,
                snapshots: queue,
                rows: queue,
                lock: nil,
                blobs: blobs,
                changes: changes,
                options: options
            )
        }
    }

    private static func configuration(_ options: Options, cacheSize: Int) -> Configuration {
        var configuration = Configuration()
        configuration.label = "Loveseat"
        configuration.busyMode = .timeout(options.busyTimeout / .seconds(1))
        configuration.maximumReaderCount = readers
        configuration.prepareDatabase { db in
            if let connection = db.sqliteConnection {
                let code = ResultCode(
                    rawValue: QuerySQLFunctions.register(
                        on: connection,
                        counter: db.configuration.readonly ? nil : options.walks
                    )
                )
                guard code == .SQLITE_OK else { throw DatabaseError(resultCode: code) }
            }
            // Written pages go to the log at the commit, so the connection that writes needs less cache.
            try db.execute(sql: "PRAGMA cache_size = -\(cacheSize >> (db.configuration.readonly ? 10 : 11))")
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA synchronous = \(options.fullSync ? "FULL" : "NORMAL")")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000")
            }
        }
        return configuration
    }

    /// Refuses files that are not a Loveseat database, or have a newer format; returns the format, 0 for an empty file.
    private static func checkFormat(_ db: Database) throws -> Int32 {
        let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let isEmpty = {
            let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
            return application == 0 && tables == 0
        }
        guard try application == Schema.applicationID || isEmpty() else {
            throw LoveseatError(.unreadableDatabase, "db.sqlite is an SQLite file of another program")
        }
        guard version <= Schema.version else {
            throw LoveseatError(
                .databaseTooNew,
                "the database has format \(version), and this version of Loveseat supports \(Schema.version): update Loveseat"
            )
        }
        return version
    }

    /// Creates the tables of a new database, or migrates those of an older format. A store in memory has no folder.
    private static func prepare(_ writer: any DatabaseWriter, options: Options, folder: String?) throws {
        try writer.writeWithoutTransaction { db in
            let version = try checkFormat(db)
            guard version == 0 else { return try migrate(db, from: version) }
            if let folder, wasCreated(folder) { throw emptied(folder) }
            try db.inTransaction {
                try db.execute(sql: Schema.shared)
                try DatabaseIdentity.create(db, options)
                let first = CollectionHandle(
                    number: 1,
                    name: .default,
                    table: CollectionName.default.fullName
                )
                try db.execute(sql: Schema.collection(first.table))
                try db.execute(
                    sql: "INSERT INTO collections (number, scope, name, table_name) VALUES (1, ?, ?, ?)",
                    arguments: [first.name.scope, first.name.name, first.table]
                )
                try db.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
                try db.execute(sql: "PRAGMA user_version = \(Schema.version)")
                return .commit
            }
            // `blobs/`, which is made next, says that the tables are on the disk.
            _ = try Row.fetchAll(db, sql: "PRAGMA wal_checkpoint(FULL)")
        }
    }

    private static func isUnfinished(_ folder: String) -> LoveseatError {
        LoveseatError(
            .notFound,
            "there is no database in \(folder) yet: its creation has not finished, and the next process that opens it for writing finishes it"
        )
    }

    /// Migrates an older format in one transaction.
    private static func migrate(_ db: Database, from version: Int32) throws {
        guard version < Schema.version else {
            // Nothing happens, except in databases that were made while version 7 was being developed.
            return try db.execute(sql: Schema.additions)
        }
        try db.inTransaction {
            if version < 2 { try db.execute(sql: Schema.grants) }
            if version < 3 { try db.execute(sql: Schema.marks) }
            if version < 4 { try db.execute(sql: Schema.losses) }
            if version < 5 { try db.execute(sql: Schema.markRanges) }
            if version < 6 { try db.execute(sql: Schema.indexes) }
            try db.execute(sql: Schema.additions)
            try db.execute(sql: "PRAGMA user_version = \(Schema.version)")
            return .commit
        }
    }
}
