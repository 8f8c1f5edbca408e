import GRDBSQLite
import LoveseatQuery

/// `ls_each(body, path)` and `ls_each(value, NULL)`: a table of the items of an array, or of the values of an object.
/// Any other existing value is one item.
///
/// `body` is the item's JSON text, and `i` its position, from 0.
enum EachTable {
    private struct Cursor {
        // SQLite's part comes first.
        var base = sqlite3_vtab_cursor()
        var items: Unmanaged<Items>?
    }

    /// The items that a cursor walks over, with a copy of their text: SQLite's ends with the call.
    private final class Items {
        private let text: UnsafeMutableBufferPointer<UInt8>
        private let walker: JSONWalker
        private var children: JSONWalker.Children?
        private(set) var current: Int?
        private(set) var index: Int64 = 0

        init(_ source: UnsafeBufferPointer<UInt8>) {
            text = UnsafeMutableBufferPointer.allocate(capacity: source.count)
            _ = text.update(fromContentsOf: source)
            walker = JSONWalker(UnsafeBufferPointer(text))
            switch walker.kind(at: 0) {
            case .array?, .object?:
                var children = walker.children(of: 0)
                current = children.next()?.value
                self.children = children
            case nil: current = nil
            case .null?, .bool?, .number?, .string?: current = 0
            }
        }

        deinit { text.deallocate() }

        func advance() {
            index += 1
            current = children?.next()?.value
        }

        func write(_ context: OpaquePointer?) {
            guard let current else { return sqlite3_result_null(context) }
            SQLiteValues.write(text: walker.text(at: current), context)
        }
    }

    // Only read; SQLite keeps the address.
    private nonisolated(unsafe) static let module: UnsafeMutablePointer<sqlite3_module> = {
        let module = UnsafeMutablePointer<sqlite3_module>.allocate(capacity: 1)
        module.initialize(to: sqlite3_module())
        module.pointee.xConnect = { connection, _, _, _, table, _ in
            let code = sqlite3_declare_vtab(
                connection,
                "CREATE TABLE x (body, i, source HIDDEN, path HIDDEN)"
            )
            guard code == SQLITE_OK else { return code }
            let made = UnsafeMutablePointer<sqlite3_vtab>.allocate(capacity: 1)
            made.initialize(to: sqlite3_vtab())
            table?.pointee = made
            return SQLITE_OK
        }
        module.pointee.xDisconnect = { table in
            table?.deallocate()
            return SQLITE_OK
        }
        module.pointee.xBestIndex = { _, plan in EachTable.bestIndex(plan) }
        module.pointee.xOpen = { _, cursor in
            let made = UnsafeMutablePointer<Cursor>.allocate(capacity: 1)
            made.initialize(to: Cursor())
            cursor?.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab_cursor.self)
            return SQLITE_OK
        }
        module.pointee.xClose = { cursor in
            guard let cursor = EachTable.cursor(cursor) else { return SQLITE_OK }
            cursor.pointee.items?.release()
            cursor.deallocate()
            return SQLITE_OK
        }
        module.pointee.xFilter = { cursor, _, _, count, values in
            guard let cursor = EachTable.cursor(cursor), count == 2, let values else { return SQLITE_ERROR }
            cursor.pointee.items?.release()
            cursor.pointee.items = EachTable.items(values[0], values[1]).map { Unmanaged.passRetained($0) }
            return SQLITE_OK
        }
        module.pointee.xNext = { cursor in
            EachTable.cursor(cursor)?.pointee.items?._withUnsafeGuaranteedRef { $0.advance() }
            return SQLITE_OK
        }
        module.pointee.xEof = { cursor in
            EachTable.cursor(cursor)?.pointee.items?._withUnsafeGuaranteedRef { $0.current != nil } == true
                ? 0 : 1
        }
        module.pointee.xColumn = { cursor, context, column in
            EachTable.cursor(cursor)?.pointee.items?._withUnsafeGuaranteedRef {
                switch column {
                case 0: $0.write(context)
                case 1: sqlite3_result_int64(context, $0.index)
                default: sqlite3_result_null(context)
                }
            }
            return SQLITE_OK
        }
        module.pointee.xRowid = { cursor, rowid in
            rowid?.pointee =
                EachTable.cursor(cursor)?.pointee.items?._withUnsafeGuaranteedRef { $0.index } ?? 0
            return SQLITE_OK
        }
        return module
    }()

    static func register(on connection: OpaquePointer) -> Int32 {
        sqlite3_create_module_v2(connection, "ls_each", module, nil, nil)
    }

    private static func cursor(_ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> UnsafeMutablePointer<
        Cursor
    >? {
        UnsafeMutableRawPointer(cursor)?.assumingMemoryBound(to: Cursor.self)
    }

    private static func items(_ source: OpaquePointer?, _ path: OpaquePointer?) -> Items? {
        if sqlite3_value_type(path) == SQLITE_NULL {
            if let text = PathFunctions.json(source) { return Items(text) }
            let value = SQLiteValues.read(source)
            return value.isMissing ? nil : value.json.withUnsafeBufferPointer { Items($0) }
        }
        guard sqlite3_value_type(source) != SQLITE_NULL, let path = QueryPath(SQLiteValues.bytes(path)) else {
            return nil
        }
        let walker = JSONWalker(SQLiteValues.bytes(source))
        return walker.find(path).map { Items(walker.text(at: $0)) }
    }

    /// Both hidden columns have to be given.
    private static func bestIndex(_ plan: UnsafeMutablePointer<sqlite3_index_info>?) -> Int32 {
        guard let plan else { return SQLITE_ERROR }
        var found = 0
        for index in 0..<Int(plan.pointee.nConstraint) {
            let constraint = plan.pointee.aConstraint[index]
            guard constraint.iColumn >= 2, constraint.op == UInt8(SQLITE_INDEX_CONSTRAINT_EQ) else {
                continue
            }
            guard constraint.usable != 0 else { return SQLITE_CONSTRAINT }
            plan.pointee.aConstraintUsage[index].argvIndex = constraint.iColumn - 1
            plan.pointee.aConstraintUsage[index].omit = 1
            found += 1
        }
        guard found == 2 else { return SQLITE_CONSTRAINT }
        plan.pointee.estimatedCost = 10
        plan.pointee.estimatedRows = 10
        return SQLITE_OK
    }
}
