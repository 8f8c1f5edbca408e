import LoveseatModel
import LoveseatText

/// Translates a query to SQL: its clauses, and the form of its results.
struct QueryTranslator {
    var expressions: ExpressionTranslator

    init(catalog: QueryCatalog) { expressions = ExpressionTranslator(names: QueryNames(catalog: catalog)) }

    private var names: QueryNames { expressions.names }

    mutating func translate(_ query: SelectQuery) throws(QueryError) -> TranslatedQuery {
        try expressions.names.bind(query)
        try expressions.names.bindArrays(query)
        let (items, titles) = try results(query)
        let sql = try statement(query, items: items)
        return TranslatedQuery(
            sql: sql,
            columns: titles,
            parameters: expressions.parameters,
            collections: names.collections
        )
    }

    /// The statement with its clauses.
    private mutating func statement(_ query: SelectQuery, items: [String]) throws(QueryError) -> String {
        for (name, expression) in query.results.compactMap({ item in item.alias.map { ($0, item.expression) }
        }) {
            expressions.names.aliases[ExactText(name)] = expression
        }
        expressions.scope = .init()
        expressions.names.seesAliases = true
        var conditions: [String] = []
        if let condition = query.condition {
            expressions.scope.allowsMatch = true
            conditions = try topLevel(condition)
            expressions.scope.allowsMatch = false
        }
        var grouping: [String] = []
        for item in query.grouping { grouping.append(try expressions.sortKey(item)) }
        expressions.scope.allowsAggregates = true
        let having = try query.having.map { expression throws(QueryError) in
            try expressions.sql(expression, .operand)
        }
        var order: [String] = []
        for item in query.order {
            order.append(try orderTerm(item.expression, query) + (item.isDescending ? " DESC" : ""))
        }
        expressions.scope.allowsAggregates = false
        let page = try page(query)
        try expressions.fullText.checkRanks()
        // Everything is translated: now it is known which full-text tables to join.
        let from = try fromClause(query, &conditions)
        var text =
            "SELECT " + (query.isDistinct ? "DISTINCT " : "") + items.joined(separator: ", ") + " FROM "
            + from
        if !conditions.isEmpty { text += " WHERE " + conditions.joined(separator: " AND ") }
        if !grouping.isEmpty { text += " GROUP BY " + grouping.joined(separator: ", ") }
        if let having { text += " HAVING " + having }
        if !order.isEmpty { text += " ORDER BY " + order.joined(separator: ", ") }
        return text + page
    }

    /// The terms of a condition that are joined by AND, where MATCH may stand.
    private mutating func topLevel(_ condition: QueryExpression) throws(QueryError) -> [String] {
        if case .and(let items) = condition.kind {
            var terms: [String] = []
            for item in items { terms += try topLevel(item) }
            return terms
        }
        if case .match(let index, let text) = condition.kind {
            return [try expressions.match(index, text, at: condition.position)]
        }
        let allowed = expressions.scope.allowsMatch
        expressions.scope.allowsMatch = false
        defer { expressions.scope.allowsMatch = allowed }
        return [try expressions.sql(condition, .operand)]
    }

    /// An ORDER BY term; a bare integer is the number of a column.
    private mutating func orderTerm(_ expression: QueryExpression, _ query: SelectQuery) throws(QueryError)
        -> String
    {
        var expression = expression
        if case .literal(.integer(let number)) = expression.kind {
            guard number >= 1, number <= query.results.count else {
                throw QueryError(
                    .invalidQuery,
                    "ORDER BY \(number) names no column: the query has \(query.results.count)",
                    at: expression.position
                )
            }
            expression = query.results[Int(number) - 1].expression
            expressions.names.seesAliases = false
        }
        defer { expressions.names.seesAliases = true }
        // Given the choice, SQLite would read one collection by ID, and all of another for each document.
        let sorts = query.limit == nil && names.sources.filter { $0.collection != nil }.count > 1
        return (sorts && expressions.column(expression) != nil ? "+" : "")
            + (try expressions.sortKey(expression))
    }

    private mutating func page(_ query: SelectQuery) throws(QueryError) -> String {
        var text = ""
        expressions.names.seesAliases = false
        if let limit = query.limit {
            text = " LIMIT \(try rowCount(limit))"
        } else if query.offset != nil {
            text = " LIMIT -1"
        }
        if let offset = query.offset { text += " OFFSET \(try rowCount(offset))" }
        return text
    }

    /// A number of rows. Parameters, and what is computed, are checked when the query runs.
    private mutating func rowCount(_ expression: QueryExpression) throws(QueryError) -> String {
        func refusal(_ message: String) -> QueryError {
            QueryError(.invalidQuery, "LIMIT and OFFSET \(message)", at: expression.position)
        }
        guard ExpressionTranslator.constant(expression)?.isRowCount ?? true else {
            throw refusal("take whole numbers")
        }
        guard !expression.readsDocuments else { throw refusal("cannot depend on a document") }
        return "ls_limit(\(try expressions.sql(expression, .operand)))"
    }

