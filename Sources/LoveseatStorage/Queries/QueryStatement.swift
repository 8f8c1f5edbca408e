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
        case .missing, .null, .boolean, .integer, .double: 24
        }
    }
}

extension StoreReadTransaction {
    /// Runs a query, and passes its rows, until `visit` returns false.
    package func run(
        _ query: TranslatedQuery,
        _ parameters: JSONObject,
        visit: ([ResultValue]) throws -> Bool
    ) throws {
        if let unknown = parameters.keys.sorted().first(where: {
            !query.parameterNames.contains(ExactText($0))
        }) {
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
            if try !visit(statement.row(query.columns.count)) { return }
        }
    }

    /// Lets SQLite compile a query, which checks SQLite's own limits.
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
        // An explanation does not read the file, so the connection may not know of an index that another one has created. This statement
        // reads it.
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
    // Kept because it need not be in the cache.
    private let statement: Statement
    private let raw: RawStatement

    init(_ sql: String, in database: Database) throws {
        let cached = try database.cachedStatement(exactly: sql)
        statement =
            sqlite3_stmt_busy(cached.sqliteStatement) == 0 ? cached : try database.makeStatement(sql: sql)
        raw = RawStatement(statement, in: database)
    }

    func reset() { raw.reset() }

    func step() throws -> Bool { try raw.step() }

    func bind(_ position: Int32, _ value: QueryBinding) {
        switch value {
        case .null: raw.bind(position, nil as Int64?)
        case .integer(let value): raw.bind(position, value)
        case .double(let value): raw.bind(position, value)
        case .text(let text): raw.bindText(position, Array(text.utf8))
        case .blob(let bytes): raw.bind(position, blob: bytes)
        }
    }

    func row(_ count: Int) -> [ResultValue] { (0..<Int32(count)).map { value($0) } }

    func value(_ column: Int32) -> ResultValue {
        switch raw.type(column) {
        case SQLITE_NULL: return .missing
        case SQLITE_INTEGER: return .integer(raw.int(column))
        case SQLITE_FLOAT: return .double(raw.double(column))
        case SQLITE_TEXT: return .string(raw.string(column))
        default:
            let bytes = raw.buffer(column)
            switch bytes.count {
            case 4 where bytes.elementsEqual("null".utf8): return .null
            case 4 where bytes.elementsEqual("true".utf8): return .boolean(true)
            case 5 where bytes.elementsEqual("false".utf8): return .boolean(false)
            default: return .json(JSONText(trusted: Array(bytes)))
            }
        }
    }
}
