import GRDBSQLite
import LoveseatAssertions
import LoveseatPlatform
package import LoveseatQuery
import LoveseatText

/// The SQL functions, collations and tables that translated queries need.
package enum QuerySQLFunctions {
    /// The functions of the platform that query functions use.
    package static let platform = QueryEnvironment(
        transcendental: { name, value in
            switch name {
            case .acos: LoveseatPlatform.acos(value)
            case .asin: LoveseatPlatform.asin(value)
            case .atan: LoveseatPlatform.atan(value)
            case .cos: LoveseatPlatform.cos(value)
            case .exp: LoveseatPlatform.exp(value)
            case .ln: LoveseatPlatform.log(value)
            case .log: LoveseatPlatform.log10(value)
            case .sin: LoveseatPlatform.sin(value)
            case .tan: LoveseatPlatform.tan(value)
            }
        },
        power: { LoveseatPlatform.pow($0, $1) },
        atan2: { LoveseatPlatform.atan2($0, $1) },
        localOffset: { seconds in
            var time = time_t(seconds)
            var fields = tm()
            guard localtime_r(&time, &fields) != nil else { return 0 }
            return Int64(fields.tm_gmtoff)
        }
    )

    private typealias Function =
        @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

    /// A function gives the same result for the same arguments, changes nothing, and may say that a result is a boolean.
    private static let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | 0x10_0000 | 0x100_0000

    /// Prepares a connection, and returns SQLite's result code. Every connection needs it that reads queries or writes
    /// documents: indexes call the functions.
    package static func register(
        on connection: OpaquePointer,
        environment: QueryEnvironment = platform
    ) -> Int32 {
        register(on: connection, environment: environment, counter: nil)
    }

    /// `counter` counts the walks of `ls_value`.
    static func register(
        on connection: OpaquePointer,
        environment: QueryEnvironment = platform,
        counter: WalkCounter?
    ) -> Int32 {
        let functions = QueryFunctions(environment: environment)
        // As the language defines it; an index then serves LIKE.
        var code = sqlite3_exec(connection, "PRAGMA case_sensitive_like = ON", nil, nil, nil)
        guard code == SQLITE_OK else { return code }
        for (name, count, function) in special {
            let data = name == "ls_value" ? counter.map { Unmanaged.passRetained($0).toOpaque() } : nil
            code = sqlite3_create_function_v2(connection, name, count, flags, data, function, nil, nil) {
                data in
                if let data { Unmanaged<WalkCounter>.fromOpaque(data).release() }
            }
            guard code == SQLITE_OK else { return code }
        }
        for id in QueryFunctionID.allCases {
            code = sqlite3_create_function_v2(
                connection,
                id.sqlName,
                -1,
                flags,
                Unmanaged.passRetained(BoundFunction(functions, id)).toOpaque(),
                { context, count, values in
                    guard let bound = sqlite3_user_data(context) else { return sqlite3_result_null(context) }
                    Unmanaged<BoundFunction>.fromOpaque(bound)._withUnsafeGuaranteedRef { bound in
                        do throws(QueryRunError) {
                            let arguments = SQLiteValues.read(count, values)
                            SQLiteValues.write(try bound.functions.evaluate(bound.id, arguments), context)
                        } catch {
                            SQLiteValues.fail(error.message, context)
                        }
                    }
                },
                nil,
                nil,
                // SQLite calls this even if it does not take the function.
                { bound in if let bound { Unmanaged<BoundFunction>.fromOpaque(bound).release() } }
            )
            guard code == SQLITE_OK else { return code }
        }
        code = ArrayAggregate.register(on: connection, flags: flags)
        guard code == SQLITE_OK else { return code }
        code = sqlite3_collation_needed(connection, nil) { _, connection, _, name in
            guard let connection, let name else {
                return impossible("SQLite needs a collation without a name")
            }
            QuerySQLFunctions.addCollation(String(cString: name), to: connection)
        }
        guard code == SQLITE_OK else { return code }
        code = EachTable.register(on: connection)
        guard code == SQLITE_OK else { return code }
        return FullTextExtension.register(on: connection)
    }

    private final class BoundFunction {
        let functions: QueryFunctions
        let id: QueryFunctionID

        init(_ functions: QueryFunctions, _ id: QueryFunctionID) {
            self.functions = functions
            self.id = id
        }
    }

    private final class KeptCollator {
        let collator: UnicodeCollator
        init(_ collation: TextCollation) { collator = UnicodeCollator(collation) }
    }

    /// Makes a Unicode collation when a statement names it first.
    private static func addCollation(_ name: String, to connection: OpaquePointer) {
        // Another tool may have put an index with its own collation into the file; SQLite then reports that it lacks it.
        guard let collation = TextCollation(sqlName: name) else { return }
        let kept = Unmanaged.passRetained(KeptCollator(collation)).toOpaque()
        let code = sqlite3_create_collation_v2(
            connection,
            name,
            SQLITE_UTF8,
            kept,
            { kept, oneCount, one, otherCount, other in
                guard let kept else { return 0 }
                func string(_ start: UnsafeRawPointer?, _ count: Int32) -> String {
                    String(
                        decoding: UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)),
                        as: UTF8.self
                    )
                }
                return Unmanaged<KeptCollator>.fromOpaque(kept)._withUnsafeGuaranteedRef {
                    Int32($0.collator.compare(string(one, oneCount), string(other, otherCount)))
                }
            },
            { kept in if let kept { Unmanaged<KeptCollator>.fromOpaque(kept).release() } }
        )
        // SQLite calls the destructor only if it took the collation.
        if code != SQLITE_OK { Unmanaged<KeptCollator>.fromOpaque(kept).release() }
    }

    // MARK: Functions of the translation

    private static let special: [(String, Int32, Function)] = [
        ("ls_value", 2, { context, _, values in PathFunctions.value(context, values) }),
        ("ls_kept", 2, { context, _, values in PathFunctions.value(context, values) }),
        ("ls_result", 2, { context, _, values in PathFunctions.result(context, values) }),
        ("ls_nested", 2, { context, _, values in PathFunctions.nested(context, values) }),
        ("ls_any", 3, { context, _, values in PathFunctions.any(context, values) }),
        ("ls_words", 2, { context, _, values in PathFunctions.words(context, values) }),
        ("ls_out", 1, { context, _, values in QuerySQLFunctions.out(context, values?[0]) }),
        ("ls_bool", 1, { context, _, values in QuerySQLFunctions.bool(context, values?[0]) }),
        ("ls_mark", 1, { context, _, values in QuerySQLFunctions.mark(context, values?[0]) }),
        ("ls_param", 1, { context, _, values in QuerySQLFunctions.parameter(context, values?[0]) }),
        ("ls_text", 1, { context, _, values in QuerySQLFunctions.text(context, values?[0]) }),
        ("ls_limit", 1, { context, _, values in QuerySQLFunctions.limit(context, values?[0]) }),
        ("ls_match", 2, { context, _, values in FullTextExtension.match(context, values) }),
    ]

    /// `ls_out(value)`: a value as rows are read.
    private static func out(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER where sqlite3_value_subtype(value) == QueryMark.boolean:
            SQLiteValues.write(blob: sqlite3_value_int64(value) != 0 ? "true" : "false", context)
        case SQLITE_BLOB:
            let bytes = SQLiteValues.bytes(value)
            switch bytes.first {
            case nil: SQLiteValues.write(blob: "null", context)
            case QueryMark.true: SQLiteValues.write(blob: "true", context)
            case QueryMark.false: SQLiteValues.write(blob: "false", context)
            default: SQLiteValues.write(blob: UnsafeBufferPointer(rebasing: bytes.dropFirst()), context)
            }
        default: sqlite3_result_value(context, value)
        }
    }

    /// `ls_bool(value)`: a condition as rows are read.
    private static func bool(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER:
            SQLiteValues.write(blob: sqlite3_value_int64(value) != 0 ? "true" : "false", context)
        default: out(context, value)
        }
    }

    /// `ls_mark(number)`: a boolean.
    private static func mark(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        guard sqlite3_value_type(value) == SQLITE_INTEGER else { return sqlite3_result_value(context, value) }
        sqlite3_result_int(context, sqlite3_value_int64(value) != 0 ? 1 : 0)
        sqlite3_result_subtype(context, QueryMark.boolean)
    }

    /// `ls_param(value)`: a parameter whose booleans are booleans.
    private static func parameter(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        guard sqlite3_value_type(value) == SQLITE_BLOB else { return sqlite3_result_value(context, value) }
        switch SQLiteValues.bytes(value).first {
        case QueryMark.true, QueryMark.false: SQLiteValues.write(SQLiteValues.read(value), context)
        default: sqlite3_result_value(context, value)
        }
    }

    /// `ls_text(value)`: text as it is, anything else as a value that no text equals.
    private static func text(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        switch sqlite3_value_type(value) {
        case SQLITE_TEXT, SQLITE_NULL: sqlite3_result_value(context, value)
        default: sqlite3_result_zeroblob(context, 0)
        }
    }

    /// `ls_limit(value)`: a number of rows, at least 0.
    private static func limit(_ context: OpaquePointer?, _ value: OpaquePointer?) {
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER: sqlite3_result_int64(context, max(0, sqlite3_value_int64(value)))
        case SQLITE_FLOAT:
            let number = sqlite3_value_double(value)
            guard number == number.rounded(), let count = Int64(exactly: number) else { fallthrough }
            sqlite3_result_int64(context, max(0, count))
        default:
            SQLiteValues.fail("LIMIT and OFFSET take whole numbers", context)
            sqlite3_result_error_code(context, SQLITE_MISMATCH)
        }
    }
}

