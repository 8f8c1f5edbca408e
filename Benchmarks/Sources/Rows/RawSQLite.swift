import CSQLite

/// SQLite through its C API, on the same rows and with the same settings as the store: what there is to reach.
final class RawSQLite {
    private var handle: OpaquePointer?
    private var insertion: OpaquePointer?
    private var selection: OpaquePointer?
    private var update: OpaquePointer?

    init(path: String) {
        check(sqlite3_open(path, &handle))
        run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32768")
        run("PRAGMA wal_autocheckpoint = 4000")
        run(
            """
            CREATE TABLE docs (row INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, sequence INTEGER NOT NULL,
                revision TEXT NOT NULL, flags INTEGER NOT NULL, body TEXT NOT NULL);
            CREATE UNIQUE INDEX by_id ON docs (doc_id);
            CREATE UNIQUE INDEX by_sequence ON docs (sequence);
            """
        )
        insertion = prepare("INSERT INTO docs (doc_id, sequence, revision, flags, body) VALUES (?1, ?2, ?3, 0, ?4)")
        selection = prepare("SELECT sequence, revision, flags, body FROM docs WHERE doc_id = ?1")
        update = prepare("UPDATE docs SET sequence = ?2, revision = ?3, body = ?4 WHERE doc_id = ?1")
    }

    deinit {
        for statement in [insertion, selection, update] { sqlite3_finalize(statement) }
        sqlite3_close(handle)
    }

    private func check(_ code: Int32) {
        guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else {
            fatalError("SQLite: \(String(cString: sqlite3_errmsg(handle)))")
        }
    }

    func run(_ sql: String) { check(sqlite3_exec(handle, sql, nil, nil, nil)) }

    private func prepare(_ sql: String) -> OpaquePointer? {
        var statement: OpaquePointer?
        check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        return statement
    }

    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    private static let revision = "1-0123456789abcdef0123456789abcdef01234567"

    private func bind(_ statement: OpaquePointer?, _ id: String, _ sequence: Int, _ body: [UInt8]) {
        sqlite3_bind_text(statement, 1, id, -1, Self.transient)
        sqlite3_bind_int64(statement, 2, Int64(sequence))
        sqlite3_bind_text(statement, 3, Self.revision, -1, Self.transient)
        body.withUnsafeBytes { bytes in
            _ = sqlite3_bind_text(
                statement,
                4,
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
                Int32(bytes.count),
                Self.transient
            )
        }
    }

    func insert(_ id: String, _ sequence: Int, _ body: [UInt8]) {
        bind(insertion, id, sequence, body)
        check(sqlite3_step(insertion))
        sqlite3_reset(insertion)
    }

    func update(_ id: String, _ sequence: Int, _ body: [UInt8]) {
        bind(update, id, sequence, body)
        check(sqlite3_step(update))
        sqlite3_reset(update)
    }

    /// The body as a string would be read, and one property found in it by SQLite's own JSON functions is not asked
    /// for: the app parses.
    func body(_ id: String) -> [UInt8] {
        sqlite3_bind_text(selection, 1, id, -1, Self.transient)
        check(sqlite3_step(selection))
        let count = Int(sqlite3_column_bytes(selection, 3))
        let bytes = [UInt8](UnsafeRawBufferPointer(start: sqlite3_column_text(selection, 3), count: count))
        sqlite3_reset(selection)
        return bytes
    }
}
