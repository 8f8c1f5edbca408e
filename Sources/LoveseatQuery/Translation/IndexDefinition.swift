import LoveseatModel
import LoveseatText

/// An index over the values of expressions.
package struct ValueIndexDefinition: Hashable, Sendable {
    package var name: String
    /// Expressions, separated by commas.
    package var expressions: String
    /// Only documents that this condition holds for are in the index.
    package var condition: String?

    package init(name: String, expressions: String, condition: String? = nil) {
        self.name = name
        self.expressions = expressions
        self.condition = condition
    }
}

/// An index over the words of properties.
package struct FullTextIndexDefinition: Hashable, Sendable {
    package var name: String
    /// Properties, separated by commas.
    package var expressions: String
    package var condition: String?
    /// A language, such as `en` or `fr_CA`; it decides about stems and stop words.
    package var language: String?
    package var ignoresAccents: Bool
    /// Words that are not indexed, separated by blanks, instead of the language's stop words.
    package var stopWords: String?
    package var disablesStemming: Bool
    /// The SQLite table of the words.
    package var table: String

    package init(
        name: String,
        expressions: String,
        condition: String? = nil,
        language: String? = nil,
        ignoresAccents: Bool = false,
        stopWords: String? = nil,
        disablesStemming: Bool = false,
        table: String
    ) {
        self.name = name
        self.expressions = expressions
        self.condition = condition
        self.language = language
        self.ignoresAccents = ignoresAccents
        self.stopWords = stopWords
        self.disablesStemming = disablesStemming
        self.table = table
    }

    /// The names of the columns, which a search may name.
    package var columns: [String] {
        // An index that a later version has made may have expressions that this one cannot parse.
        guard let expressions = try? QueryParser.parseList(expressions) else { return [] }
        return expressions.map { expression in
            guard case .property(let steps) = expression.kind else { return "" }
            return QueryPath(steps).text.dropFirst().description
        }
    }

    /// The data for translating a search, as a JSON array: the columns, and the tokenizer's options.
    var matchOptions: String {
        let options = tokenizerOptions.map(JSONValue.string)
        return JSONText(canonical: .array([.array(columns.map(JSONValue.string))] + options)).description
    }

    private var tokenizerOptions: [String] {
        var options: [String] = []
        if ignoresAccents { options += ["accents", "0"] }
        if let language, let known = FullTextLanguage(language) {
            if !disablesStemming { options += ["stem", known.rawValue] }
            if stopWords == nil { options += ["stop", known.rawValue] }
        }
        if let stopWords {
            options += [
                "words", stopWords.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased(),
            ]
        }
        return options
    }

    /// The tokenizer's name and options, in FTS5's quotes.
    var tokenizer: String {
        (["loveseat"] + tokenizerOptions)
            .map { $0.quoted("'") }
            .joined(separator: " ")
    }
}

/// An index over the items of an array.
package struct ArrayIndexDefinition: Hashable, Sendable {
    package var name: String
    /// The path of the array, with `[]` between levels.
    package var path: String
    /// Expressions of an item, separated by commas; nil for the item itself.
    package var expressions: String?
    /// The SQLite table of the items. Indexes over the same path share it.
    package var table: String

    package init(name: String, path: String, expressions: String? = nil, table: String) {
        self.name = name
        self.path = path
        self.expressions = expressions
        self.table = table
    }

    /// Whether the index is over the items themselves, and not over their properties.
    var indexesItems: Bool { expressions?.allSatisfy(\.isWhitespace) ?? true }

    /// The columns that contain the positions of an item in the arrays around it, from the inside to the outside.
    var parentColumns: [String] { (1..<max(1, levels.count)).map { $0 == 1 ? "parent" : "parent\($0)" } }

    /// The paths of the levels, as SQL has them; empty if the path is not one.
    package var levels: [String] { (try? Self.levels(of: path)) ?? [] }

    static func levels(of path: String) throws(QueryError) -> [String] {
        func refusal(_ reason: String) -> QueryError {
            QueryError(.invalidQuery, "'\(path)' is not the path of an array: \(reason)")
        }
        let rule = "write properties with [] between them, at most \(QueryLimits.arrayLevels)"
        let parts = path.split(separator: "]", omittingEmptySubsequences: false)
        guard parts.count <= QueryLimits.arrayLevels else { throw refusal(rule) }
        var levels: [String] = []
        for (number, part) in parts.enumerated() {
            let isLast = number == parts.count - 1
            guard isLast || part.hasSuffix("["), number == 0 || part.hasPrefix(".") else {
                throw refusal(rule)
            }
            let text = String(part.dropFirst(number == 0 ? 0 : 1).dropLast(isLast ? 0 : 1))
            let expression: QueryExpression
            do { expression = try QueryParser.parseExpression(text) } catch { throw refusal(error.message) }
            guard case .property(let steps) = expression.kind else { throw refusal(rule) }
            levels.append(QueryPath(steps).text)
        }
        return levels
    }
}

/// The statements that make an index and remove it.
package struct IndexStatements: Sendable {
    /// Makes the tables that are filled.
    package var prepare: [String] = []
    /// Fills the index from the documents whose rows are in a range; nil if ``finish`` does it.
    package var fill: (@Sendable (Range<Int64>) -> String)?
    package var finish: [String]
    package var drop: [String]

    /// All of them in the order in which they run, in one transaction.
    package var create: [String] { prepare + (fill.map { [$0(0..<Int64.max)] } ?? []) + finish }
}
