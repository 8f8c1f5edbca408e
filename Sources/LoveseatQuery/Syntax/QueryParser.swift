/// Reads a query's text into a tree.
///
/// The grammar is a PEG: alternatives are tried in order, and the first that fits is kept. A function that returns nil
/// read nothing that fits; the message then names the furthest place that was reached.
package struct QueryParser {
    var cursor: QueryCursor
    private(set) var problem: QueryError?
    private var depth = 0
    private var nodes = 0

    private init(_ text: String) throws(QueryError) {
        guard text.utf8.count <= QueryLimits.textBytes else {
            throw QueryError(
                .invalidQuery,
                "The query is longer than \(QueryLimits.textBytes) bytes: pass large values as parameters"
            )
        }
        cursor = QueryCursor(Array(text.utf8))
        cursor.skipSpace()
    }

    /// Reads a whole query.
    ///
    /// - Throws: ``QueryError`` with the furthest place that was reached and what was expected there.
    package static func parse(_ text: String) throws(QueryError) -> SelectQuery {
        var parser = try QueryParser(text)
        guard let query = parser.select() else { throw parser.failure() }
        _ = parser.cursor.consume(";")
        guard parser.cursor.isAtEnd else { throw parser.failure(expecting: "the end of the query") }
        return query
    }

    /// Reads a list of expressions, as the definition of an index has it.
    package static func parseList(_ text: String) throws(QueryError) -> [QueryExpression] {
        var parser = try QueryParser(text)
        var items: [QueryExpression] = []
        repeat {
            guard let item = parser.expression() else { throw parser.failure() }
            items.append(item)
        } while parser.cursor.consume(",")
        guard parser.cursor.isAtEnd else { throw parser.failure(expecting: "the end of the expressions") }
        return items
    }

    /// Reads one expression.
    package static func parseExpression(_ text: String) throws(QueryError) -> QueryExpression {
        var parser = try QueryParser(text)
        guard let item = parser.expression(), parser.cursor.isAtEnd else {
            throw parser.failure(expecting: "the end of the expression")
        }
        return item
    }

    private mutating func failure(expecting what: String? = nil) -> QueryError {
        if let problem { return problem }
        if let what { cursor.expect(what) }
        let place = cursor.furthest
        if let name = cursor.call(at: place), !QueryFunctionTable.isFunction(name.uppercased()) {
            return QueryError(
                .invalidQuery,
                "Syntax error: there is no function \(name.uppercased())()",
                at: place
            )
        }
        let found: String
        if place >= cursor.text.count {
            found = "the text ends"
        } else {
            let rest = String(
                decoding: cursor.text[place..<min(cursor.text.count, place + 16)],
                as: UTF8.self
            )
            found = "found `\(rest.prefix { !$0.isWhitespace }.prefix(12))`"
        }
        let expected = cursor.expected.isEmpty ? "something else" : cursor.expected.joined(separator: ", ")
        let advice =
            cursor.reservedStep(at: place).map { "; write `\($0)`, which is a reserved word, in back-quotes" }
            ?? ""
        return QueryError(.invalidQuery, "Syntax error: \(found), expected \(expected)\(advice)", at: place)
    }

    private mutating func report(_ error: QueryError) {
        if problem == nil { problem = error }
    }

    // MARK: Bounds

    /// Goes one level deeper, unless that is too deep.
    mutating func nested<T>(_ read: (inout QueryParser) -> T?) -> T? {
        guard problem == nil else { return nil }
        guard depth < QueryLimits.depth else {
            report(QueryError(.invalidQuery, QueryLimits.tooDeep, at: cursor.position))
            return nil
        }
        depth += 1
        defer { depth -= 1 }
        return read(&self)
    }

    func node(_ kind: QueryExpression.Kind, at position: Int) -> QueryExpression {
        QueryExpression(kind, at: position)
    }

    /// Checks the bounds of a tree that grew.
    mutating func checked(_ expression: QueryExpression) -> QueryExpression? {
        nodes += 1
        if expression.depth > QueryLimits.depth {
            report(QueryError(.invalidQuery, QueryLimits.tooDeep, at: expression.position))
            return nil
        }
        if nodes > QueryLimits.nodes {
            report(
                QueryError(
                    .invalidQuery,
                    "The query has more than \(QueryLimits.nodes) expressions: pass a list as a parameter",
                    at: expression.position
                )
            )
            return nil
        }
        return expression
    }

    // MARK: Clauses

    mutating func select() -> SelectQuery? {
        guard cursor.consume(keyword: "SELECT") else { return nil }
        let isDistinct = cursor.consume(keyword: "DISTINCT")
        if !isDistinct, cursor.isAt(keyword: "ALL") {
            let mark = cursor.position
            _ = cursor.consume(keyword: "ALL")
            // ALL is not reserved: it may as well be the first result.
            let next = cursor.peek()
            if next == nil || next == UInt8(ascii: ",") || next == UInt8(ascii: ".")
                || cursor.isAt(keyword: "FROM")
                || cursor.isAt(keyword: "AS")
            {
                cursor.rewind(to: mark)
            }
        }
        var results: [SelectQuery.Result] = []
        repeat {
            guard let item = result() else { return nil }
            results.append(item)
            if results.count > QueryLimits.columns {
                report(
                    QueryError(
                        .invalidQuery,
                        "The query has more than \(QueryLimits.columns) columns",
                        at: cursor.position
                    )
                )
                return nil
            }
        } while cursor.consume(",")
        guard cursor.consume(keyword: "FROM") else {
            if cursor.isAtEnd || ["WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET"].contains(where: cursor.isAt) {
                report(QueryError(.invalidQuery, "The FROM clause is missing: name a collection after FROM"))
            }
            return nil
        }
        guard let source = source() else { return nil }
        var query = SelectQuery(from: source)
        query.isDistinct = isDistinct
        query.results = results
        guard joins(&query), filters(&query), orders(&query), page(&query) else { return nil }
        return query
    }

    private mutating func result() -> SelectQuery.Result? {
        guard let item = expression() else { return nil }
        guard let alias = alias() else { return nil }
        return SelectQuery.Result(item, alias: alias.name)
    }

    private struct Alias { var name: String? }

    /// Reads `[AS] name`; nil if there is AS without a name.
    private mutating func alias() -> Alias? {
        if cursor.consume(keyword: "AS") {
            guard let name = cursor.identifier("a name after AS") else { return nil }
            return Alias(name: name)
        }
        return Alias(name: cursor.identifier("a name"))
    }

    private mutating func source() -> SelectQuery.Source? {
        let start = cursor.position
        guard let first = cursor.identifier("the name of a collection") else { return nil }
        var second: String?
        if cursor.peek() == UInt8(ascii: ".") {
            _ = cursor.consume(".")
            guard let name = cursor.identifier("the name of a collection") else { return nil }
            second = name
        } else {
            cursor.expect("`.`")
        }
        guard let alias = alias() else { return nil }
        return SelectQuery.Source(
            scope: second == nil ? nil : first,
            name: second ?? first,
            alias: alias.name,
            at: start
        )
    }

    private mutating func joins(_ query: inout SelectQuery) -> Bool {
        while true {
            let mark = cursor.position
            if cursor.consume(keyword: "UNNEST") {
                guard let item = expression(), let alias = alias() else { return false }
                query.joins.append(.unnest(item, alias: alias.name))
            } else {
                let kind: SelectQuery.JoinKind
                if cursor.consume(keyword: "LEFT") {
                    _ = cursor.consume(keyword: "OUTER")
                    kind = .left
                } else if cursor.consume(keyword: "CROSS") {
                    kind = .cross
                } else {
                    _ = cursor.consume(keyword: "INNER")
                    kind = .inner
                }
                guard cursor.consume(keyword: "JOIN") else {
                    cursor.rewind(to: mark)
                    return true
                }
                guard let source = source() else { return false }
                var condition: QueryExpression?
                if cursor.consume(keyword: "ON") {
                    guard let read = expression() else { return false }
                    condition = read
                }
                query.joins.append(.collection(kind, source, on: condition))
            }
            if query.joins.count > QueryLimits.joins {
                report(
                    QueryError(
                        .invalidQuery,
                        "The query joins more than \(QueryLimits.joins) sources",
                        at: mark
                    )
                )
                return false
            }
        }
    }

    private mutating func filters(_ query: inout SelectQuery) -> Bool {
        if cursor.consume(keyword: "WHERE") {
            guard let condition = expression() else { return false }
            query.condition = condition
        }
        guard cursor.consume(keyword: "GROUP") else { return true }
        guard cursor.consume(keyword: "BY") else { return false }
        repeat {
            guard let item = expression() else { return false }
            query.grouping.append(item)
        } while cursor.consume(",")
        if cursor.consume(keyword: "HAVING") {
            guard let condition = expression() else { return false }
            query.having = condition
        }
        return true
    }

    private mutating func orders(_ query: inout SelectQuery) -> Bool {
        guard cursor.consume(keyword: "ORDER") else { return true }
        guard cursor.consume(keyword: "BY") else { return false }
        repeat {
            guard let item = expression() else { return false }
            let isDescending = !cursor.consume(keyword: "ASC") && cursor.consume(keyword: "DESC")
            query.order.append(.init(item, isDescending: isDescending))
        } while cursor.consume(",")
        return true
    }

    private mutating func page(_ query: inout SelectQuery) -> Bool {
        while true {
            if query.limit == nil, cursor.consume(keyword: "LIMIT") {
                guard let count = expression() else { return false }
                query.limit = count
            } else if query.offset == nil, cursor.consume(keyword: "OFFSET") {
                guard let count = expression() else { return false }
                query.offset = count
            } else {
                return true
            }
        }
    }
}
