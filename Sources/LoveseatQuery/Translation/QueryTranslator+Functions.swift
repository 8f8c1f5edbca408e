import LoveseatModel
import LoveseatText

extension QueryTranslator {
    // MARK: Quantifiers

    mutating func quantified(
        _ quantifier: QueryExpression.Quantifier,
        _ variable: String,
        _ collection: QueryExpression,
        _ condition: QueryExpression,
        at position: Int?
    ) throws(QueryError) -> String {
        if variables.contains(where: { $0.name.isExactly(variable) }) {
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
        let table = tableAlias(variable)
        variables.append(Variable(name: variable, table: table))
        defer { variables.removeLast() }
        let allowed = scope
        scope.allowsAggregates = false
        defer { scope = allowed }
        let test = try sql(condition, .operand)
        let from = "SELECT 1 FROM ls_each(\(items)) AS \(SQL.name(table)) WHERE "
        switch quantifier {
        case .any: return "EXISTS (\(from)\(test))"
        case .every: return "(NOT EXISTS (\(from)NOT \(test)))"
        case .anyAndEvery:
            variables.removeLast()
            let count = "ls_array_count(\(try sql(collection, .value)))"
            variables.append(Variable(name: variable, table: table))
            return "(\(count) > 0 AND NOT EXISTS (\(from)NOT \(test)))"
        }
    }

    /// The arguments of the table function: the text of a document and a path, or a value.
    mutating func collectionArguments(_ collection: QueryExpression) throws(QueryError) -> String {
        if case .property(let steps) = collection.kind,
            case .path(let body, let rest) = try resolve(steps, at: collection.position)
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
        var inner = QueryTranslator(catalog: catalog)
        inner.parameters = parameters
        inner.collections = collections
        inner.level = level
        let translated = try inner.translate(query)
        parameters = translated.parameters
        collections = translated.collections
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

    func index(_ reference: QueryExpression.IndexReference, at position: Int?) throws(QueryError)
        -> (source: Int, index: FullTextIndexDefinition)
    {
        var source = 0
        if let name = reference.source {
            guard let (index, _) = matchingSource([.key(name)]) else {
                throw QueryError(.invalidQuery, "No collection has the alias '\(name)'", at: position)
            }
            source = index
        } else if sources.filter({ $0.collection != nil }).count > 1 {
            throw QueryError(
                .invalidQuery,
                "Write the alias of its collection before the index '\(reference.name)', as there are several",
                at: position
            )
        }
        guard
            let found = sources[source].collection?.fullTextIndexes.first(where: {
                $0.name.isExactly(reference.name)
            }
            )
        else {
            throw QueryError(
                .missingIndex,
                "There is no full-text index '\(reference.name)': create it",
                at: position
            )
        }
        return (source, found)
    }

    mutating func match(
        _ reference: QueryExpression.IndexReference,
        _ text: QueryExpression,
        at position: Int?
    ) throws(QueryError) -> String {
        let (source, index) = try index(reference, at: position)
        guard !matches.contains(where: { $0.source == source && $0.index.name.isExactly(index.name) }) else {
            throw QueryError(
                .invalidQuery,
                "Only one MATCH of the index '\(index.name)' may be in a query",
                at: position
            )
        }
        let alias = Self.matchAlias(source, index)
        matches.append(Match(source: source, index: index, alias: alias))
        let query = "ls_match(\(try sql(text, .operand)), \(SQL.string(index.matchOptions)))"
        return "\(SQL.name(alias)).\(SQL.name(index.table)) MATCH \(query)"
    }

    mutating func rank(_ reference: QueryExpression.IndexReference, at position: Int?)
        throws(QueryError)
        -> String
    {
        let (source, index) = try index(reference, at: position)
        // The SELECT list is translated before WHERE, so that MATCH is looked for at the end.
        ranks.append((source, index, position))
        return "ls_rank(\(SQL.name(Self.matchAlias(source, index))).\(SQL.name(index.table)))"
    }

    static func matchAlias(_ source: Int, _ index: FullTextIndexDefinition) -> String {
        "match \(source) \(index.name)"
    }
}
