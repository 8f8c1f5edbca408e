import GRDBSQLite
import LoveseatQuery
import Synchronization

/// Counts how often the connection that writes has looked for a property, which shows the progress of making an index.
final class WalkCounter: Sendable {
    private let walks = Atomic<Int64>(0)

    var count: Int64 { walks.load(ordering: .relaxed) }

    /// Called only by the thread that has the connection, so nothing can come in between.
    @inline(__always)
    func increment() { walks.store(count + 1, ordering: .relaxed) }
}

/// The functions that read documents: they run for each row, and walk over the JSON text without building anything.
enum PathFunctions {
    /// A path that SQLite keeps with the statement, so that it is read once.
    private final class KeptPath {
        let path: QueryPath
        init(_ path: QueryPath) { self.path = path }
    }

    /// Calls with the path that an argument holds.
    @inline(__always)
    private static func withPath<T>(
        _ context: OpaquePointer?,
        _ index: Int32,
        _ value: OpaquePointer?,
        _ body: (QueryPath) -> T
    ) -> T? {
        if let kept = sqlite3_get_auxdata(context, index) {
            return Unmanaged<KeptPath>.fromOpaque(kept)._withUnsafeGuaranteedRef { body($0.path) }
        }
        guard let path = QueryPath(SQLiteValues.bytes(value)) else { return nil }
        let result = body(path)
        let kept = Unmanaged.passRetained(KeptPath(path)).toOpaque()
        sqlite3_set_auxdata(context, index, kept) { pointer in
            if let pointer { Unmanaged<KeptPath>.fromOpaque(pointer).release() }
        }
        return result
    }

    /// `ls_value(body, path)`: a property, for comparing and computing.
    static func value(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL else {
            return sqlite3_result_null(context)
        }
        if let counter = sqlite3_user_data(context) {
            Unmanaged<WalkCounter>.fromOpaque(counter)._withUnsafeGuaranteedRef { $0.increment() }
        }
        let walker = JSONWalker(SQLiteValues.bytes(values[0]))
        let found = withPath(context, 1, values[1]) { walker.find($0) }
        write(walker, found ?? nil, context)
    }

    /// Writes the value at a place of a text.
    static func write(_ walker: JSONWalker, _ position: Int?, _ context: OpaquePointer?) {
        guard let position, let kind = walker.kind(at: position) else { return sqlite3_result_null(context) }
        switch kind {
        case .null: sqlite3_result_zeroblob(context, 0)
        case .bool:
            sqlite3_result_int(context, walker.isTrue(at: position) ? 1 : 0)
            sqlite3_result_subtype(context, QueryMark.boolean)
        case .number: SQLiteValues.write(walker.number(at: position), context)
        case .string:
            if let plain = walker.plainString(at: position) {
                SQLiteValues.write(text: plain, context)
            } else {
                SQLiteValues.write(text: walker.string(at: position), context)
            }
        case .array: SQLiteValues.write(mark: QueryMark.array, walker.text(at: position), context)
        case .object: SQLiteValues.write(mark: QueryMark.object, walker.text(at: position), context)
        }
    }

    /// `ls_result(body, path)`: a property as rows are read.
    static func result(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL else {
            return sqlite3_result_null(context)
        }
        let walker = JSONWalker(SQLiteValues.bytes(values[0]))
        guard let found = withPath(context, 1, values[1], { walker.find($0) }), let position = found,
            let kind = walker.kind(at: position)
        else { return sqlite3_result_null(context) }
        switch kind {
        case .number:
            let number = walker.number(at: position)
            // An integer beyond Int64 stays exact.
            if case .unsigned = number {
                SQLiteValues.write(blob: walker.text(at: position), context)
            } else {
                SQLiteValues.write(number, context)
            }
        case .string: write(walker, position, context)
        case .null, .bool, .array, .object: SQLiteValues.write(blob: walker.text(at: position), context)
        }
    }

    /// `ls_nested(value, path)`: a path into an array or object that was computed.
    static func nested(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values, let text = json(values[0]) else { return sqlite3_result_null(context) }
        let walker = JSONWalker(text)
        let found = withPath(context, 1, values[1]) { walker.find($0) }
        write(walker, found ?? nil, context)
    }

    /// The JSON text of an array or object; nil for anything else.
    static func json(_ value: OpaquePointer?) -> UnsafeBufferPointer<UInt8>? {
        guard sqlite3_value_type(value) == SQLITE_BLOB else { return nil }
        let bytes = SQLiteValues.bytes(value)
        guard bytes.first == QueryMark.array || bytes.first == QueryMark.object else { return nil }
        return UnsafeBufferPointer(rebasing: bytes.dropFirst())
    }

    /// `ls_any(body, path, value)` or `ls_any(array, NULL, value)`: whether an array or object has a scalar.
    static func any(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values else { return sqlite3_result_null(context) }
        let isBody = sqlite3_value_type(values[1]) != SQLITE_NULL
        let text: UnsafeBufferPointer<UInt8>?
        if isBody {
            text = sqlite3_value_type(values[0]) == SQLITE_NULL ? nil : SQLiteValues.bytes(values[0])
        } else {
            text = json(values[0])
        }
        guard let text else { return sqlite3_result_zeroblob(context, 0) }
        let walker = JSONWalker(text)
        let found = isBody ? withPath(context, 1, values[1]) { walker.find($0) } ?? nil : walker.start
        guard let found, let kind = walker.kind(at: found), kind == .array || kind == .object else {
            return sqlite3_result_zeroblob(context, 0)
        }
        SQLiteValues.write(QueryFunctions.contains(walker, at: found, SQLiteValues.read(values[2])), context)
    }

    /// `ls_words(body, path)`: the text of a property for full-text search.
    static func words(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
        guard let values, sqlite3_value_type(values[0]) != SQLITE_NULL else {
            return sqlite3_result_null(context)
        }
        let walker = JSONWalker(SQLiteValues.bytes(values[0]))
        guard let found = withPath(context, 1, values[1], { walker.find($0) }), let position = found else {
            return sqlite3_result_null(context)
        }
        SQLiteValues.write(text: FullTextWords.text(walker, position), context)
    }
}
