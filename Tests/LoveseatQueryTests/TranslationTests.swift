import LoveseatModel
import LoveseatQuery
import Testing

/// What queries become in SQLite's language.
struct TranslationTests {
    static let catalog: QueryCatalog? = {
        guard let hotels = CollectionName(name: "hotels"),
            let airlines = CollectionName(scope: "travel", name: "airlines")
        else { return nil }
        return QueryCatalog(
            databaseName: "db",
            collections: [
                QueryCollection(
                    name: hotels,
                    table: "_default.hotels",
                    fullTextIndexes: [
                        FullTextIndexDefinition(
                            name: "text",
                            expressions: "name, description",
                            language: "en",
                            table: "words text"
                        )
                    ],
                    arrayIndexes: [ArrayIndexDefinition(name: "likes", path: "likes", table: "items likes")]
                ),
                QueryCollection(name: airlines, table: "travel.airlines"),
                QueryCollection(name: .default, table: "_default._default"),
            ]
        )
    }()

    static let snapshots = clauses + expressions

    @Test(arguments: snapshots.indices)
    func `a query has this translation`(_ index: Int) throws {
        let (query, sql) = Self.snapshots[index]
        let catalog = try #require(Self.catalog)
        #expect(try QueryCompiler.compile(query, catalog: catalog).sql == sql)
    }

    @Test func `a delimiter with a combining mark does not end a text or a name`() throws {
        let catalog = try #require(Self.catalog)
        let query = "SELECT a FROM hotels AS `h` WHERE a = 'b''\u{301} OR 1 --'"
        let sql = try QueryCompiler.compile(query, catalog: catalog).sql
        #expect(sql.contains("= 'b''\u{301} OR 1 --')"), "\(sql)")
    }
}
