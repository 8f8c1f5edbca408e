import Foundation
import GRDB
import LoveseatQuery
import LoveseatStorage
import Testing

/// The table `ls_each` of the items of an array or object, on a connection of SQLite alone.
struct EachTableTests {
    private let queue: DatabaseQueue

    init() throws {
        queue = try DatabaseQueue()
        try queue.write { db in
            let connection = try #require(db.sqliteConnection)
            #expect(QuerySQLFunctions.register(on: connection) == 0)
        }
    }

    /// The items' texts with their positions.
    private func items(_ source: (any DatabaseValueConvertible)?, _ path: String? = nil) throws -> [String] {
        try queue.read { db in
            try Row.fetchAll(db, sql: "SELECT body, i FROM ls_each(?, ?)", arguments: [source, path]).map {
                "\($0["i"] as Int): \($0["body"] as String)"
            }
        }
    }

    private func marked(_ mark: UInt8, _ json: String) -> [UInt8] { [mark] + Array(json.utf8) }

    private func marked(_ mark: UInt8, _ json: String) -> DatabaseValue {
        Data(marked(mark, json) as [UInt8]).databaseValue
    }

    private static let body = #"{"a":[1,"two",{"b":null},[3]],"o":{"x":1,"y":[2]},"s":"t","n":null,"e":[]}"#

    @Test(arguments: [
        (".a", ["0: 1", "1: \"two\"", "2: {\"b\":null}", "3: [3]"]), (".o", ["0: 1", "1: [2]"]),
        (".s", ["0: \"t\""]), (".n", ["0: null"]), (".e", []), (".missing", []), (".a[2]", ["0: null"]),
        (".a[9]", []), ("nonsense", []),
    ]) func `a path of a body leads to items, to one value, or to nothing`(
        _ path: String,
        _ expected: [String]
    ) throws {
        #expect(try items(Self.body, path) == expected)
    }

    @Test func `a missing body has no items`() throws { #expect(try items(nil, ".a").isEmpty) }

    @Test func `without a path the value itself is walked over`() throws {
        #expect(try items(marked(QueryMark.array, "[1,[2],\"x\"]")) == ["0: 1", "1: [2]", "2: \"x\""])
        #expect(try items(marked(QueryMark.object, "{\"a\":1,\"b\":{}}")) == ["0: 1", "1: {}"])
        #expect(try items(marked(QueryMark.array, "[]")).isEmpty)
        #expect(try items(5) == ["0: 5"])
        #expect(try items("text") == ["0: \"text\""])
        #expect(try items(nil).isEmpty)
    }

    @Test func `a cursor begins anew for each row of another table, and keeps no items of the row before`()
        throws
    {
        let found = try queue.write { db in
            try db.execute(sql: "CREATE TABLE d (id INTEGER PRIMARY KEY, body TEXT)")
            for body in [#"{"a":[1,2]}"#, #"{"b":1}"#, #"{"a":[]}"#, #"{"a":[3]}"#, nil, #"{"a":4}"#] {
                try db.execute(sql: "INSERT INTO d (body) VALUES (?)", arguments: [body])
            }
            return try Row.fetchAll(
                db,
                sql: "SELECT d.id, e.body, e.i, e.rowid FROM d, ls_each(d.body, '.a') e ORDER BY d.id, e.i"
            ).map { "\($0[0] as Int) \($0[1] as String) \($0[2] as Int) \($0[3] as Int)" }
        }
        #expect(found == ["1 1 0 0", "1 2 1 1", "4 3 0 0", "6 4 0 0"])
    }

    @Test func `two cursors over one table do not disturb each other`() throws {
        let pairs = try queue.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT one.body || other.body FROM ls_each(?1, '.a') one, ls_each(?1, '.a') other
                    ORDER BY one.i, other.i
                    """,
                arguments: [#"{"a":[1,2]}"#]
            )
        }
        #expect(pairs == ["11", "12", "21", "22"])
    }

    @Test func `without both arguments the table cannot be read`() {
        for sql in ["SELECT * FROM ls_each", "SELECT * FROM ls_each('{}')"] {
            #expect(throws: DatabaseError.self) { try queue.read { _ = try Row.fetchAll($0, sql: sql) } }
        }
    }

    @Test func `an item's text outlives the argument that it came from`() throws {
        // The argument is a value of a subquery, which SQLite overwrites row by row.
        let bodies = try queue.read { db in
            try String.fetchAll(
                db,
                sql: """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                    SELECT e.body FROM n, ls_each('{"a":[' || n.i || ',' || (n.i * 2) || ']}', '.a') e
                    """
            )
        }
        #expect(bodies == (1...200).flatMap { ["\($0)", "\($0 * 2)"] })
    }
}
