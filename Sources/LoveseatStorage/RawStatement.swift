import GRDB
import GRDBSQLite
import LoveseatModel

/// A GRDB statement that is stepped directly: a row costs a tenth of what a `Row` costs.
struct RawStatement {
    private let pointer: OpaquePointer
    private let database: Database

    /// `sql`: a text of our own, which is ASCII. Of what people write, see ``GRDB/Database/cachedStatement(exactly:)``.
    init(_ sql: String, in database: Database) throws {
        self.init(try database.cachedStatement(sql: sql), in: database)
    }

    /// The caller keeps the statement.
    init(_ statement: Statement, in database: Database) {
        pointer = statement.sqliteStatement
        self.database = database
        sqlite3_reset(pointer)
    }

    // SQLite copies bound values before the call returns.
    private static var transient: sqlite3_destructor_type {
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    func bind(_ index: Int32, _ text: String) {
        var text = text
        text.withUTF8 { bytes in
            _ = bytes.withMemoryRebound(to: CChar.self) {
                // An empty string may have no address, which SQLite would take as NULL.
                sqlite3_bind_text(
                    pointer,
                    index,
                    $0.baseAddress ?? Self.empty,
                    Int32($0.count),
                    Self.transient
                )
            }
        }
    }

    func bindText(_ index: Int32, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes {
            _ = sqlite3_bind_text64(
                pointer,
                index,
                $0.assumingMemoryBound(to: CChar.self).baseAddress ?? Self.empty,
                UInt64($0.count),
                Self.transient,
                UInt8(SQLITE_UTF8)
            )
        }
    }

    func bind(_ index: Int32, blob bytes: [UInt8]?) {
        guard let bytes else {
            sqlite3_bind_null(pointer, index)
            return
        }
        bytes.withUnsafeBytes {
            _ = sqlite3_bind_blob64(pointer, index, $0.baseAddress, UInt64($0.count), Self.transient)
        }
    }

    func bind(_ index: Int32, _ value: Int64?) {
        if let value { sqlite3_bind_int64(pointer, index, value) } else { sqlite3_bind_null(pointer, index) }
    }

    func bind(_ index: Int32, _ value: Double) { sqlite3_bind_double(pointer, index, value) }

    private static var empty: UnsafePointer<CChar> {
        UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)
    }

    /// Moves to the next row; false at the end.
    func step() throws -> Bool {
        switch sqlite3_step(pointer) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            let message = database.lastErrorMessage
            sqlite3_reset(pointer)
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
        }
    }

    /// Runs a statement that returns no rows, and returns the number of changed rows.
    @discardableResult
    func run() throws -> Int {
        defer { reset() }
        _ = try step()
        return Int(sqlite3_changes(database.sqliteConnection))
    }

    /// Releases the statement's locks.
    func reset() { sqlite3_reset(pointer) }

    func int(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

    func double(_ column: Int32) -> Double { sqlite3_column_double(pointer, column) }

    /// The kind of value, such as `SQLITE_NULL`.
    func type(_ column: Int32) -> Int32 { sqlite3_column_type(pointer, column) }

    func isNull(_ column: Int32) -> Bool { type(column) == SQLITE_NULL }

    func string(_ column: Int32) -> String { String(decoding: buffer(column), as: UTF8.self) }

    func bytes(_ column: Int32) -> [UInt8] { Array(buffer(column)) }

    func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

    /// The bytes, until the next step.
    func buffer(_ column: Int32) -> UnsafeRawBufferPointer {
        // The pointer comes first: it may convert the value, which changes its length.
        let start = sqlite3_column_blob(pointer, column)
        return UnsafeRawBufferPointer(
            start: start,
            count: start == nil ? 0 : Int(sqlite3_column_bytes(pointer, column))
        )
    }
}

extension Database {
    /// A statement of the cache, whose keys are strings. Two texts that are canonically equivalent, and name two properties, would be one
    /// key there. So text that is not ASCII ends with a comment that distinguishes it.
    func cachedStatement(exactly sql: String) throws -> Statement {
        if sql.utf8.allSatisfy({ $0 < 0x80 }) { return try cachedStatement(sql: sql) }
        let hash = sql.utf8.reduce(into: 0xCBF2_9CE4_8422_2325 as UInt64) { hash, byte in
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return try cachedStatement(sql: "\(sql) -- \(hash)")
    }
}
