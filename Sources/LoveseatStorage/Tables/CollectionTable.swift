import GRDB
import LoveseatModel

/// The table of collections.
enum CollectionTable {
    static let revisionLimitKey = "revision_limit"

    static func load(_ db: Database) throws -> StoreCatalog {
        var catalog = StoreCatalog()
        catalog.schemaVersion = try schemaVersion(db)
        catalog.remembersPurges = try PurgeTable.remembersAny(db)
        catalog.marks = try MarkTable.load(db)
        catalog.versions = try StoreVersions.load(db)
        catalog.revisionLimit = try Int.fetchOne(
            db,
            sql: "SELECT CAST(value AS INTEGER) FROM info WHERE key = ?",
            arguments: [revisionLimitKey]
        )
        let rows = try Row.fetchAll(
            db,
            sql: "SELECT number, scope, name, table_name, last_sequence FROM collections"
        )
        let starts = try firstSequences(db)
        for row in rows {
            guard let name = CollectionName(scope: try row.stored("scope"), name: try row.stored("name"))
            else {
                throw LoveseatError(
                    .corruptData,
                    "the table of collections contains a name that is not valid: run `check`"
                )
            }
            let number: Int64 = try row.stored("number")
            let handle = CollectionHandle(
                number: number,
                name: name,
                table: try row.stored("table_name"),
                firstSequence: UInt64(clamping: starts[number] ?? 0)
            )
            catalog.collections[name] = handle
            catalog.lastSequence[number] = UInt64(clamping: try row.stored("last_sequence") as Int64)
        }
        // A purge and a closing record the last sequence; other writes leave it to the rows.
        if let note = try ClosingNote(db) {
            catalog.having = note.having
        } else {
            try addContents(to: &catalog, db)
        }
        catalog.indexes = try IndexTable.load(db, of: catalog.collections.values)
        return catalog
    }

    /// Reads the sequences of the last rows of all collections, and which rare properties their documents have. Statements for each of many
    /// collections would take longer to prepare.
    private static func addContents(to catalog: inout StoreCatalog, _ db: Database) throws {
        let collections = Array(catalog.collections.values)
        let count = StoreReadTransaction.collectionsAtOnce
        let rarities = StoreReadTransaction.Rarity.allCases
        for start in stride(from: 0, to: collections.count, by: count) {
            let part = collections[start..<min(start + count, collections.count)]
            let sql = part.map { collection in
                let questions = rarities.map {
                    ", EXISTS (SELECT 1 FROM \"\(collection.table)\" WHERE \($0.rawValue))"
                }
                return """
                    SELECT \(collection.number), max(sequence)\(questions.joined()) FROM "\(collection.table)"
                    """
            }
            let rows = try Row.fetchCursor(db, sql: sql.joined(separator: " UNION ALL "))
            while let row = try rows.next() {
                let (number, sequence): (Int64, Int64?) = (row[0], row[1])
                let last = catalog.lastSequence[number] ?? 0
                catalog.lastSequence[number] = max(last, UInt64(clamping: sequence ?? 0))
                for (index, rarity) in rarities.enumerated() where row[index + 2] {
                    catalog.having[rarity, default: []].insert(number)
                }
            }
        }
    }

    private static let firstSequencePrefix = "first_sequence/"
    private static func firstSequenceKey(_ number: Int64) -> String { "\(firstSequencePrefix)\(number)" }

