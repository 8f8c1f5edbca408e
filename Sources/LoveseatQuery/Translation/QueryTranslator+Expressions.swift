extension QueryTranslator {
    /// What a value is used for.
    enum Context {
        /// The value is kept: booleans have to stay booleans.
        case value
        /// Only what it compares or counts as matters.
        case operand
    }

    /// The text of an expression. Compound ones are in parentheses.
    mutating func sql(
        _ expression: QueryExpression,
        _ context: Context,
        _ collation: QueryCollation? = nil
    ) throws(QueryError) -> String {
        switch expression.kind {
        case .literal(let value): return Self.literal(value, context)
        case .array(let items): return try array(items, at: expression.position)
        case .object(let members): return try object(members, at: expression.position)
        case .parameter(let name):
            guard !scope.isIndex else {
                throw QueryError(
                    .invalidQuery,
                    "An index cannot depend on the parameter $\(name)",
                    at: expression.position
                )
            }
            return context == .value
                ? "ls_param(\(parameter(name, keepsBoolean: true)))" : parameter(name, keepsBoolean: false)
        case .property(let steps): return try property(steps, context, at: expression.position)
        case .wildcard(let name):
            return "ls_value(\(body(of: try wildcardSource(name, at: expression.position))), '')"
        case .meta(let source, let name):
            let index = try metaSource(source, at: expression.position)
            guard let name else { return try wholeMeta(index) }
            return try meta(index, name, context, at: expression.position)
        case .nested(let value, let steps):
            return "ls_nested(\(try sql(value, .value)), \(SQL.string(QueryPath(steps).text)))"
        case .unary(let name, let value):
            switch name {
            case .negate: return "(-\(try sql(value, .operand)))"
            case .not: return "(NOT \(try sql(value, .operand)))"
            case .plus:
                throw QueryError(
                    .invalidQuery,
                    "A plus sign needs something in front: leave it out",
                    at: expression.position
                )
            }
        case .and(let items): return try joined(items, "AND")
        case .or(let items): return try joined(items, "OR")
        case .concatenation(let items): return try call("ls_concat", items, at: expression.position)
        case .binary(let name, let left, let right):
            return try binary(name, left, right, collation, at: expression.position)
        case .test(let value, let test, let isNegated): return try tested(value, test, isNegated)
        case .contained(let value, let items, let isNegated):
            return try contained(value, items, isNegated, collation)
        case .like(let value, let pattern, let isNegated):
            return try like(value, pattern, isNegated, collation)
        case .between(let value, let low, let high, let isNegated):
            return try between(value, low, high, isNegated, collation)
        case .choice(let operand, let branches, let otherwise):
            return try choice(operand, branches, otherwise, context)
        case .quantified(let quantifier, let variable, let collection, let condition):
            return try quantified(quantifier, variable, collection, condition, at: expression.position)
        case .function(let name, let arguments):
            return try function(name, arguments, collation, at: expression.position)
        case .match:
            throw QueryError(
                .invalidQuery,
                "MATCH may stand only at the top of WHERE, or in ANDs there",
                at: expression.position
            )
        case .rank(let index): return try rank(index, at: expression.position)
        case .exists(let query): return try exists(query)
        case .collated(let inner, let collation): return try sql(inner, context, collation)
        }
    }

    static func literal(_ value: QueryValue, _ context: Context) -> String {
        switch value {
        case .missing: "NULL"
        case .null: "x''"
        case .bool(let value): context == .value ? "ls_mark(\(value ? 1 : 0))" : value ? "1" : "0"
        case .integer(let value): String(value)
        case .unsigned(let value): SQL.double(Double(value))
        case .double(let value): SQL.double(value)
        case .string(let value): SQL.string(value)
        case .array(let text): SQL.blob([QueryMark.array] + text)
        case .object(let text): SQL.blob([QueryMark.object] + text)
        }
    }

    /// The constant that an expression is, if it is one.
    static func constant(_ expression: QueryExpression) -> QueryValue? {
        switch expression.kind {
        case .literal(let value): return value
        case .array(let items):
            var values: [QueryValue] = []
            for item in items {
                guard let value = constant(item) else { return nil }
                values.append(value)
            }
            return QueryFunctions.array(of: values)
        case .object(let members):
            var values: [QueryValue] = []
            for member in members {
                guard let value = constant(member.value) else { return nil }
                values += [.string(member.key), value]
            }
            return QueryFunctions.object(of: values)
        default: return nil
        }
    }

    private mutating func array(_ items: [QueryExpression], at position: Int?) throws(QueryError) -> String {
        if let constant = Self.constant(QueryExpression(.array(items))) {
            return Self.literal(constant, .value)
        }
        return try call("ls_array_of", items, at: position)
    }

    private mutating func object(_ members: [QueryExpression.Member], at position: Int?) throws(QueryError)
        -> String
    {
        if let constant = Self.constant(QueryExpression(.object(members))) {
            return Self.literal(constant, .value)
        }
        let items = members.flatMap { [QueryExpression(.literal(.string($0.key))), $0.value] }
        return try call("ls_object", items, at: position)
    }

    mutating func call(_ name: String, _ items: [QueryExpression], at position: Int?) throws(QueryError)
        -> String
    {
        guard items.count <= QueryFunctionTable.maximumArguments else {
            throw QueryError(
                .invalidQuery,
                "There are more than \(QueryFunctionTable.maximumArguments) values in one place: pass an array as a parameter",
                at: position
            )
        }
        var arguments: [String] = []
        for item in items { arguments.append(try sql(item, .value)) }
        return name + "(" + arguments.joined(separator: ", ") + ")"
    }

    /// Joins terms in a balanced tree, so that a long chain is not a deep one.
    private mutating func joined(_ items: [QueryExpression], _ name: String) throws(QueryError) -> String {
        var terms: [String] = []
        for item in items { terms.append(try sql(item, .operand)) }
        func tree(_ terms: ArraySlice<String>) -> String {
            if terms.count <= 16 { return terms.joined(separator: " \(name) ") }
            let middle = terms.startIndex + terms.count / 2
            return "(\(tree(terms[..<middle]))) \(name) (\(tree(terms[middle...])))"
        }
        return "(" + tree(terms[...]) + ")"
    }

    // MARK: Properties

    private mutating func property(_ steps: [PathStep], _ context: Context, at position: Int?)
        throws(QueryError)
        -> String
    {
        switch try resolve(steps, at: position) {
        case .path(let body, let rest): return "ls_value(\(body), \(SQL.string(QueryPath(rest).text)))"
        case .meta(let source, let name, let rest):
            let value = try meta(source, name, context, at: position)
            return rest.isEmpty ? value : "ls_nested(\(value), \(SQL.string(QueryPath(rest).text)))"
        case .alias(let expression, let rest):
            // Inside its own definition a name is the property.
            scope.seesAliases = false
            defer { scope.seesAliases = true }
            var text: String
            if case .collated(let inner, _) = expression.kind {
                text = try sql(inner, context)
            } else {
                text = try sql(expression, context)
            }
            if !rest.isEmpty {
                if case .property(let first) = expression.kind {
                    return try property(first + rest, context, at: position)
                }
                text = "ls_nested(\(text), \(SQL.string(QueryPath(rest).text)))"
            }
            return text
        }
    }

    private mutating func wholeMeta(_ index: Int) throws(QueryError) -> String {
        var arguments: [String] = []
        for name in ["id", "sequence", "revisionID", "expiration"] {
            arguments += [SQL.string(name), try meta(index, name, .value, at: nil)]
        }
        arguments += ["'deleted'", "ls_mark(\(sources[index].column("flags")) & 1)"]
        return "ls_object(\(arguments.joined(separator: ", ")))"
    }

    /// META that a column holds. Columns have a kind in SQLite, which converts what they are compared with.
    private enum Column { case id, number }

    private func column(_ expression: QueryExpression) -> Column? {
        let name: String?
        switch expression.kind {
        case .meta(_, let meta): name = meta
        case .property(let steps):
            if case .meta(_, let meta, let rest)? = try? resolve(steps, at: nil), rest.isEmpty {
                name = meta
            } else {
                name = nil
            }
        default: name = nil
        }
        switch name {
        case "id", "revisionID": return .id
        case "sequence", "expiration", "rowid": return .number
        default: return nil
        }
    }

    /// Both sides of a comparison, so that a column converts nothing.
    private mutating func operands(
        _ left: QueryExpression,
        _ right: QueryExpression,
        isEquality: Bool
    ) throws(QueryError) -> (String, String) {
        var (one, other) = (try sql(left, .operand), try sql(right, .operand))
        let (first, second) = (column(left), column(right))
        func fits(_ column: Column, _ expression: QueryExpression) -> Bool {
            switch Self.constant(expression) {
            case .string?: column == .id
            case .missing?: true
            case let value?: column == .number && value.isNumber
            case nil: false
            }
        }
        if let first, second == nil, !fits(first, right) {
            if first == .id, isEquality { other = "ls_text(\(other))" } else { one = "+" + one }
        } else if let second, first == nil, !fits(second, left) {
            if second == .id, isEquality { one = "ls_text(\(one))" } else { other = "+" + other }
        } else if first != nil, second != nil, first != second {
            (one, other) = ("+" + one, "+" + other)
        }
        return (one, other)
    }

    // MARK: Operators

    private func collated(_ text: String, _ collation: QueryCollation?) -> String {
        guard let name = collation?.sqlName else { return text }
        return text + " COLLATE " + SQL.name(name)
    }

    private mutating func binary(
        _ name: QueryExpression.BinaryOperator,
        _ left: QueryExpression,
        _ right: QueryExpression,
        _ collation: QueryCollation?,
        at position: Int?
    ) throws(QueryError) -> String {
        switch name {
        case .shiftLeft, .shiftRight, .bitAnd, .bitOr:
            throw QueryError(
                .invalidQuery,
                "The operator \(name.rawValue) does not exist in queries",
                at: position
            )
        case .add, .subtract, .multiply, .divide, .modulo:
            return "(\(try sql(left, .operand)) \(name.rawValue) \(try sql(right, .operand)))"
        case .is, .isNot:
            if case .literal(.null) = right.kind { return try tested(left, .null, name == .isNot) }
            let (one, other) = try operands(left, right, isEquality: true)
            return "(\(collated(one, collation)) \(name.rawValue) \(other))"
        default:
            let (one, other) = try operands(left, right, isEquality: name == .equal || name == .notEqual)
            return "(\(collated(one, collation)) \(name.rawValue) \(other))"
        }
    }

    private mutating func tested(_ value: QueryExpression, _ test: QueryExpression.Test, _ isNegated: Bool)
        throws(QueryError) -> String
    {
        let text = try sql(value, .operand)
        switch test {
        case .null: return "(\(text) \(isNegated ? "!=" : "=") x'')"
        case .missing: return "(\(text) IS \(isNegated ? "NOT " : "")NULL)"
        case .valued: return "(ifnull(\(text), x'') \(isNegated ? "=" : "!=") x'')"
        }
    }

    private mutating func contained(
        _ value: QueryExpression,
        _ items: [QueryExpression],
        _ isNegated: Bool,
        _ collation: QueryCollation?
    ) throws(QueryError) -> String {
        var text = try sql(value, .operand)
        let column = column(value)
        var list: [String] = []
        for item in items {
            let one = try sql(item, .operand)
            if case .string? = Self.constant(item) {
                list.append(one)
            } else {
                list.append(column == .id ? "ls_text(\(one))" : one)
            }
        }
        if column == .number { text = "+" + text }
        return "(\(collated(text, collation)) \(isNegated ? "NOT " : "")IN (\(list.joined(separator: ", "))))"
    }

    private mutating func between(
        _ value: QueryExpression,
        _ low: QueryExpression,
        _ high: QueryExpression,
        _ isNegated: Bool,
        _ collation: QueryCollation?
    ) throws(QueryError) -> String {
        var text = try sql(value, .operand)
        if let column = column(value) {
            let fits = [low, high].allSatisfy {
                switch Self.constant($0) {
                case .string?: column == .id
                case let constant?: column == .number && constant.isNumber
                case nil: false
                }
            }
            if !fits { text = "+" + text }
        }
        let range = "\(try sql(low, .operand)) AND \(try sql(high, .operand))"
        return "(\(collated(text, collation)) \(isNegated ? "NOT " : "")BETWEEN \(range))"
    }

    /// SQLite's own LIKE can use an index; where it would take an array for text, a function of ours decides.
    private mutating func like(
        _ value: QueryExpression,
        _ pattern: QueryExpression,
        _ isNegated: Bool,
        _ collation: QueryCollation?
    ) throws(QueryError) -> String {
        let (one, other) = (try sql(value, .operand), try sql(pattern, .operand))
        let text: String
        if let collation, collation.isUnicode, let name = collation.sqlName {
            text = "ls_like(\(one), \(other), \(SQL.string(name)))"
        } else if case .literal(.string(let written)) = pattern.kind, Self.isSpecific(written) {
            text = "(\(one) LIKE \(other) ESCAPE '\\')"
        } else if case .parameter = pattern.kind {
            text = "(\(one) LIKE \(other) ESCAPE '\\' AND ls_like(\(one), \(other)))"
        } else {
            text = "ls_like(\(one), \(other))"
        }
        return isNegated ? "(NOT \(text))" : text
    }

    /// Whether a pattern asks for at least one character, and is short enough for SQLite.
    private static func isSpecific(_ pattern: String) -> Bool {
        pattern.utf8.count < 40_000 && !pattern.utf8.contains(0)
            && pattern.contains { $0 != "%" && $0 != "_" }
    }

    private mutating func choice(
        _ operand: QueryExpression?,
        _ branches: [QueryExpression.Branch],
        _ otherwise: QueryExpression?,
        _ context: Context
    ) throws(QueryError) -> String {
        var text = "CASE"
        if let operand { text += " " + (try sql(operand, .operand)) }
        for branch in branches {
            text += " WHEN \(try sql(branch.condition, .operand)) THEN \(try sql(branch.result, context))"
        }
        if let otherwise { text += " ELSE " + (try sql(otherwise, context)) } else { text += " ELSE x''" }
        return "(" + text + " END)"
    }

    // MARK: Quantifiers

    private mutating func quantified(
        _ quantifier: QueryExpression.Quantifier,
        _ variable: String,
        _ collection: QueryExpression,
        _ condition: QueryExpression,
        at position: Int?
    ) throws(QueryError) -> String {
        if variables.contains(where: { $0.name == variable }) {
            throw QueryError(
                .invalidQuery,
                "The variable '\(variable)' is already in use: choose another name",
                at: position
            )
        }
        let items = try collectionArguments(collection)
        if quantifier == .any, case .binary(.equal, let left, let right) = condition.kind,
            case .property([.key(variable)]) = left.kind, !Self.mentions(variable, right)
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

    /// What the table function takes: the text of a document and a path, or a value.
    private mutating func collectionArguments(_ collection: QueryExpression) throws(QueryError) -> String {
        if case .property(let steps) = collection.kind,
            case .path(let body, let rest) = try resolve(steps, at: collection.position)
        {
            return "\(body), \(SQL.string(QueryPath(rest).text))"
        }
        return "\(try sql(collection, .value)), NULL"
    }

    private static func mentions(_ variable: String, _ expression: QueryExpression) -> Bool {
        if case .property(let steps) = expression.kind, steps.first == .key(variable) { return true }
        return expression.kind.children.contains { mentions(variable, $0) }
    }

    private mutating func exists(_ query: SelectQuery) throws(QueryError) -> String {
        guard !scope.isIndex else {
            throw QueryError(.invalidQuery, "An index cannot contain EXISTS", at: query.source.position)
        }
        var inner = QueryTranslator(catalog: catalog)
        inner.parameters = parameters
        inner.collections = collections
        let translated = try inner.translate(query)
        parameters = translated.parameters
        collections = translated.collections
        return "EXISTS (\(translated.sql))"
    }

    // MARK: Functions

    private mutating func function(
        _ name: String,
        _ arguments: [QueryExpression],
        _ collation: QueryCollation?,
        at position: Int?
    ) throws(QueryError) -> String {
        guard let signature = QueryFunctionTable.signatures[name] else {
            throw QueryError(.invalidQuery, "There is no function \(name)()", at: position)
        }
        guard arguments.count >= signature.arguments.lowerBound else {
            throw QueryError(
                .invalidQuery,
                "\(name)() takes at least \(signature.arguments.lowerBound) arguments, not \(arguments.count)",
                at: position
            )
        }
        guard arguments.count <= signature.arguments.upperBound else {
            throw QueryError(
                .invalidQuery,
                "\(name)() takes at most \(signature.arguments.upperBound) arguments, not \(arguments.count)",
                at: position
            )
        }
        switch signature.target {
        case .aggregate(let target): return try aggregate(name, target, arguments, collation, at: position)
        case .greatest: return try call("max", arguments, at: position)
        case .least: return try call("min", arguments, at: position)
        case .scalar(let id):
            if id == .contains, let collation, collation.isUnicode, let name = collation.sqlName {
                let extra = QueryExpression(.literal(.string(name)))
                return try call(id.sqlName, arguments + [extra], at: position)
            }
            return try call(id.sqlName, arguments, at: position)
        }
    }

    private mutating func aggregate(
        _ name: String,
        _ target: String,
        _ arguments: [QueryExpression],
        _ collation: QueryCollation?,
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
        let text = try sql(
            argument,
            target == "ls_array_agg" || target == "min" || target == "max" ? .value : .operand
        )
        return "\(target)(\(collated(text, collation)))"
    }

    // MARK: Full text

    private func index(_ reference: QueryExpression.IndexReference, at position: Int?) throws(QueryError)
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
            let found = sources[source].collection?.fullTextIndexes.first(where: { $0.name == reference.name }
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
        guard !matches.contains(where: { $0.source == source && $0.index.name == index.name }) else {
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

    private mutating func rank(_ reference: QueryExpression.IndexReference, at position: Int?)
        throws(QueryError)
        -> String
    {
        let (source, index) = try index(reference, at: position)
        // The SELECT list is translated before WHERE, so that MATCH is looked for at the end.
        ranks.append((source, index, position))
        return "ls_rank(\(SQL.name(Self.matchAlias(source, index))).\(SQL.name(index.table)))"
    }

    private static func matchAlias(_ source: Int, _ index: FullTextIndexDefinition) -> String {
        "match \(source) \(index.name)"
    }
}
