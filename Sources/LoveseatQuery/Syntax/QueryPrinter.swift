package import LoveseatModel

extension SelectQuery {
    /// The text of the query. Parsing it gives an equal tree.
    ///
    /// This holds for trees that the parser or the query builder makes. Others may have parts that the language cannot express, such as a
    /// path that begins with a position; the parser refuses most of these.
    package var text: String {
        var printer = QueryPrinter()
        printer.query(self)
        return printer.text
    }
}

extension QueryExpression {
    /// The text of the expression, as the definition of an index has it.
    package var text: String {
        var printer = QueryPrinter()
        printer.expression(self, .whole)
        return printer.text
    }

    /// Creates the literal of a JSON value. An array or object is an expression of its items.
    ///
    /// Integers beyond 64 bits become doubles, and so do those above `Int64.max`, which the language has no literals for.
    ///
    /// - Throws: ``QueryError``: for a number that is not finite, and for a value that is nested too deeply.
    package init(_ value: JSONValue) throws(QueryError) { try self.init(value, depth: 1) }

    private init(_ value: JSONValue, depth: Int) throws(QueryError) {
        guard depth < QueryLimits.depth else {
            throw QueryError(
                .invalidQuery,
                "A value is nested more than \(QueryLimits.depth) deep: simplify it"
            )
        }
        switch value {
        case .array(let values):
            var items: [QueryExpression] = []
            for value in values { items.append(try QueryExpression(value, depth: depth + 1)) }
            self.init(.array(items))
        case .object(let object):
            var members: [Member] = []
            for (key, value) in object.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                members.append(Member(key: key, value: try QueryExpression(value, depth: depth + 1)))
            }
            self.init(.object(members))
        case .number(let number):
            if case .integer(let integer) = number {
                self.init(.literal(.integer(integer)))
                return
            }
            guard number.double.isFinite else {
                throw QueryError(
                    .invalidQuery,
                    "A value of the query cannot be JSON: use finite numbers, and types that can be encoded"
                )
            }
            self.init(.literal(.double(number.double)))
        case .null, .bool, .string: self.init(.literal(QueryValue(value)))
        }
    }
}

/// Writes a tree as text, with as few parentheses as the grammar allows.
struct QueryPrinter {
    private(set) var text = ""

    // MARK: Clauses

    mutating func query(_ query: SelectQuery) {
        text += query.isDistinct ? "SELECT DISTINCT " : "SELECT "
        if query.results.isEmpty { text += "*" }
        list(query.results) { printer, result in
            printer.expression(result.expression, .whole)
            printer.alias(result.alias)
        }
        text += " FROM "
        source(query.source)
        for join in query.joins { self.join(join) }
        clause(" WHERE ", query.condition)
        if !query.grouping.isEmpty {
            text += " GROUP BY "
            list(query.grouping) { $0.expression($1, .whole) }
        }
        clause(" HAVING ", query.having)
        if !query.order.isEmpty {
            text += " ORDER BY "
            list(query.order) { printer, item in
                printer.expression(item.expression, .whole)
                if item.isDescending { printer.text += " DESC" }
            }
        }
        clause(" LIMIT ", query.limit)
        clause(" OFFSET ", query.offset)
    }

    private mutating func clause(_ keyword: String, _ expression: QueryExpression?) {
        // Clauses are optional.
        guard let expression else { return }
        text += keyword
        self.expression(expression, .whole)
    }

    private mutating func source(_ source: SelectQuery.Source) {
        if let scope = source.scope {
            name(scope)
            text += "."
        }
        name(source.name)
        alias(source.alias)
    }

    private mutating func join(_ join: SelectQuery.Join) {
        switch join {
        case .collection(let kind, let source, let condition):
            text += kind == .left ? " LEFT JOIN " : kind == .cross ? " CROSS JOIN " : " JOIN "
            self.source(source)
            clause(" ON ", condition)
        case .unnest(let array, let name):
            clause(" UNNEST ", array)
            alias(name)
        }
    }

    private mutating func alias(_ alias: String?) {
        // A result or a source may have no alias.
        guard let alias else { return }
        text += " AS "
        name(alias)
    }

    mutating func list<Item>(
        _ items: [Item],
        separator: String = ", ",
        _ write: (inout QueryPrinter, Item) -> Void
    ) {
        for (index, item) in items.enumerated() {
            if index > 0 { text += separator }
            write(&self, item)
        }
    }

    mutating func write(_ more: String) { text += more }

    // MARK: Names and literals

    /// Not reserved, but read as the beginning of something else in some places.
    private static let ambiguous: Set<String> = ["ALL", "EXISTS", "SOME"]

    mutating func name(_ name: String) {
        let isPlain =
            name.utf8.allSatisfy(QueryCursor.isNamePart)
            && !(name.utf8.first.map { $0 &- 0x30 <= 9 || $0 == UInt8(ascii: "$") } ?? true)
        let word = name.uppercased()
        if isPlain, !QueryCursor.reserved.contains(word), !Self.ambiguous.contains(word) {
            text += name
        } else {
            text += name.quoted("`")
        }
    }

    /// Writes a path, or the rest of one that goes on inside of a value.
    mutating func path(_ steps: [PathStep], isInside: Bool = false) {
        for (index, step) in steps.enumerated() {
            switch step {
            case .key(let key):
                if index > 0 || isInside { text += "." }
                name(key)
            case .index(let position): text += "[\(position)]"
            }
        }
    }

    mutating func literal(_ value: QueryValue) {
        switch value {
        case .missing: text += "MISSING"
        case .null: text += "NULL"
        case .bool(let value): text += value ? "TRUE" : "FALSE"
        case .integer(let value): text += String(value)
        case .unsigned(let value): literal(.double(Double(value)))
        case .double(let value): text += value.isFinite ? value.description : "NULL"
        case .string(let value): text += value.quoted("'")
        case .array(let json), .object(let json):
            let value = JSONElement(JSONText(trusted: json)).value
            // Only a tree that is made by hand has such a literal. The language has no text for one that is nested too deeply.
            if let value = try? QueryExpression(value) { expression(value, .operand) }
        }
    }
}
