import LoveseatModel
import LoveseatQuery
import Testing

/// What the differential tests found, each in its shortest form.
struct QueryRegressionTests {
    private func database() throws -> GoldenDatabase {
        let collection = try #require(CollectionName(name: "odd"))
        let body: JSONValue = ["a": ["b": 1], "s": "x", "t": "b", "u": "B", "n": 2, "list": ["b", "c"]]
        return try GoldenDatabase(
            timeZone: "UTC",
            documents: [collection: [.init(id: "one", body: JSONText(canonical: body))]]
        )
    }

    @Test(
        arguments: [
            // Two signs in a row begin a comment in SQL.
            ("-(-2)", 2),
            // A path behind parentheses.
            ("(a).b", 1),
            // A collation is not taken for the comparison around it.
            ("(CASE WHEN s = 'X' COLLATE NOCASE THEN t END) = u", false),
            ("CASE (CASE WHEN s = 'X' COLLATE NOCASE THEN t END) WHEN u THEN 1 ELSE 0 END", 0),
            ("GREATEST(CASE WHEN s = 'X' COLLATE NOCASE THEN 'a' END, 'B')", "a"),
            ("(CASE WHEN s = 'X' COLLATE NOCASE THEN t END) IN (u)", false),
            // IS compares with the outcome of IN (), whatever SQLite folds that to.
            ("n IS (1 NOT IN ())", false),
            // The outcome of LIKE is a number inside of other expressions, whoever computes it.
            ("'' || ('a' LIKE 'a')", "1"), ("'' || ('a' LIKE t)", "0"),
            // Only paths have a count of an object's keys.
            ("ARRAY_COUNT(a)", 1), ("ARRAY_COUNT(IFNULL(a, 1))", 0),
            // Keys are told apart by their bytes.
            ("{'é': 1, 'e\u{301}': 2}", ["é": 1, "e\u{301}": 2]),
        ] as [(String, JSONValue)]
    )
    func `an expression has this value`(_ expression: String, _ value: JSONValue) throws {
        let rows = try database().answer("SELECT \(expression) AS x FROM odd", nil).rows
        #expect(rows == [["x": value]])
    }

    @Test(arguments: [
        // SQLite would take these for the numbers of columns.
        "SELECT n FROM odd ORDER BY FALSE AND n", "SELECT COUNT(*) AS n FROM odd GROUP BY FALSE AND s",
        "SELECT 5 AS v FROM odd ORDER BY v",
        // An alias inside of a quantifier with a variable of the same name as in its definition.
        "SELECT (ANY v IN list SATISFIES v > 'b' END) AS y FROM odd WHERE ANY v IN list SATISFIES y AND v = 'b' END",
        "SELECT n AS y FROM odd WHERE ANY n IN list SATISFIES y = 2 AND n = 'c' END",
    ])
    func `a query finds the document`(_ query: String) throws {
        #expect(try database().answer(query, nil).rows.count == 1)
    }

    @Test(arguments: [
        "i = 1", "i IN (1)", "i BETWEEN 0 AND 5", "i IS 1", "(i COLLATE NOCASE) = 1", "meta().id = 1",
        "q = '1'",
        "q IN ('1')", "q BETWEEN '0' AND '9'", "'1' BETWEEN q AND 2", "'1' BETWEEN 0 AND meta().sequence",
        "CASE meta().id WHEN 1 THEN TRUE ELSE FALSE END", "CASE i WHEN 1 THEN TRUE ELSE FALSE END",
        "CASE 1 WHEN i THEN TRUE ELSE FALSE END", "CASE '1' WHEN meta().sequence THEN TRUE ELSE FALSE END",
    ])
    func `an ID is a text and a sequence is a number, by whatever name`(_ condition: String) throws {
        let collection = try #require(CollectionName(name: "odd"))
        let database = try GoldenDatabase(
            timeZone: "UTC",
            documents: [collection: [.init(id: "1", body: .emptyObject)]]
        )
        let names = "SELECT meta().id AS i, meta().sequence AS q FROM odd"
        #expect(try database.answer(names, nil).rows == [["i": "1", "q": 1]])
        #expect(try database.answer("\(names) WHERE \(condition)", nil).rows == [])
    }

    @Test func `the condition of an index may use LIKE`() throws {
        let database = try database()
        let definition: JSONValue = [
            "name": "part", "collection": "odd", "type": "value", "expressions": "s LIKE '%x'",
            "where": "t LIKE 'b%'",
        ]
        _ = try database.makeIndex(JSONElement(JSONText(canonical: definition)), number: 0)
        #expect(
            try database.answer("SELECT n FROM odd WHERE t LIKE 'b%' AND s LIKE '%x'", nil).rows == [["n": 2]]
        )
    }

    @Test func `booleans stay booleans when an index is used`() throws {
        let collection = try #require(CollectionName(name: "odd"))
        let documents: [GoldenCorpus.Document] = [true, false, 1, 0].enumerated().map { place, value in
            .init(id: "d\(place)", body: JSONText(canonical: .object(["v": value] as JSONObject)))
        }
        let database = try GoldenDatabase(timeZone: "UTC", documents: [collection: documents])
        let definition: JSONValue = [
            "name": "part", "collection": "odd", "type": "value", "expressions": "v",
        ]
        _ = try database.makeIndex(JSONElement(JSONText(canonical: definition)), number: 0)
        let answer = try database.answer(
            "SELECT v || '' AS x, TYPE(v) AS t FROM odd WHERE v >= 1 AND ISBOOLEAN(v)",
            nil
        )
        #expect(answer.rows == [["x": "true", "t": "boolean"]])
        #expect(answer.plan.contains { $0.contains("INDEX part") })
    }
}
