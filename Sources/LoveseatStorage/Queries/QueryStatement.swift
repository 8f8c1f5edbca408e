import GRDB
private import GRDBSQLite
package import LoveseatModel
package import LoveseatQuery

/// A value of a query's result.
package enum ResultValue: Hashable, Sendable {
    case missing, null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
    /// An array, an object, or a number that is neither an `Int64` nor a double.
    case json(JSONText)

    /// About how much memory it needs, in bytes.
    package var cost: Int {
        switch self {
        case .string(let text): 48 + text.utf8.count
        case .json(let text): 64 + text.bytes.count
        default: 24
        }
    }
}

extension StoreReadTransaction {
    /// Runs a query, and passes its rows, until `visit` returns false.
    package func run(
        _ query: TranslatedQuery,
        _ parameters: [String: JSONValue],
        visit: ([ResultValue]) throws -> Bool
    ) throws {
        if let unknown = parameters.keys.sorted().first(where: { !query.parameterNames.contains($0) }) {
            throw LoveseatError(
                .invalidQueryParameter,
                "the query has no parameter $\(unknown): remove its value, or correct the name"
            )
        }
        try interruption?.check()
        let statement = try QueryStatement(query.sql, in: database)
        defer { statement.reset() }
        for (position, parameter) in query.parameters.enumerated() {
            statement.bind(Int32(position + 1), parameter.binding(for: parameters[parameter.name]))
        }
        while try statement.step() {
            guard try visit(statement.row(query.columns.count)) else { return }
        }
    }

    /// Makes SQLite understand a query, which has limits of its own.
    ///
    /// - Throws: `invalidQuery`; an error of the disk.
    package func prepare(_ query: TranslatedQuery) throws(LoveseatError) {
        do { try QueryStatement(query.sql, in: database).reset() } catch let error as DatabaseError
            where error.resultCode == .SQLITE_ERROR
        {
            throw LoveseatError(
                .invalidQuery,
                "SQLite refuses the query (\(error.message ?? "no reason")): nest less, or ask for fewer columns"
            )
        } catch { throw LoveseatError(storage: error) }
    }

    /// The steps of SQLite's plan for a query, one a line, with the app's names of indexes.
    package func plan(_ query: TranslatedQuery) throws -> [String] {
        // An explanation does not look at the file, so the connection may not know of an index that another one has created. This does.
        _ = try Int.fetchOne(database, sql: "SELECT 1 FROM sqlite_schema LIMIT 1")
        let statement = try QueryStatement("EXPLAIN QUERY PLAN " + query.sql, in: database)
        defer { statement.reset() }
        var lines: [String] = []
        let names = collections.flatMap { indexes(of: $0) }
        while try statement.step() {
            guard case .string(var line) = statement.value(3) else { continue }
            for index in names { line = line.replacing(index.sqlName, with: index.name) }
            lines.append(line)
        }
        return lines
    }
}

/// A statement of a query, which may run while another one of the same text does.
private struct QueryStatement {
    private let statement: Statement
    private let pointer: OpaquePointer
    private let database: Database

    init(_ sql: String, in database: Database) throws {
        let cached = try database.cachedStatement(sql: sql)
        statement =
            sqlite3_stmt_busy(cached.sqliteStatement) == 0 ? cached : try database.makeStatement(sql: sql)
        pointer = statement.sqliteStatement
        self.database = database
        sqlite3_reset(pointer)
    }

    func reset() { sqlite3_reset(pointer) }

    func bind(_ position: Int32, _ value: QueryBinding) {
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .null: sqlite3_bind_null(pointer, position)
        case .integer(let value): sqlite3_bind_int64(pointer, position, value)
        case .double(let value): sqlite3_bind_double(pointer, position, value)
        case .text(let text):
            Array(text.utf8).withUnsafeBytes {
                // Empty text must not be bound as NULL.
                let start = $0.baseAddress ?? UnsafeRawPointer(StaticString("").utf8Start)
                _ = sqlite3_bind_text64(
                    pointer,
                    position,
                    start.assumingMemoryBound(to: CChar.self),
                    UInt64($0.count),
                    transient,
                    UInt8(SQLITE_UTF8)
                )
            }
        case .blob(let bytes):
            bytes.withUnsafeBytes {
                let start = $0.baseAddress ?? UnsafeRawPointer(StaticString("").utf8Start)
                _ = sqlite3_bind_blob64(pointer, position, start, UInt64($0.count), transient)
            }
        }
    }

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

    func row(_ count: Int) -> [ResultValue] { (0..<Int32(count)).map { value($0) } }

    func value(_ column: Int32) -> ResultValue {
        switch sqlite3_column_type(pointer, column) {
        case SQLITE_NULL: return .missing
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(pointer, column))
        case SQLITE_FLOAT: return .double(sqlite3_column_double(pointer, column))
        case SQLITE_TEXT: return .string(String(decoding: bytes(column), as: UTF8.self))
        default:
            let bytes = bytes(column)
            switch bytes.count {
            case 4 where bytes.elementsEqual("null".utf8): return .null
            case 4 where bytes.elementsEqual("true".utf8): return .boolean(true)
            case 5 where bytes.elementsEqual("false".utf8): return .boolean(false)
            default: return .json(JSONText(trusted: Array(bytes)))
            }
        }
    }

    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        // The pointer comes first: it may convert the value, which changes its length.
        let start = sqlite3_column_blob(pointer, column)
        return UnsafeRawBufferPointer(
            start: start,
            count: start == nil ? 0 : Int(sqlite3_column_bytes(pointer, column))
        )
    }
}
