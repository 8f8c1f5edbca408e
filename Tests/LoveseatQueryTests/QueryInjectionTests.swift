import LoveseatModel
import LoveseatQuery
import LoveseatTesting
import Testing

/// Names and texts with every odd character stay what they are: they neither break the SQL nor add to it.
struct QueryInjectionTests {
    /// What could end a literal, a name or a statement, alone and with a combining accent behind it.
    static let names: [String] = {
        let pieces = [
            "'", "\"", "`", ";", "--", "/*", "*/", "\\", "[", "]", ".", "$", "?", "?1", ":x", "@x", "%", "_",
            "\0", "\u{1}",
            "\n", "\r\n", "\t", "\u{7F}", "\u{85}", "\u{2028}", "\u{FEFF}", "é", "e\u{301}", "😀",
            "\u{10FFFF}", "\u{202E}",
            "x'", "x''", ") OR (1", "'; DROP TABLE x; --", "\"; DROP TABLE x; --", "' OR '1' = '1",
            "COLLATE NOCASE",
            " COLLATE \"", "ls_value(body, '')", "NULL", "select", " ",
        ]
        return pieces + pieces.map { $0 + "\u{301}" } + pieces.map { "a" + $0 + "b" }
            + ["'\u{301}'\u{301} OR 1 --", "\"\u{301}\"\u{301} OR 1 --"]
    }()

    private static func quoted(_ text: String, _ quote: Character) -> String {
        let quote = quote.utf8.first ?? 0
        var bytes = [quote]
        for byte in text.utf8 { bytes += byte == quote ? [byte, byte] : [byte] }
        return String(decoding: bytes + [quote], as: UTF8.self)
    }

    private static func property(_ name: String) -> String { quoted(name, "`") }

    /// A database of one collection with three documents, of which the second has the properties.
    private func database(_ properties: JSONObject) throws -> GoldenDatabase {
        let collection = try #require(CollectionName(name: "odd"))
        return try GoldenDatabase(
            timeZone: "UTC",
            documents: [
                collection: [
                    .init(id: "one", body: .emptyObject),
                    .init(id: "two", body: JSONText(canonical: .object(properties))),
                    .init(id: "three", body: JSONText(canonical: ["other": 1])),
                ]
            ]
        )
    }

