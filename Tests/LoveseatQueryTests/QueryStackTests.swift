import Foundation
import LoveseatModel
import LoveseatQuery
import Testing

/// No text of a query exhausts the stack of a small thread: Dispatch and Foundation give theirs 512 kB.
struct QueryStackTests {
    static let nests: [(kind: String, open: String, close: String)] = [
        ("parentheses", "(", ")"), ("NOT", "NOT ", ""), ("minus", "- ", ""),
        ("CASE", "CASE WHEN a THEN ", " END"),
        ("WHEN", "CASE WHEN ", " THEN 1 END"), ("arrays", "[", "]"), ("objects", "{'a': ", "}"),
        ("functions", "ABS(", ")"), ("subscripts", "", "[0]"), ("paths", "", ".b"),
        ("EXISTS", "EXISTS (SELECT ", " FROM x)"),
        ("sums", "", " + a"), ("sums to the right", "(a + ", ")"), ("texts", "(a || ", ")"),
        ("equality", "", " = a"),
        ("AND and OR", "(a AND (a OR ", "))"), ("IN", "a IN (", ")"), ("LIKE", "a LIKE (", ")"),
        ("BETWEEN", "a BETWEEN 1 AND (", ")"), ("COLLATE", "(a = ", " COLLATE NOCASE)"),
        ("members", "(", ").b"),
        ("ANY", "ANY v# IN a SATISFIES ", " END"), ("ANY's array", "ANY v# IN ", " SATISFIES v# > 1 END"),
    ]

    /// An expression that is nested this many times.
    private static func nested(_ nest: (kind: String, open: String, close: String), _ count: Int) -> String {
        var text = "a"
        for number in 0..<count {
            let name = "v\(number)"
            text =
                nest.open.replacingOccurrences(of: "v#", with: name) + text
                + nest.close.replacingOccurrences(of: "v#", with: name)
        }
        return text
    }

    /// Compiles queries on a thread with a small stack, and returns whether each was taken.
    private func compile(_ queries: [String]) async -> [Bool] {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                let catalog = QueryCatalog(
                    databaseName: "db",
                    collections: CollectionName(name: "x").map {
                        [QueryCollection(name: $0, table: $0.fullName)]
                    } ?? []
                )
                continuation.resume(
                    returning: queries.map { (try? QueryCompiler.compile($0, catalog: catalog)) != nil }
                )
            }
            thread.stackSize = 512 << 10
            thread.start()
        }
    }

    @Test(arguments: nests)
    func `queries are nested up to the limit on a small thread, and refused beyond`(
        _ nest: (kind: String, open: String, close: String)
    ) async {
        let counts = Array(1...60) + [100, 1000, 10_000]
        let queries = counts.map { count in
            let text = Self.nested(nest, count)
            // The alias puts one nest inside of the other.
            return "SELECT \(text) AS a FROM x WHERE \(text) ORDER BY \(text)"
        }
        let taken = await compile(queries)
        // Nobody nests more by hand; paths and subscripts are not nested at all.
        #expect(taken.prefix(5).allSatisfy { $0 }, "\(nest.kind)")
        #expect(taken.last == false, "\(nest.kind)")
    }
}
