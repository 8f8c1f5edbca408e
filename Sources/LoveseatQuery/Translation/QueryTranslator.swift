import LoveseatModel
import LoveseatText

/// Translates a query to SQL: resolves names, checks rules that the grammar cannot, and writes expressions.
struct QueryTranslator {
    let catalog: QueryCatalog
    var sources: [BoundSource] = []
    /// The aliases of results, which are visible outside of the SELECT list.
    var aliases: [ExactText: QueryExpression] = [:]
    var variables: [Variable] = []
    var parameters: [QueryParameter] = []
    var collections: [CollectionName] = []
    /// Full-text indexes whose MATCH is in the query, by the alias of their table.
    var matches: [Match] = []
    /// Each RANK, which needs its MATCH.
    var ranks: [(source: Int, index: FullTextIndexDefinition, position: Int?)] = []
    var scope = Scope()
    /// Whether a collation was written anywhere, which SQLite may then apply to an outer comparison, too.
    var namesCollation = false
    /// The number of nested expressions that are being translated.
    var level = 0
    /// The number of expressions that were translated.
    private(set) var translated = 0
    private var usedNames: Set<ExactText> = []

    struct Scope {
        var seesAliases = false
        var allowsAggregates = false
        var allowsMatch = false
        /// Index definitions allow neither parameters nor aggregates.
        var isIndex = false
    }

    struct Variable {
        let name: String
        let table: String
    }

    struct Match {
        let source: Int
        let index: FullTextIndexDefinition
        let alias: String
    }

    init(catalog: QueryCatalog) { self.catalog = catalog }

    /// Called before an expression is translated: one that an alias names is translated each time it is used.
    mutating func count(_ expression: QueryExpression) throws(QueryError) {
        guard translated < QueryLimits.translations else {
            throw QueryError(
                .invalidQuery,
                "The query is too large: its aliases repeat more than \(QueryLimits.translations) expressions",
                at: expression.position
            )
        }
        translated += 1
    }

    mutating func translate(_ query: SelectQuery) throws(QueryError) -> TranslatedQuery {
        try bind(query)
        try bindArrays(query)
        let (items, titles) = try results(query)
        let sql = try statement(query, items: items)
        return TranslatedQuery(sql: sql, columns: titles, parameters: parameters, collections: collections)
    }

