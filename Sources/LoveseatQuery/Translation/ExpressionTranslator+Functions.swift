import LoveseatModel
import LoveseatText

extension ExpressionTranslator {
    // MARK: Quantifiers

    mutating func quantified(
        _ quantifier: QueryExpression.Quantifier,
        _ variable: String,
        _ collection: QueryExpression,
        _ condition: QueryExpression,
        at position: Int?
    ) throws(QueryError) -> String {
        if names.variables.contains(where: { $0.name.isExactly(variable) }) {
            throw QueryError(
                .invalidQuery,
                "The variable '\(variable)' is already in use: choose another name",
                at: position
            )
        }
        let items = try collectionArguments(collection)
        if quantifier == .any, case .binary(.equal, let left, let right) = condition.kind,
            case .property(let steps) = left.kind, steps.count == 1, case .key(let name) = steps[0],
            name.isExactly(variable), !Self.mentions(variable, right)
        {
            // A lookup, which no row has to be made for.
            return "ls_any(\(items), \(try sql(right, .operand)))"
        }
        guard !scope.isIndex else {
            throw QueryError(
                .invalidQuery,
                "An index cannot contain this ANY or EVERY: make an array index",
                at: position
            )
        }
        let table = names.tableAlias(variable)
        names.variables.append(.init(name: variable, table: table))
        defer { names.variables.removeLast() }
        let allowed = scope
        scope.allowsAggregates = false
        defer { scope = allowed }
        let test = try sql(condition, .operand)
        let from = "SELECT 1 FROM ls_each(\(items)) AS \(SQL.name(table)) WHERE "
        switch quantifier {
        case .any: return "EXISTS (\(from)\(test))"
        case .every: return "(NOT EXISTS (\(from)NOT \(test)))"
        case .anyAndEvery:
            names.variables.removeLast()
            let count = "ls_array_count(\(try sql(collection, .value)))"
            names.variables.append(.init(name: variable, table: table))
            return "(\(count) > 0 AND NOT EXISTS (\(from)NOT \(test)))"
        }
    }

    /// The arguments of the table function: the text of a document and a path, or a value.
    mutating func collectionArguments(_ collection: QueryExpression) throws(QueryError) -> String {
        if case .property(let steps) = collection.kind,
            case .path(let body, let rest) = try names.resolve(steps, at: collection.position)
        {
            return "\(body), \(SQL.string(QueryPath(rest).text))"
        }
        return "\(try sql(collection, .value)), NULL"
    }

    static func mentions(_ variable: String, _ expression: QueryExpression) -> Bool {
        if case .property(let steps) = expression.kind, steps.first == .key(variable) { return true }
        return expression.kind.children.contains { mentions(variable, $0) }
    }

    mutating func exists(_ query: SelectQuery) throws(QueryError) -> String {
        guard !scope.isIndex else {
            throw QueryError(.invalidQuery, "An index cannot contain EXISTS", at: query.source.position)
        }
        var inner = QueryTranslator(catalog: names.catalog)
        inner.expressions.parameters = parameters
        inner.expressions.names.collections = names.collections
        inner.expressions.level = level
        let translated = try inner.translate(query)
        parameters = translated.parameters
        names.collections = translated.collections
        return "EXISTS (\(translated.sql))"
    }

    // MARK: Functions

    mutating func function(
        _ name: String,
        _ arguments: [QueryExpression],
        _ collation: TextCollation?,
        at position: Int?
    ) throws(QueryError) -> String {
        guard let signature = QueryFunctionTable.signatures[name] else {
            throw QueryError(.invalidQuery, "There is no function \(name)()", at: position)
        }
        guard signature.arguments.contains(arguments.count) else {
            let (least, most) = (signature.arguments.lowerBound, signature.arguments.upperBound)
            let takes = least == most ? "\(least)" : "\(least) to \(most)"
            throw QueryError(
                .invalidQuery,
                "\(name)() takes \(takes) argument\(most == 1 ? "" : "s"), not \(arguments.count)",
                at: position
            )
        }
        switch signature.target {
        case .aggregate(let target): return try aggregate(name, target, arguments, collation, at: position)
        case .greatest: return try extreme("max", arguments, at: position)
        case .least: return try extreme("min", arguments, at: position)
        case .scalar(let id):
            if scope.isIndex, id.mayDependOnTimeZone {
                throw QueryError(
                    .invalidQuery,
                    "An index cannot contain \(name)(): its result depends on the machine's time zone, which may change",
                    at: position
                )
            }
            if id == .contains, let collation, collation.isUnicode, let name = collation.sqlName {
                let extra = QueryExpression(.literal(.string(name)))
                return try call(id.sqlName, arguments + [extra], at: position)
            }
            if id == .arrayCount {
                switch arguments[0].kind {
                case .property, .nested: break
                default:
                    let extra = QueryExpression(.literal(.integer(0)))
                    return try call(id.sqlName, arguments + [extra], at: position)
                }
            }
            return try call(id.sqlName, arguments, at: position)
        }
    }