    /// The sequences after which collections began, by their numbers.
    private static func firstSequences(_ db: Database) throws -> [Int64: Int64] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT CAST(substr(key, length(?1) + 1) AS INTEGER) AS number, CAST(value AS INTEGER) AS value
                FROM info WHERE substr(key, 1, length(?1)) = ?1
                """,
            arguments: [firstSequencePrefix]
        )
        return Dictionary(rows.map { ($0["number"], $0["value"]) }) { first, _ in first }
    }

    /// A number that changes whenever the tables do.
    static func schemaVersion(_ db: Database) throws -> Int32 {
        let statement = try RawStatement("PRAGMA schema_version", in: db)
        defer { statement.reset() }
        return try statement.step() ? Int32(truncatingIfNeeded: statement.int(0)) : 0
    }

    /// SQLite's table names do not distinguish `A` from `a`, and those that begin with `sqlite_` are reserved. A
    /// connection may still serve a deleted collection: it must not find another one under the name of its table.
    static func tableName(
        _ name: CollectionName,
        number: Int64,
        taken: some Sequence<String>,
        followsDeleted: Bool
    ) -> String {
        let plain = name.fullName
        let isTaken = taken.contains { $0.lowercased() == plain.lowercased() }
        let isFree = !isTaken && !followsDeleted && !plain.lowercased().hasPrefix("sqlite_")
        return isFree ? plain : "\(number) \(plain)"
    }

    static func create(_ name: CollectionName, in db: Database, catalog: inout StoreCatalog) throws
        -> CollectionHandle
    {
        if let existing = catalog.collections[name] { return existing }
        let tables = catalog.collections.values.map(\.table)
        // Numbers are never used twice: a listener may still have the number of a deleted collection.
        let last = try Int64.fetchOne(db, sql: "SELECT value FROM info WHERE key = 'last_collection'") ?? 1
        let number = last + 1
        try db.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES ('last_collection', ?)",
            arguments: [number]
        )
        // Peers remember a sequence of a collection of this name: its sequences must not start again below that.
        let retired = try Int64.fetchOne(db, sql: "SELECT value FROM info WHERE key = 'retired_sequence'")
        let start = max(retired ?? 0, Int64(clamping: catalog.firstFree))
        let handle = CollectionHandle(
            number: number,
            name: name,
            table: tableName(name, number: number, taken: tables, followsDeleted: retired != nil),
            firstSequence: UInt64(clamping: start)
        )
        try db.execute(sql: Schema.collection(handle.table))
        if start > 0 {
            try db.execute(
                sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
                arguments: [firstSequenceKey(number), start]
            )
        }
        try db.execute(
            sql:
                "INSERT INTO collections (number, scope, name, table_name, last_sequence) VALUES (?, ?, ?, ?, ?)",
            arguments: [number, name.scope, name.name, handle.table, start]
        )
        catalog.collections[name] = handle
        catalog.lastSequence[number] = UInt64(clamping: start)
        catalog.highestSequence = max(catalog.highestSequence, UInt64(clamping: start))
        catalog.schemaVersion = try schemaVersion(db)
        return handle
    }

    /// Lets every collection that is made from now on begin behind a sequence.
    static func retire(_ sequence: UInt64, in db: Database) throws {
        let retired =
            try Int64.fetchOne(db, sql: "SELECT value FROM info WHERE key = 'retired_sequence'") ?? 0
        try db.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES ('retired_sequence', ?)",
            arguments: [max(Int64(clamping: sequence), retired)]
        )
    }

    static func delete(_ name: CollectionName, in db: Database, catalog: inout StoreCatalog) throws {
        // The collection may not exist, or another call may have deleted it.
        guard let handle = catalog.collections.removeValue(forKey: name) else { return }
        try retire(catalog.lastSequence.removeValue(forKey: handle.number) ?? 0, in: db)
        try db.execute(sql: "DROP TABLE \"\(handle.table)\"")
        for table in ["grants", "marks", "mark_ranges", "deletions", "ancestors", "replaced"] {
            try db.execute(sql: "DELETE FROM \(table) WHERE collection = ?", arguments: [handle.number])
        }
        catalog.marks[handle.number] = nil
        catalog.indexes[handle.number] = nil
        // Peers' checkpoints describe the collection without identifying it. Only those of CouchDB's wire name the collection.
        try db.execute(
            sql: "DELETE FROM peer_checkpoints WHERE substr(id, 1, 8) <> 'couchdb:' OR id LIKE ?",
            arguments: ["couchdb:\(handle.number)/%"]
        )
        try PurgeTable.forget(in: handle, db)
        try MigrationProgress.forget(in: handle, db)
        try db.execute(sql: "DELETE FROM info WHERE key = ?", arguments: [firstSequenceKey(handle.number)])
        try db.execute(sql: "DELETE FROM collections WHERE number = ?", arguments: [handle.number])
        catalog.schemaVersion = try schemaVersion(db)
    }
}
