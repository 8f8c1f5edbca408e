import LoveseatQuery
import LoveseatTesting
import Testing

struct QueryParserTests {
    private func error(_ text: String) -> QueryError? {
        do throws(QueryError) {
            _ = try QueryParser.parse(text)
            return nil
        } catch { return error }
    }

    @Test func `an error says where the text goes wrong, and what was expected`() {
        let error = error("SELECT name FROM hotels WHERE price >")
        #expect(error?.position == 37)
        #expect(error?.code == .invalidQuery)
        #expect(error?.message.contains("expected an expression") == true, "\(error?.message ?? "")")
    }

    @Test(arguments: ["5.5", "'a'", "NULL", "MISSING", "[1]", "1e30", "a", "meta().id", "1 + a", "LOWER(a)"])
    func `a number of rows that is no whole number, or is of a document, has its place in the error`(
        _ count: String
    ) throws {
        let catalog = try #require(TranslationTests.catalog)
        for clause in ["LIMIT ", "LIMIT 1 OFFSET ", "OFFSET "] {
            let text = "SELECT a FROM hotels \(clause)"
            let error = #expect(throws: QueryError.self) {
                try QueryCompiler.compile(text + count, catalog: catalog)
            }
            #expect(error?.code == .invalidQuery)
            #expect(error?.position == text.utf8.count, "\(count)")
            #expect(error?.message.hasPrefix("LIMIT and OFFSET ") == true, "\(error?.message ?? "")")
        }
        for count in ["5", "5.0", "-1", "$n", "2 * 2.5", "TRUE"] {
            _ = try QueryCompiler.compile("SELECT a FROM hotels LIMIT \(count)", catalog: catalog)
        }
    }

    @Test(arguments: [
        ("SELECT UPER(name) FROM x", "there is no function UPER()"),
        ("SELECT a FROM x WHERE regex_like (a, 'b')", "there is no function REGEX_LIKE()"),
        ("SELECT h.order FROM x AS h", "write `order`, which is a reserved word, in back-quotes"),
    ])
    func `a name that does not fit is named, with what to do`(_ text: String, advice: String) {
        let message = error(text)?.message ?? ""
        #expect(message.contains(advice), "\(message)")
    }

    @Test(arguments: [
        String(repeating: "(", count: 100_000), "SELECT " + String(repeating: "(", count: 5000) + "1",
        "SELECT " + String(repeating: "NOT ", count: 5000) + "1 FROM x",
        "SELECT " + String(repeating: "- ", count: 5000) + "1 FROM x",
        "SELECT 1" + String(repeating: " + 1", count: 5000) + " FROM x",
        "SELECT " + String(repeating: "[", count: 5000) + " FROM x",
        "SELECT " + String(repeating: "CASE WHEN ", count: 5000) + " FROM x",
        "SELECT " + String(repeating: "SOME a IN ", count: 5000) + " FROM x",
        "SELECT " + String(repeating: "EXISTS (SELECT ", count: 5000) + " FROM x",
        "SELECT a" + String(repeating: "[0]", count: 50_000) + " FROM x",
    ])
    func `what is nested too deeply is refused`(_ text: String) {
        #expect(error(text) != nil)
    }

    @Test func `a long chain of conditions is not a deep one`() throws {
        let terms = (0..<3000).map { "a = \($0)" }.joined(separator: " OR ")
        _ = try QueryParser.parse("SELECT a FROM x WHERE \(terms)")
        let list = (0..<10_000).map(String.init).joined(separator: ", ")
        _ = try QueryParser.parse("SELECT a FROM x WHERE a IN (\(list))")
    }

    @Test(arguments: ["+", "-", "*", "/", "%"])
    func `a long sum or product is not a deep one, and has a limit`(_ name: String) throws {
        let catalog = try #require(TranslationTests.catalog)
        func compile(_ count: Int, around inner: String = "a") throws -> String {
            let chain = ([inner] + (1..<count).map { "a\($0)" }).joined(separator: " \(name) ")
            return try QueryCompiler.compile(
                "SELECT \(chain) FROM hotels WHERE \(chain) > 1",
                catalog: catalog
            ).sql
        }
        for count in [3, 100, 700] { _ = try compile(count) }
        // One inside the other is as deep as both together.
        let long = (0..<500).map { "b\($0)" }.joined(separator: " \(name) ")
        #expect(throws: QueryError.self) { try compile(500, around: "LOWER(\(long))") }
        #expect(throws: QueryError.self) { try compile(900) }
    }

    @Test func `text made of pieces of queries never traps`() {
        var generator = SeededGenerator(seed: 15)
        let pieces = [
            "SELECT", "FROM", "x", "WHERE", "(", ")", "[", "]", "{", "}", "'a'", "\"", "`", ",", ".", "*",
            "1", "-", "1.5e3",
            "AND", "OR", "NOT", "=", "<", "IS", "MISSING", "NULL", "IN", "LIKE", "BETWEEN", "CASE", "WHEN",
            "THEN", "END",
            "ANY", "SOME", "EVERY", "SATISFIES", "COLLATE", "UNICODE", ":", "sv", "$p", "COUNT", "LOWER",
            "META", "()", "MATCH",
            "JOIN", "ON", "UNNEST", "GROUP BY", "ORDER BY", "LIMIT", "OFFSET", "AS", "||", "+", "/", "%",
            "EXISTS", ";", "é", "\0",
        ]
        for _ in 0..<5000 {
            let count = Int.random(in: 1...40, using: &generator)
            let text = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined(
                separator: " "
            )
            FuzzTargets.query(Array(("SELECT " + text).utf8))
            FuzzTargets.query(Array(text.utf8))
        }
    }
}