    /// The FROM clause; conditions that belong to WHERE are added there.
    private mutating func fromClause(_ query: SelectQuery, _ conditions: inout [String]) throws(QueryError)
        -> String
    {
        var text = try names.table(0)
        conditions.append(contentsOf: names.liveCondition(0).map { [$0] } ?? [])
        text += matchTables(0)
        expressions.scope = .init()
        expressions.names.seesAliases = false
        for (offset, join) in query.joins.enumerated() {
            let index = offset + 1
            switch join {
            case .collection(let kind, _, let condition):
                text += kind == .left ? " LEFT JOIN " : kind == .cross ? " CROSS JOIN " : " JOIN "
                text += try names.table(index)
                var terms: [String] = []
                if let condition { terms.append(try expressions.sql(condition, .operand)) }
                if let live = names.liveCondition(index) {
                    if kind == .cross { conditions.append(live) } else { terms.append(live) }
                }
                if !terms.isEmpty { text += " ON " + terms.joined(separator: " AND ") }
                text += matchTables(index)
            case .unnest:
                text += " JOIN " + names.sources[index].items
            }
        }
        return text
    }

    private func matchTables(_ source: Int) -> String {
        expressions.fullText.tables(of: source, row: names.sources[source].column("row"))
    }

    // MARK: Results

    /// The SELECT list and its titles.
    private mutating func results(_ query: SelectQuery) throws(QueryError) -> (
        items: [String], titles: [String]
    ) {
        expressions.scope = .init(allowsAggregates: true)
        expressions.names.seesAliases = false
        var items: [String] = []
        var titles: [String] = []
        var anonymous = 0
        var taken: Set<ExactText> = []
        let results =
            query.results.isEmpty ? [SelectQuery.Result(.init(.wildcard(source: nil)))] : query.results
        for result in results {
            var expression = result.expression
            if result.alias == nil, case .literal(.string(let text)) = expression.kind,
                let steps = PathStep.steps(text)
            {
                // A bare string is a path.
                expression = QueryExpression(.property(steps), at: expression.position)
            }
            items.append(try resultItem(expression))
            var title = result.alias
            if title == nil { title = try self.title(of: expression) }
            if title == nil {
                anonymous += 1
                title = "$\(anonymous)"
            }
            var unique = title ?? ""
            var count = 2
            while !taken.insert(ExactText(unique)).inserted {
                unique = "\(title ?? "") #\(count)"
                count += 1
            }
            titles.append(unique)
        }
        return (items, titles)
    }

    /// A result in the form in which rows are read: JSON text for kinds that SQLite does not have.
    private mutating func resultItem(_ expression: QueryExpression) throws(QueryError) -> String {
        switch expression.kind {
        case .property(let steps):
            switch try names.resolve(steps, at: expression.position) {
            case .path(let body, let rest): return "ls_result(\(body), \(SQL.string(QueryPath(rest).text)))"
            case .meta(let source, let name, let rest) where rest.isEmpty:
                return try metaResult(source, name, at: expression.position)
            case .meta, .alias: break
            }
        case .wildcard(let name):
            let source = try names.wildcardSource(name, at: expression.position)
            // A whole document is not looked into.
            if names.sources[source].collection != nil { return "CAST(\(names.body(of: source)) AS BLOB)" }
            return "ls_result(\(names.body(of: source)), '')"
        case .meta(let source, let name?):
            return try metaResult(
                try names.metaSource(source, at: expression.position),
                name,
                at: expression.position
            )
        case .function("COUNT", _), .function("SUM", _), .function("AVG", _):
            return try expressions.sql(expression, .value)
        case .collated(let inner, _): if case .property = inner.kind { return try resultItem(inner) }
        default: break
        }
        let text = try expressions.sql(expression, .value)
        let function = expressions.isLogical(expression) ? "ls_bool" : "ls_out"
        return expressions.collated("\(function)(\(text))", nil)
    }

    private func metaResult(_ source: Int, _ name: String, at position: Int?) throws(QueryError) -> String {
        let text = try names.meta(source, name, .value, at: position)
        return name == "deleted" ? "ls_bool(\(text))" : text
    }

    private func title(of expression: QueryExpression) throws(QueryError) -> String? {
        switch expression.kind {
        case .property(let steps):
            let resolved = try names.resolve(steps, at: expression.position)
            if case .path(_, let rest) = resolved, rest.isEmpty, let source = names.matchingSource(steps) {
                return names.sources[source.index].title
            }
            if case .meta(_, let name, let rest) = resolved, rest.isEmpty { return name }
            return Self.lastKey(steps)
        case .wildcard(let name):
            return names.sources[try names.wildcardSource(name, at: expression.position)].title
        case .meta(_, let name): return name
        default: return nil
        }
    }

    private static func lastKey(_ steps: [PathStep]) -> String? {
        if case .key(let key)? = steps.last { key } else { nil }
    }
}
