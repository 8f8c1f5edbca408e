import GRDBSQLite
import LoveseatQuery

// The values of the query language as SQLite's values; see `QueryMark` for those that SQLite has no kind for.

/// SQLite copies the bytes before the call returns.
var transientBytes: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

extension UnsafeBufferPointer<UInt8> {
    /// An address, even for no bytes: SQLite takes a null pointer as NULL.
    var address: UnsafePointer<UInt8> { baseAddress ?? StaticString("").utf8Start }
}

enum SQLiteValues {
    /// The bytes of a text or blob, valid until the function returns.
    static func bytes(_ value: OpaquePointer?) -> UnsafeBufferPointer<UInt8> {
        guard let start = sqlite3_value_blob(value) else { return UnsafeBufferPointer(start: nil, count: 0) }
        return UnsafeBufferPointer(
            start: start.assumingMemoryBound(to: UInt8.self),
            count: Int(sqlite3_value_bytes(value))
        )
    }

    static func string(_ value: OpaquePointer?) -> String { String(decoding: bytes(value), as: UTF8.self) }

    /// Reads an argument.
    static func read(_ value: OpaquePointer?) -> QueryValue {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER:
            let integer = sqlite3_value_int64(value)
            return sqlite3_value_subtype(value) == QueryMark.boolean ? .bool(integer != 0) : .integer(integer)
        case SQLITE_FLOAT: return .double(sqlite3_value_double(value))
        case SQLITE_TEXT: return .string(string(value))
        case SQLITE_BLOB:
            let bytes = bytes(value)
            switch bytes.first {
            case QueryMark.array?: return .array(Array(bytes.dropFirst()))
            case QueryMark.object?: return .object(Array(bytes.dropFirst()))
            case QueryMark.true?: return .bool(true)
            case QueryMark.false?: return .bool(false)
            default: return .null
            }
        default: return .missing
        }
    }

    static func read(_ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?) -> [QueryValue] {
        (0..<Int(count)).map { read(values?[$0]) }
    }

    /// Writes a result.
    static func write(_ value: QueryValue, _ context: OpaquePointer?) {
        switch value {
        case .missing: sqlite3_result_null(context)
        case .null: sqlite3_result_zeroblob(context, 0)
        case .bool(let value):
            sqlite3_result_int(context, value ? 1 : 0)
            sqlite3_result_subtype(context, QueryMark.boolean)
        case .integer(let value): sqlite3_result_int64(context, value)
        case .unsigned(let value): sqlite3_result_double(context, Double(value))
        case .double(let value): sqlite3_result_double(context, value)
        case .string(let value): write(text: value, context)
        case .array(let bytes): bytes.withUnsafeBufferPointer { write(mark: QueryMark.array, $0, context) }
        case .object(let bytes): bytes.withUnsafeBufferPointer { write(mark: QueryMark.object, $0, context) }
        }
    }

    static func write(text: String, _ context: OpaquePointer?) {
        var text = text
        text.withUTF8 { write(text: $0, context) }
    }

    static func write(text: UnsafeBufferPointer<UInt8>, _ context: OpaquePointer?) {
        text.address.withMemoryRebound(to: CChar.self, capacity: text.count) {
            sqlite3_result_text64(context, $0, UInt64(text.count), transientBytes, UInt8(SQLITE_UTF8))
        }
    }

    static func write(blob: UnsafeBufferPointer<UInt8>, _ context: OpaquePointer?) {
        sqlite3_result_blob64(context, blob.address, UInt64(blob.count), transientBytes)
    }

    static func write(blob: StaticString, _ context: OpaquePointer?) {
        // Static text outlives the result.
        sqlite3_result_blob64(context, blob.utf8Start, UInt64(blob.utf8CodeUnitCount), nil)
    }

    /// Writes a blob of a mark and JSON text.
    static func write(mark: UInt8, _ text: UnsafeBufferPointer<UInt8>, _ context: OpaquePointer?) {
        guard let memory = sqlite3_malloc64(UInt64(text.count + 1)) else {
            sqlite3_result_error_nomem(context)
            return
        }
        let bytes = memory.assumingMemoryBound(to: UInt8.self)
        bytes[0] = mark
        if let start = text.baseAddress { (bytes + 1).update(from: start, count: text.count) }
        sqlite3_result_blob64(context, memory, UInt64(text.count + 1), sqlite3_free)
    }

    static func fail(_ message: String, _ context: OpaquePointer?) {
        sqlite3_result_error(context, message, -1)
    }
}
