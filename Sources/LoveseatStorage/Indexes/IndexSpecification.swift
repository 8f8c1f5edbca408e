package import LoveseatModel
package import LoveseatQuery

/// An index as an app defines it, in SQL++.
package struct IndexSpecification: Hashable, Sendable {
    package enum Kind: String, Sendable { case value, fullText, array }

    package let kind: Kind
    /// The expressions: properties of a full-text index; parts of an item for an array index, none for the item itself.
    package var expressions: [String]
    /// The condition of a partial index.
    package var condition: String?
    /// The path of an array index.
    package var path = ""
    package var ignoresAccents = false
    package var language: String?

    package init(kind: Kind, expressions: [String]) {
        self.kind = kind
        self.expressions = expressions
    }

    /// Properties and languages are compared by their bytes.
    package static func == (one: Self, other: Self) -> Bool { one.text.isExactly(other.text) }

    package func hash(into hasher: inout Hasher) { hasher.combine(ExactText(text)) }

    /// The text in which it is stored.
    var text: String {
        var value: JSONValue = [
            "kind": .string(kind.rawValue), "expressions": .array(expressions.map { .string($0) }),
        ]
        value["where"] = condition.map { .string($0) }
        value["language"] = language.map { .string($0) }
        if kind == .array { value["path"] = .string(path) }
        if ignoresAccents { value["ignoreAccents"] = true }
        return value.description
    }

    init?(text: String) {
        guard let value = try? JSONValue(parsing: text), let kind = value["kind"]?.string.flatMap(Kind.init),
            let expressions = value["expressions"]?.array
        else { return nil }
        self.init(kind: kind, expressions: expressions.compactMap(\.string))
        condition = value["where"]?.string
        path = value["path"]?.string ?? ""
        language = value["language"]?.string
        ignoresAccents = value["ignoreAccents"]?.bool ?? false
    }
}

/// An index that the database has.
package struct StoredIndex: Hashable, Sendable {
    /// Unique in the database, and never used twice.
    let number: Int64
    /// Unique in the collection.
    package let name: String
    package let specification: IndexSpecification
    /// The name of the SQLite index.
    let sqlName: String

    init(number: Int64, name: String, specification: IndexSpecification, of table: String) {
        self.number = number
        self.name = name
        self.specification = specification
        // Names of SQLite are unique in the file, and `A` is `a` there. No collection's table has a slash in its name.
        sqlName = "\(table)/\(number)/\(name)"
    }

    /// The table that a full-text or array index consists of.
    var table: String { "\(sqlName)/items" }

    /// The statements with which SQLite makes the index, and removes it.
    func statements(for collection: QueryCollection) throws(QueryError) -> IndexStatements {
        switch specification.kind {
        case .value:
            try IndexTranslator.statements(valueDefinition, collection: collection, sqlName: sqlName)
        case .fullText: try IndexTranslator.statements(fullTextDefinition, collection: collection)
        case .array: try IndexTranslator.statements(arrayDefinition, collection: collection, sqlName: sqlName)
        }
    }

    private var joined: String { specification.expressions.joined(separator: ", ") }

    private var valueDefinition: ValueIndexDefinition {
        ValueIndexDefinition(name: name, expressions: joined, condition: specification.condition)
    }

    var fullTextDefinition: FullTextIndexDefinition {
        FullTextIndexDefinition(
            name: name,
            expressions: joined,
            condition: specification.condition,
            language: specification.language,
            ignoresAccents: specification.ignoresAccents,
            table: table
        )
    }

    var arrayDefinition: ArrayIndexDefinition {
        ArrayIndexDefinition(
            name: name,
            path: specification.path,
            expressions: specification.expressions.isEmpty ? nil : joined,
            table: table
        )
    }
}

extension LoveseatError {
    package init(_ error: QueryError) {
        let place = error.position.map { " (at character \($0 + 1))" } ?? ""
        self.init(Code(error.code.rawValue), error.message + place)
    }
}
