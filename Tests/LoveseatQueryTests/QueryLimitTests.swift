import LoveseatModel
import LoveseatQuery
import Testing

/// The limits of a query, each reached and exceeded by one.
struct QueryLimitTests {
    private func sql(_ query: String) throws -> String {
        try QueryCompiler.compile(query, catalog: try #require(TranslationTests.catalog)).sql
    }

    private func isTaken(_ query: String) -> Bool { (try? sql(query)) != nil }

    /// How often a property is read.
    private func count(of property: String, in sql: String) -> Int {
        sql.ranges(of: "'.\(property)'").count
    }

    @Test func `an array has as many values as a function takes, and not one more`() throws {
        func query(_ count: Int) -> String {
            "SELECT [" + Array(repeating: "s", count: count).joined(separator: ", ") + "] FROM hotels"
        }
        for number in [1, 99, 100] { #expect(try count(of: "s", in: sql(query(number))) == number) }
        #expect(!isTaken(query(101)))
    }

    @Test(arguments: [2, 99, 100, 101, 200, 201, 10_000, 10_001])
    func `any number of texts is joined`(_ number: Int) throws {
        let texts = Array(repeating: "s", count: number).joined(separator: " || ")
        #expect(try count(of: "s", in: sql("SELECT \(texts) FROM hotels")) == number)
    }

    /// A nest in an alias is as deep where the alias is used as one that is written there.
    @Test func `expressions are nested up to the limit by way of an alias, too, and not one deeper`() {
        func isTaken(_ inner: Int, _ outer: Int) -> Bool {
            func nots(_ count: Int) -> String { String(repeating: "NOT ", count: count) }
            return self.isTaken("SELECT \(nots(inner))b AS y FROM hotels WHERE \(nots(outer))y")
        }
        // The name of the alias is one level, and the property another.
        for inner in [10, 24, 30] {
            let outer = QueryLimits.depth - inner - 2
            #expect(isTaken(inner, outer), "\(inner)")
            #expect(!isTaken(inner, outer + 1), "\(inner)")
        }
    }

    @Test func `the path of an array index has as many levels as are allowed, and not one more`() {
        func levels(_ count: Int) -> [String] {
            let path = Array(repeating: "a", count: count).joined(separator: "[].")
            return ArrayIndexDefinition(name: "i", path: path, table: "t").levels
        }
        for number in [1, 2, 31, 32] { #expect(levels(number) == Array(repeating: ".a", count: number)) }
        // It is then not the path of an array.
        #expect(levels(33).isEmpty)
    }
}