    /// The greatest or least of some values, by bytes.
    private mutating func extreme(_ name: String, _ arguments: [QueryExpression], at position: Int?)
        throws(QueryError) -> String
    {
        let text = try call(name, arguments, at: position)
        guard namesCollation, SQL.mayNameCollation(text), let first = arguments.first else { return text }
        // SQLite takes the collation of the first argument that has one.
        let others = try call("", Array(arguments.dropFirst()), at: position).dropFirst()
        return "\(name)(\(try sql(first, .value)) COLLATE BINARY, \(others)"
    }

    mutating func aggregate(
        _ name: String,
        _ target: String,
        _ arguments: [QueryExpression],
        _ collation: TextCollation?,
        at position: Int?
    ) throws(QueryError) -> String {
        guard scope.allowsAggregates else {
            throw QueryError(
                .invalidQuery,
                "\(name)() may stand only in SELECT, HAVING and ORDER BY, and not in another aggregate",
                at: position
            )
        }
        guard let argument = arguments.first else { return "count(*)" }
        if target == "count", case .wildcard(nil) = argument.kind { return "count(*)" }
        scope.allowsAggregates = false
        defer { scope.allowsAggregates = true }
        // The least and the greatest property may come from an index.
        var context = Context.operand
        switch target {
        case "ls_array_agg": context = .value
        case "min", "max": if case .property = argument.kind {} else { context = .value }
        default: break
        }
        let text = try sql(argument, context)
        return "\(target)(\(collated(text, collation)))"
    }

    // MARK: Full text

    mutating func match(
        _ reference: QueryExpression.IndexReference,
        _ text: QueryExpression,
        at position: Int?
    ) throws(QueryError) -> String {
        let (source, index) = try names.fullTextIndex(reference, at: position)
        let alias = try fullText.addMatch(index, of: source, at: position)
        let query = "ls_match(\(try sql(text, .operand)), \(SQL.string(index.matchOptions)))"
        return "\(SQL.name(alias)).\(SQL.name(index.table)) MATCH \(query)"
    }

    mutating func rank(_ reference: QueryExpression.IndexReference, at position: Int?)
        throws(QueryError)
        -> String
    {
        let (source, index) = try names.fullTextIndex(reference, at: position)
        let alias = fullText.addRank(index, of: source, at: position)
        return "ls_rank(\(SQL.name(alias)).\(SQL.name(index.table)))"
    }
}

/// The full-text indexes of a query.
struct FullTextMatches {
    /// Those whose MATCH is in the query, with the aliases of their tables.
    private var matches: [(source: Int, index: FullTextIndexDefinition, alias: String)] = []
    /// Each RANK, which needs its MATCH.
    private var ranks: [(source: Int, index: FullTextIndexDefinition, position: Int?)] = []

    private func contains(_ index: FullTextIndexDefinition, of source: Int) -> Bool {
        matches.contains { $0.source == source && $0.index.name.isExactly(index.name) }
    }

    /// Returns the alias of the index's table.
    mutating func addMatch(_ index: FullTextIndexDefinition, of source: Int, at position: Int?)
        throws(QueryError) -> String
    {
        guard !contains(index, of: source) else {
            throw QueryError(
                .invalidQuery,
                "Only one MATCH of the index '\(index.name)' may be in a query",
                at: position
            )
        }
        let alias = Self.alias(index, of: source)
        matches.append((source, index, alias))
        return alias
    }

    /// Returns the alias of the index's table. The SELECT list is translated before WHERE, so that MATCH is looked for at the end.
    mutating func addRank(_ index: FullTextIndexDefinition, of source: Int, at position: Int?) -> String {
        ranks.append((source, index, position))
        return Self.alias(index, of: source)
    }

    /// - Throws: an error for a RANK without its MATCH.
    func checkRanks() throws(QueryError) {
        for rank in ranks where !contains(rank.index, of: rank.source) {
            throw QueryError(
                .invalidQuery,
                "RANK(\(rank.index.name)) needs MATCH of the same index in WHERE",
                at: rank.position
            )
        }
    }

    /// The full-text tables to join to a source, whose rows have this number.
    func tables(of source: Int, row: String) -> String {
        matches.filter { $0.source == source }.map {
            " JOIN \(SQL.name($0.index.table)) AS \(SQL.name($0.alias)) ON \(SQL.name($0.alias)).rowid = "
                + row
        }.joined()
    }

    private static func alias(_ index: FullTextIndexDefinition, of source: Int) -> String {
        "match \(source) \(index.name)"
    }
}