    /// The statement with its clauses.
    private mutating func statement(_ query: SelectQuery, items: [String]) throws(QueryError) -> String {
        for (name, expression) in query.results.compactMap({ item in item.alias.map { ($0, item.expression) }
        }) {
            aliases[ExactText(name)] = expression
        }
        scope = Scope(seesAliases: true)
        var conditions: [String] = []
        if let condition = query.condition {
            scope.allowsMatch = true
            conditions = try topLevel(condition)
            scope.allowsMatch = false
        }
        var grouping: [String] = []
        for item in query.grouping { grouping.append(try sortKey(item)) }
        scope.allowsAggregates = true
        let having = try query.having.map { expression throws(QueryError) in try sql(expression, .operand) }
        var order: [String] = []
        for item in query.order {
            order.append(try orderTerm(item.expression, query) + (item.isDescending ? " DESC" : ""))
        }
        scope.allowsAggregates = false
        let page = try page(query)
        for rank in ranks
        where !matches.contains(where: {
            $0.source == rank.source && $0.index.name.isExactly(rank.index.name)
        }) {
            throw QueryError(
                .invalidQuery,
                "RANK(\(rank.index.name)) needs MATCH of the same index in WHERE",
                at: rank.position
            )
        }
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
            return [try match(index, text, at: condition.position)]
        }
        let allowed = scope.allowsMatch
        scope.allowsMatch = false
        defer { scope.allowsMatch = allowed }
        return [try sql(condition, .operand)]
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
            scope.seesAliases = false
        }
        defer { scope.seesAliases = true }
        // Given the choice, SQLite would read one collection by ID, and all of another for each document.
        let sorts = query.limit == nil && sources.filter { $0.collection != nil }.count > 1
        return (sorts && column(expression) != nil ? "+" : "") + (try sortKey(expression))
    }

    /// An expression to sort or group by, with its collation.
    mutating func sortKey(_ expression: QueryExpression) throws(QueryError) -> String {
        var inner = expression
        var collation: TextCollation?
        if case .collated(let item, let written) = expression.kind {
            (inner, collation) = (item, written)
            namesCollation = namesCollation || written.sqlName != nil
        }
        // A comparison takes the collation for itself.
        var text = try sql(inner, .operand, collation)
        if isConstant(inner) { text = "ifnull(" + text + ", NULL)" }
        return collated(text, collation)
    }

    /// Whether SQLite may take a sort key as the number of a column: it is a number, or folded to one.
    private func isConstant(_ expression: QueryExpression, seesAliases: Bool = true) -> Bool {
        switch expression.kind {
        case .literal: return true
        case .and: return !scope.isIndex
        case .unary(.negate, let value), .collated(let value, _):
            return isConstant(value, seesAliases: seesAliases)
        case .property(let steps):
            // A name without a meaning has been refused already, when the sort key was translated.
            guard seesAliases, case .alias(let aliased, [])? = try? resolve(steps, at: nil) else {
                return false
            }
            // Inside its own definition a name is the property.
            return isConstant(aliased, seesAliases: false)
        default: return false
        }
    }

    private mutating func page(_ query: SelectQuery) throws(QueryError) -> String {
        var text = ""
        scope.seesAliases = false
        if let limit = query.limit {
            text = " LIMIT ls_limit(\(try sql(limit, .operand)))"
        } else if query.offset != nil {
            text = " LIMIT -1"
        }
        if let offset = query.offset { text += " OFFSET ls_limit(\(try sql(offset, .operand)))" }
        return text
    }

    // MARK: Results

    /// The SELECT list and its titles.
    private mutating func results(_ query: SelectQuery) throws(QueryError) -> (
        items: [String], titles: [String]
    ) {
        scope = Scope(allowsAggregates: true)
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
            switch try resolve(steps, at: expression.position) {
            case .path(let body, let rest): return "ls_result(\(body), \(SQL.string(QueryPath(rest).text)))"
            case .meta(let source, let name, let rest) where rest.isEmpty:
                return try metaResult(source, name, at: expression.position)
            case .meta, .alias: break
            }
        case .wildcard(let name):
            let source = try wildcardSource(name, at: expression.position)
            // A whole document is not looked into.
            if sources[source].collection != nil { return "CAST(\(body(of: source)) AS BLOB)" }
            return "ls_result(\(body(of: source)), '')"
        case .meta(let source, let name?):
            return try metaResult(
                try metaSource(source, at: expression.position),
                name,
                at: expression.position
            )
        case .function("COUNT", _), .function("SUM", _), .function("AVG", _):
            return try sql(expression, .value)
        case .collated(let inner, _): if case .property = inner.kind { return try resultItem(inner) }
        default: break
        }
        let text = try sql(expression, .value)
        return collated(isLogical(expression) ? "ls_bool(\(text))" : "ls_out(\(text))", nil)
    }

    private func metaResult(_ source: Int, _ name: String, at position: Int?) throws(QueryError) -> String {
        let text = try meta(source, name, .value, at: position)
        return name == "deleted" ? "ls_bool(\(text))" : text
    }

    /// Whether an expression gives a boolean, MISSING or null.
    func isLogical(_ expression: QueryExpression) -> Bool {
        switch expression.kind {
        case .unary(.not, _), .and, .or, .test, .contained, .like, .between, .quantified, .exists, .match:
            true
        case .binary(let name, _, _):
            switch name {
            case .less, .lessOrEqual, .greater, .greaterOrEqual, .equal, .notEqual, .is, .isNot: true
            default: false
            }
        case .collated(let inner, _): isLogical(inner)
        case .function(let name, _):
            if case .scalar(let id)? = QueryFunctionTable.signatures[name]?.target {
                id.isLogical
            } else {
                false
            }
        default: false
        }
    }

    private func title(of expression: QueryExpression) throws(QueryError) -> String? {
        switch expression.kind {
        case .property(let steps):
            let resolved = try resolve(steps, at: expression.position)
            if case .path(_, let rest) = resolved, rest.isEmpty, let source = matchingSource(steps) {
                return sources[source.index].title
            }
            if case .meta(_, let name, let rest) = resolved, rest.isEmpty { return name }
            return Self.lastKey(steps)
        case .wildcard(let name):
            return sources[try wildcardSource(name, at: expression.position)].title
        case .meta(_, let name): return name
        default: return nil
        }
    }

    private static func lastKey(_ steps: [PathStep]) -> String? {
        if case .key(let key)? = steps.last { key } else { nil }
    }

    // MARK: Names in SQL

    /// An alias that no other table of the statement has. SQLite does not distinguish `A` from `a`, and ends its text at a NUL.
    mutating func tableAlias(_ name: String) -> String {
        let name = String(decoding: name.utf8.map { $0 == 0 ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
        var unique = name
        var count = 2
        while !usedNames.insert(ExactText(unique.lowercased())).inserted {
            unique = "\(name) \(count)"
            count += 1
        }
        return unique
    }

    /// The place of a parameter.
    mutating func parameter(_ name: String, keepsBoolean: Bool) -> String {
        let parameter = QueryParameter(name: name, keepsBoolean: keepsBoolean)
        if let index = parameters.firstIndex(of: parameter) { return "?\(index + 1)" }
        parameters.append(parameter)
        return "?\(parameters.count)"
    }
}
