import LoveseatModel
import LoveseatQuery
import Testing

/// What the names of a query stand for, and the titles of its columns.
struct QueryNamesTests {
    private func compile(_ query: String) throws -> TranslatedQuery {
        try QueryCompiler.compile(query, catalog: try #require(TranslationTests.catalog))
    }

    @Test func `columns of the same name have different titles, however many there are`() throws {
        #expect(try compile("SELECT a, b.a, c.a, d.a FROM hotels").columns == ["a", "a #2", "a #3", "a #4"])
        #expect(
            try compile("SELECT a, b AS `a #2`, c.a, d.a FROM hotels").columns == [
                "a", "a #2", "a #3", "a #4",
            ]
        )
    }

    @Test func `collections of the same name in two scopes have their scopes in the titles`() throws {
        let names = [("one", "places"), ("two", "places"), ("two", "others")].compactMap {
            CollectionName(scope: $0, name: $1)
        }
        let catalog = QueryCatalog(
            databaseName: "db",
            collections: names.map { QueryCollection(name: $0, table: $0.fullName) }
        )
        func columns(_ other: String) throws -> [String] {
            let join = "one.places JOIN \(other) ON one.places.a = \(other).a"
            return try QueryCompiler.compile("SELECT one.places, \(other) FROM \(join)", catalog: catalog)
                .columns
        }
        #expect(try columns("two.places") == ["one.places", "two.places"])
        #expect(try columns("two.others") == ["places", "others"])
    }

    @Test func `META needs a name only where there are several collections, and an array is none`() throws {
        #expect(try compile("SELECT META().id FROM hotels").columns == ["id"])
        #expect(try compile("SELECT META().id FROM hotels UNNEST likes AS l").columns == ["id"])
        let join = "FROM hotels AS h JOIN travel.airlines AS a ON h.x = a.x"
        #expect(throws: QueryError.self) { try compile("SELECT META().id \(join)") }
        #expect(try compile("SELECT META(a).id \(join)").columns == ["id"])
    }

    @Test(arguments: [
        "SELECT RANK(text) FROM hotels", "SELECT name FROM hotels ORDER BY RANK(text)",
        "SELECT RANK(text) FROM hotels WHERE name = 'x'",
    ])
    func `RANK without MATCH of its index is refused, with the reason`(_ query: String) throws {
        let error = #expect(throws: QueryError.self) { try compile(query) }
        #expect(error?.message.contains("RANK(text) needs MATCH") == true)
        let match = query.contains("WHERE") ? " AND" : query.contains("ORDER") ? nil : " WHERE"
        if let match { _ = try compile("\(query)\(match) MATCH(text, 'a')") }
    }
}
