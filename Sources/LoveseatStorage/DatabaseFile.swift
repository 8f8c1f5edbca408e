import GRDB
import LoveseatModel
private import LoveseatPlatform

/// The file of a database: how it is created, recognised and migrated.
enum DatabaseFile {
    /// Creates an empty file that only its owner can read, if it does not exist. SQLite gives its other files the same mode.
    static func create(_ path: String) throws(LoveseatError) {
        let descriptor = LoveseatPlatform.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("open", path) }
        _ = LoveseatPlatform.close(descriptor)
    }

    /// Whether commits are in a file beside the database, which another process left there.
    static func hasLog(_ path: String) -> Bool {
        var status = stat()
        return stat("\(path)-wal", &status) == 0 && status.st_size > 0
    }

    /// The URI of a file that does not change. An SQLite that does not take URIs finds no such file.
    static func unchangingPath(_ path: String) -> String {
        let escaped = path.replacing("%", with: "%25").replacing("?", with: "%3F").replacing("#", with: "%23")
        return "file:\(escaped)?immutable=1"
    }

    /// Records that ancestors keep their bodies, or reads that an earlier process requested it.
    static func rememberAncestorBodies(_ options: inout DocumentStore.Options, _ writer: any DatabaseWriter)
        throws
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

    /// Refuses files that are not a Loveseat database, or have a newer format; returns the format, 0 for an empty file.
    static func checkFormat(_ db: Database) throws -> Int32 {
        let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let isEmpty = {
            let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master")
            return application == 0 && tables == 0
        }
        guard try application == Schema.applicationID || isEmpty() else {
            throw LoveseatError(.unreadableDatabase, "db.sqlite is an SQLite file of another program")
        }
        guard version <= Schema.versionWithVectors else {
            throw LoveseatError(
                .databaseTooNew,
                "the database has format \(version), and this version of Loveseat supports \(Schema.versionWithVectors): update Loveseat"
            )
        }
        return version
    }

    /// Creates the tables of a new database, or migrates those of an older format. A store in memory has no folder.
    static func prepare(_ writer: any DatabaseWriter, options: DocumentStore.Options, folder: String?) throws
    {
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

    /// Migrates an older format in one transaction.
    private static func migrate(_ db: Database, from version: Int32) throws {
        guard version < Schema.version else {
            // Nothing happens, except in databases of an earlier code of version 7, which knew fewer tables.
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
