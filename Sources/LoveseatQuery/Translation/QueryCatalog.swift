package import LoveseatModel

/// The names that a query can use: the collections of a database, their places in SQLite, and their indexes.
package struct QueryCatalog: Sendable {
    package var databaseName: String
    package var collections: [CollectionName: QueryCollection]

    package init(databaseName: String, collections: some Sequence<QueryCollection>) {
        self.databaseName = databaseName
        self.collections = Dictionary(collections.map { ($0.name, $0) }) { first, _ in first }
    }
}

/// A collection and the table that holds it.
package struct QueryCollection: Sendable {
    package var name: CollectionName
    /// The SQLite table, as the database's schema describes it.
    package var table: String
    package var fullTextIndexes: [FullTextIndexDefinition]
    package var arrayIndexes: [ArrayIndexDefinition]

    package init(
        name: CollectionName,
        table: String,
        fullTextIndexes: [FullTextIndexDefinition] = [],
        arrayIndexes: [ArrayIndexDefinition] = []
    ) {
        self.name = name
        self.table = table
        self.fullTextIndexes = fullTextIndexes
        self.arrayIndexes = arrayIndexes
    }
}

/// A parameter of a query, as SQLite numbers it.
package struct QueryParameter: Hashable, Sendable {
    package var name: String
    /// Whether a boolean has to stay one. If only its value matters, it is bound as 1 or 0, so that SQLite's indexes can be used.
    package var keepsBoolean: Bool

    /// Names are compared by their bytes.
    package static func == (one: QueryParameter, other: QueryParameter) -> Bool {
        one.keepsBoolean == other.keepsBoolean && one.name.isExactly(other.name)
    }

    /// Returns the binding for a value. MISSING and null are both NULL, as the language defines it.
    package func binding(for value: JSONValue?) -> QueryBinding {
        guard let value else { return .null }
        switch QueryValue(value) {
        case .missing, .null: return .null
        case .bool(let value):
            return keepsBoolean ? .blob([value ? QueryMark.true : QueryMark.false]) : .integer(value ? 1 : 0)
        case .integer(let value): return .integer(value)
        case .unsigned(let value): return .double(Double(value))
        case .double(let value): return .double(value)
        case .string(let value): return .text(value)
        case .array(let text): return .blob([QueryMark.array] + text)
        case .object(let text): return .blob([QueryMark.object] + text)
        }
    }
}

/// A value that is bound to a parameter of SQLite.
package enum QueryBinding: Hashable, Sendable {
    case null
    case integer(Int64)
    case double(Double)
    case text(String)
    case blob([UInt8])
}

/// The marks of values that SQLite has no kind for: null is an empty blob, and the first byte of others says which kind they are. Arrays
/// come before objects.
package enum QueryMark {
    package static let array: UInt8 = 1
    package static let object: UInt8 = 2
    /// Only in parameters that keep booleans.
    package static let `false`: UInt8 = 3
    package static let `true`: UInt8 = 4
    /// The subtype of an integer that is a boolean.
    package static let boolean: UInt32 = 66
}

/// A query in SQLite's language.
package struct TranslatedQuery: Hashable, Sendable {
    package var sql: String
    /// The titles of the columns.
    package var columns: [String]
    /// The parameters that are bound, from ?1 on. The same name may be there twice.
    package var parameters: [QueryParameter]
    /// The collections that the query reads, each once.
    package var collections: [CollectionName]

    /// The names that values can be given for.
    package var parameterNames: Set<ExactText> { Set(parameters.map { ExactText($0.name) }) }
}

/// Compiles queries.
package enum QueryCompiler {
    /// Translates a query's text.
    ///
    /// - Throws: ``QueryError`` with the position of the mistake if it has one.
    package static func compile(_ text: String, catalog: QueryCatalog) throws(QueryError) -> TranslatedQuery {
        try translate(QueryParser.parse(text), catalog: catalog)
    }

    /// Translates a query that was built as a tree.
    package static func translate(_ query: SelectQuery, catalog: QueryCatalog) throws(QueryError)
        -> TranslatedQuery
    {
        var translator = QueryTranslator(catalog: catalog)
        return try translator.translate(query)
    }
}
