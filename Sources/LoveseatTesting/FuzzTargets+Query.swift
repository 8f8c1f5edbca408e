import LoveseatModel
import LoveseatQuery

extension FuzzTargets {
    /// The text of a query: it is translated or refused, with a position inside of the text. Its tree is written as text of the same tree.
    public static func query(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        do throws(QueryError) {
            _ = try QueryCompiler.compile(text, catalog: catalog)
        } catch {
            if let position = error.position {
                precondition((0...text.utf8.count).contains(position), "the position is outside of the text")
            }
        }
        // Most texts are not a list of expressions: they are refused.
        _ = try? QueryParser.parseList(text)
        // Most texts are not a query.
        guard let query = try? QueryParser.parse(text) else { return }
        do throws(QueryError) {
            let again = try QueryParser.parse(query.text)
            precondition(again == query, "the text is of another query")
        } catch {
            // The parentheses that it adds may be too many.
            precondition(error.message.contains("deep"), "the text is not a query: \(error)")
        }
    }

    private static let catalog = QueryCatalog(
        databaseName: "db",
        collections: ["x", "y"].compactMap { CollectionName(name: $0) }.map {
            QueryCollection(
                name: $0,
                table: $0.fullName,
                fullTextIndexes: [FullTextIndexDefinition(name: "ft", expressions: "a, b", table: "words")],
                arrayIndexes: [ArrayIndexDefinition(name: "ar", path: "a", table: "items")]
            )
        }
    )
}
