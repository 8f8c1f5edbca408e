import CRawQueries

/// SQLite through its C API, on the columns that the store has: what there is to reach.
final class RawTable {
    private var handle: OpaquePointer?

    init(path: String, megabytes: Int) throws {
        try check(sqlite3_open(path, &handle))
        try check(raw_register(handle))
        try run(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -\(megabytes << 10)"
        )
        try run("PRAGMA case_sensitive_like = ON")
        try run(
            """
            CREATE TABLE docs (row INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, sequence INTEGER NOT NULL, revision TEXT NOT NULL,
                flags INTEGER NOT NULL, synced INTEGER, expires INTEGER, tree BLOB, body TEXT NOT NULL);
            CREATE UNIQUE INDEX by_id ON docs (doc_id);
            CREATE UNIQUE INDEX by_sequence ON docs (sequence);
            """
        )
    }

    deinit { sqlite3_close(handle) }

    func fill(_ count: Int, _ document: (Int) -> (id: String, json: String)) throws {
        let insert = try statement(
            "INSERT INTO docs (doc_id, sequence, revision, flags, body) VALUES (?1, ?2, '1-0123456789abcdef0123456789abcdef01234567', 0, ?3)"
        )
        try run("BEGIN")
        for number in 0..<count {
            let (id, json) = document(number)
            insert.bind(1, id)
            sqlite3_bind_int64(insert.pointer, 2, Int64(number))
            insert.bind(3, json)
            guard raw_run(insert.pointer) == 0 else { throw failure }
        }
        try run("COMMIT")
    }

    func run(_ sql: String) throws { try check(sqlite3_exec(handle, sql, nil, nil, nil)) }

    func statement(_ sql: String) throws -> RawStatement {
        var pointer: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil))
        return RawStatement(pointer: pointer)
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw failure }
    }

    private var failure: Failure {
        Failure(description: "SQLite: \(String(cString: sqlite3_errmsg(handle)))")
    }

    struct Failure: Error, CustomStringConvertible { let description: String }
}

final class RawStatement {
    fileprivate let pointer: OpaquePointer?

    init(pointer: OpaquePointer?) { self.pointer = pointer }

    deinit { sqlite3_finalize(pointer) }

    func bind(_ position: Int32, _ text: String) {
        sqlite3_bind_text(pointer, position, text, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
    }

    /// The number of rows.
    func rows() -> Int { raw_run(pointer) }
}