/// `ls_array_agg(value)`: the values that are not MISSING, as an array.
enum ArrayAggregate {
    private final class State {
        var values: [QueryValue] = []
    }

    static func register(on connection: OpaquePointer, flags: Int32) -> Int32 {
        sqlite3_create_function_v2(
            connection,
            "ls_array_agg",
            1,
            flags,
            nil,
            nil,
            { context, _, values in
                guard let state = ArrayAggregate.state(context, creates: true) else {
                    return sqlite3_result_error_nomem(context)
                }
                let value = SQLiteValues.read(values?[0])
                if !value.isMissing { state.takeUnretainedValue().values.append(value) }
            },
            { context in
                let state = ArrayAggregate.state(context, creates: false)
                SQLiteValues.write(
                    QueryFunctions.array(of: state?.takeUnretainedValue().values ?? []),
                    context
                )
                state?.release()
            },
            nil
        )
    }

    private static func state(_ context: OpaquePointer?, creates: Bool) -> Unmanaged<State>? {
        let size = creates ? Int32(MemoryLayout<UnsafeMutableRawPointer?>.size) : 0
        guard let memory = sqlite3_aggregate_context(context, size) else { return nil }
        let slot = memory.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
        if let kept = slot.pointee { return Unmanaged.fromOpaque(kept) }
        guard creates else { return nil }
        let state = Unmanaged.passRetained(State())
        slot.pointee = state.toOpaque()
        return state
    }
}