    @Test(arguments: names)
    func `the name of a property is only that`(_ name: String) throws {
        let database = try database([name: "here"])
        let path = Self.property(name)
        #expect(
            try database.answer("SELECT \(path) AS x FROM odd WHERE \(path) = 'here'", nil).rows == [
                ["x": "here"]
            ]
        )
        #expect(
            try database.answer("SELECT odd.\(path) AS x FROM odd ORDER BY \(path) DESC LIMIT 1", nil).rows
                == [["x": "here"]]
        )
        #expect(
            try database.answer("SELECT MAX(\(path)) AS x FROM odd GROUP BY \(path)", nil).rows.count == 2
        )
    }

    @Test func `the empty key and keys with a backslash are reached`() throws {
        let database = try database(["": ["": 1], "a\\b": ["\\": 2], "é": 3, "e\u{301}": 4])
        let query =
            "SELECT ``.`` AS a, `a\\b`.`\\` AS b, `é` AS c, `e\u{301}` AS d FROM odd WHERE meta().id = 'two'"
        #expect(try database.answer(query, nil).rows == [["a": 1, "b": 2, "c": 3, "d": 4]])
    }

    @Test(arguments: names)
    func `text is only text`(_ text: String) throws {
        let database = try database(["a": .string(text), "list": [.string(text)]])
        let written = Self.quoted(text, "'")
        let conditions = [
            "a = \(written)", "a IN (\(written), 1)", "a BETWEEN \(written) AND \(written)",
            "ANY v IN list SATISFIES v = \(written) END", "CASE a WHEN \(written) THEN TRUE END",
            "(a = \(written)) COLLATE NOCASE", "a || '' = \(written)", "{'k': a} = {'k': \(written)}",
            "[a] = [\(written)]",
            "a = \(Self.quoted(text, "\""))",
        ]
        for condition in conditions {
            let rows = try database.answer("SELECT meta().id AS k FROM odd WHERE \(condition)", nil).rows
            #expect(rows == [["k": "two"]], "\(condition)")
        }
        #expect(
            try database.answer("SELECT \(written) AS x FROM odd LIMIT 1", nil).rows == [["x": .string(text)]]
        )
    }

    @Test(arguments: names)
    func `the names of parameters, variables, keys and columns are only that`(_ name: String) throws {
        let database = try database(["a": ["v", 2]])
        let written = Self.property(name)
        let parameters = JSONElement(JSONText(canonical: .object([name: "v"])))
        let rows = try database.answer("SELECT meta().id AS k FROM odd WHERE a[0] = $\(written)", parameters)
            .rows
        #expect(rows == [["k": "two"]])
        let any = "ANY \(written) IN a SATISFIES \(written) > 1 AND \(written) < 3 END"
        #expect(
            try database.answer("SELECT meta().id AS k FROM odd WHERE \(any)", nil).rows == [["k": "two"]]
        )
        let object = "{\(Self.quoted(name, "'")): a[0]}"
        let found = try database.answer("SELECT \(object) AS x FROM odd WHERE meta().id = 'two'", nil).rows
        #expect(found == [["x": .object([name: "v"])]])
        let titled = try database.answer(
            "SELECT a[1] AS \(written) FROM odd ORDER BY \(written) DESC LIMIT 1",
            nil
        )
        #expect(titled.columns.map { Array($0.utf8) } == [Array(name.utf8)])
        #expect(titled.rows == [.object([name: 2])])
    }

    @Test(arguments: names)
    func `the aliases of collections and unnested arrays are refused or only that`(_ name: String) throws {
        let database = try database(["a": [1]])
        let written = Self.property(name)
        // The language does not allow these in an alias.
        let isRefused = name.utf8.contains { $0 == 0x27 || $0 == 0x22 || $0 == 0x3A }
        for query in [
            "SELECT \(written).a AS x FROM odd AS \(written) WHERE \(written).a IS NOT MISSING",
            "SELECT d.a AS x FROM odd AS d UNNEST d.a AS \(written) WHERE \(written) = 1",
            "SELECT d.a AS x FROM odd AS d JOIN odd AS \(written) ON meta(d).id = meta(\(written)).id WHERE \(written).a[0] = 1",
        ] {
            if isRefused {
                #expect(throws: GoldenDatabase.Failure.self) { try database.answer(query, nil) }
            } else {
                #expect(try database.answer(query, nil).rows == [["x": [1]]], "\(query)")
            }
        }
    }

    @Test(arguments: names + ["nocase", "nodiac", "sv_SE"])
    func `the locale of a collation is only that`(_ name: String) throws {
        let database = try database(["a": "X"])
        let collation = "COLLATE (UNICODE:\(Self.property(name)) CASE)"
        for (condition, count) in [
            ("a = 'X'", 1), ("a = 'x'", 0), ("a LIKE 'X%'", 1), ("CONTAINS(a, 'X')", 1),
        ] {
            let rows = try database.answer("SELECT a FROM odd WHERE (\(condition)) \(collation)", nil).rows
            #expect(rows.count == count, "\(condition)")
        }
        #expect(try database.answer("SELECT a FROM odd ORDER BY a \(collation)", nil).rows.count == 3)
    }

    @Test(arguments: names)
    func `the names of collections are found or not, and nothing else`(_ name: String) throws {
        let database = try database([:])
        for source in [Self.property(name), "odd." + Self.property(name), Self.property(name) + ".odd"] {
            #expect(throws: GoldenDatabase.Failure.self) {
                try database.answer("SELECT 1 FROM \(source)", nil)
            }
        }
        #expect(try database.answer("SELECT COUNT(*) AS n FROM odd", nil).rows == [["n": 3]])
    }

    @Test(arguments: names, ["value", "fulltext", "array"])
    func `the names of indexes and of what they index are refused or only that`(
        _ name: String,
        _ type: String
    ) throws {
        let database = try database([name: ["here"], "a": "here"])
        let definition: JSONValue = [
            "name": .string(name), "collection": "odd", "type": .string(type),
            "expressions": .string(type == "array" ? "" : Self.property(name)),
            "path": .string(Self.property(name)),
            "language": .string(name), "stopWords": .string(name),
        ]
        let fields = JSONElement(JSONText(canonical: definition))
        if name.utf8.contains(where: { $0 == 0 || $0 == 0x22 }) {
            #expect(throws: GoldenDatabase.Failure.self) { try database.makeIndex(fields, number: 0) }
            return
        }
        do {
            let drop = try database.makeIndex(fields, number: 0)
            if type == "fulltext" {
                let rows = try database.answer(
                    "SELECT meta().id AS k FROM odd WHERE MATCH(\(Self.property(name)), 'here')",
                    nil
                ).rows
                #expect(rows == [["k": "two"]])
            }
            try database.forgetIndexes(drop)
        } catch let failure as GoldenDatabase.Failure where type == "array" {
            // The levels of a path are written with brackets, which no key of one can have.
            #expect(failure.message.contains("path"), "\(failure.message)")
            #expect(name.contains("]") || name.contains("["))
        }
        #expect(try database.answer("SELECT COUNT(*) AS n FROM odd", nil).rows == [["n": 3]])
    }
}
