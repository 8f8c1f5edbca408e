import LoveseatAssertions
import LoveseatText

/// Writes expressions in SQL, and checks rules that the grammar cannot.
struct ExpressionTranslator {
    var names: QueryNames
    var parameters: [QueryParameter] = []
    var fullText = FullTextMatches()
    var scope = Scope()
    /// Whether a collation was written anywhere, which SQLite may then apply to an outer comparison, too.
    var namesCollation = false
    /// The number of nested expressions that are being translated.
    var level = 0
    /// The number of expressions that were translated.
    private var translated = 0

    struct Scope {
        var allowsAggregates = false
        var allowsMatch = false
        /// Index definitions allow neither parameters nor aggregates.
        var isIndex = false
    }

    init(names: QueryNames) { self.names = names }

    /// The use of a value.
    enum Context {
        /// The value is kept: booleans have to stay booleans.
        case value
        /// Only the result of comparing or computing with it matters.
        case operand
    }

    /// The text of an expression. Compound ones are in parentheses.
    mutating func sql(
        _ expression: QueryExpression,
        _ context: Context,
        _ collation: TextCollation? = nil
    ) throws(QueryError) -> String {
        guard level < QueryLimits.depth else {
            throw QueryError(.invalidQuery, QueryLimits.tooDeep, at: expression.position)
        }
        try count(expression)
        let levels = expression.kind.levels
        level += levels
        defer { level -= levels }
        // In several functions, so that a level of a debug build takes few bytes of the stack.
        switch expression.kind {
        case .literal, .array, .object, .parameter, .property, .wildcard, .meta, .nested:
            return try operand(expression, context)
        case .unary, .and, .or, .concatenation, .function, .match, .rank, .exists, .collated:
            return try compound(expression, context, collation)
        default: return try condition(expression, context, collation)
        }
    }

    /// Called before an expression is translated: one that an alias names is translated each time it is used.
    private mutating func count(_ expression: QueryExpression) throws(QueryError) {
        guard translated < QueryLimits.translations else {
            throw QueryError(
                .invalidQuery,
                "The query is too large: its aliases repeat more than \(QueryLimits.translations) expressions",
                at: expression.position
            )
        }
        translated += 1
    }

    private mutating func operand(_ expression: QueryExpression, _ context: Context) throws(QueryError)
        -> String
    {
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
            return "ls_value(\(names.body(of: try names.wildcardSource(name, at: expression.position))), '')"
        case .meta(let source, let name):
            let index = try names.metaSource(source, at: expression.position)
            guard let name else { return try wholeMeta(index) }
            return try names.meta(index, name, context, at: expression.position)
        case .nested(let value, let steps):
            return "ls_nested(\(try sql(value, .value)), \(SQL.string(QueryPath(steps).text)))"
        default:
            impossible("an expression is not an operand: \(expression.kind)")
            return ""
        }
    }

    private mutating func compound(
        _ expression: QueryExpression,
        _ context: Context,
        _ collation: TextCollation?
    ) throws(QueryError) -> String {
        switch expression.kind {
        case .unary(let name, let value):
            switch name {
            // Two signs in a row would begin a comment.
            case .negate: return "(- \(try sql(value, .operand)))"
            case .not: return "(NOT \(try sql(value, .operand)))"
            case .plus:
                throw QueryError(
                    .invalidQuery,
                    "A plus sign needs something in front: leave it out",
                    at: expression.position
                )
            }
        case .and(let items): return try joined(items, "AND")
        case .or(let items): return try joined(Self.gathered(items), "OR")
        case .concatenation(let items): return try concatenation(items, at: expression.position)
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
        case .collated(let inner, let collation):
            namesCollation = namesCollation || collation.sqlName != nil
            return try sql(inner, context, collation)
        default:
            impossible("an expression is not compound: \(expression.kind)")
            return ""
        }
    }

    private mutating func condition(
        _ expression: QueryExpression,
        _ context: Context,
        _ collation: TextCollation?
    ) throws(QueryError) -> String {
        switch expression.kind {
        case .binary(let name, let left, let right):
            return try binary(name, left, right, collation, at: expression.position)
        case .chain(let first, let links): return try chain(first, links)
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
        default:
            impossible("an expression is not a condition: \(expression.kind)")
            return ""
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

    /// The constant value of an expression; nil if it is not constant.
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

    mutating func array(_ items: [QueryExpression], at position: Int?) throws(QueryError) -> String {
        if let constant = Self.constant(QueryExpression(.array(items))) {
            return Self.literal(constant, .value)
        }
        return try call("ls_array_of", items, at: position)
    }

    mutating func object(_ members: [QueryExpression.Member], at position: Int?) throws(QueryError)
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
    mutating func joined(_ items: [QueryExpression], _ name: String) throws(QueryError) -> String {
        var terms: [String] = []
        for item in items { terms.append(try sql(item, .operand)) }
        func tree(_ terms: ArraySlice<String>) -> String {
            if terms.count <= 16 { return terms.joined(separator: " \(name) ") }
            let middle = terms.startIndex + terms.count / 2
            return "(\(tree(terms[..<middle]))) \(name) (\(tree(terms[middle...])))"
        }
        return "(" + tree(terms[...]) + ")"
    }

    /// The terms of an OR, with equalities of one property as one IN, which reads the property once.
    static func gathered(_ terms: [QueryExpression]) -> [QueryExpression] {
        let equalities = terms.map(equality)
        var values: [[PathStep]: [QueryExpression]] = [:]
        for case let found? in equalities { values[found.steps, default: []].append(found.value) }
        return zip(terms, equalities).compactMap { term, found in
            guard let found, let all = values[found.steps] else {
                // Nil for an equality that an IN has taken.
                return found == nil ? term : nil
            }
            guard all.count > 1 else { return term }
            values[found.steps] = nil
            return QueryExpression(.contained(found.property, all, isNegated: false), at: term.position)
        }
    }

    /// The parts of a term that compares a property with a constant scalar.
    private static func equality(_ term: QueryExpression)
        -> (property: QueryExpression, steps: [PathStep], value: QueryExpression)?
    {
        guard case .binary(.equal, let left, let right) = term.kind, case .property(let steps) = left.kind,
            constant(right)?.isScalar == true
        else { return nil }
        return (left, steps, right)
    }

    /// Texts joined in a tree, as a function of SQLite takes a limited number of them.
    private mutating func concatenation(_ items: [QueryExpression], at position: Int?) throws(QueryError)
        -> String
    {
        let most = QueryFunctionTable.maximumArguments
        var items = items
        while items.count > most {
            items = stride(from: 0, to: items.count, by: most).map { start in
                let part = items[start..<min(items.count, start + most)]
                return QueryExpression(.concatenation(Array(part)), at: position)
            }
        }
        return try call("ls_concat", items, at: position)
    }

    // MARK: Properties

    mutating func property(_ steps: [PathStep], _ context: Context, at position: Int?)
        throws(QueryError)
        -> String
    {
        switch try names.resolve(steps, at: position) {
        case .path(let body, let rest):
            // SQLite reads an indexed expression from the index, which does not keep booleans: where they have to stay,
            // the function has another name.
            let function = context == .value ? "ls_kept" : "ls_value"
            if context == .operand, rest.isEmpty, let value = names.indexedValue(steps) { return value }
            return "\(function)(\(body), \(SQL.string(QueryPath(rest).text)))"
        case .meta(let source, let name, let rest):
            let value = try names.meta(source, name, context, at: position)
            return rest.isEmpty ? value : "ls_nested(\(value), \(SQL.string(QueryPath(rest).text)))"
        case .alias(let expression, let rest):
            // Inside its own definition a name is the property.
            // The variables around are not its own.
            let surrounding = names.variables
            names.seesAliases = false
            names.variables = []
            defer {
                names.seesAliases = true
                names.variables = surrounding
            }
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

    mutating func wholeMeta(_ index: Int) throws(QueryError) -> String {
        var arguments: [String] = []
        for name in ["id", "sequence", "revisionID", "expiration"] {
            arguments += [SQL.string(name), try names.meta(index, name, .value, at: nil)]
        }
        arguments += ["'deleted'", "ls_mark(\(names.sources[index].column("flags")) & 1)"]
        return "ls_object(\(arguments.joined(separator: ", ")))"
    }

    /// A column that holds a property of META. Columns have a kind in SQLite, and convert the values that they are compared with.
    enum Column { case id, number }

    func column(_ expression: QueryExpression) -> Column? {
        let name: String?
        switch expression.kind {
        case .meta(_, let meta): name = meta
        case .collated(let inner, _): return column(inner)
        case .property(let steps):
            // A name without a meaning is refused where it is translated.
            switch try? names.resolve(steps, at: nil) {
            case .meta(_, let meta, [])?: name = meta
            case .alias(let aliased, [])?:
                var inside = self
                (inside.names.seesAliases, inside.names.variables) = (false, [])
                return inside.column(aliased)
            case .path?, .meta?, .alias?, nil: name = nil
            }
        default: name = nil
        }
        switch name {
        case "id", "revisionID": return .id
        case "sequence", "expiration", "rowid": return .number
        default: return nil
        }
    }

    /// Both sides of a comparison, without conversion by a column.
    mutating func operands(
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

    /// The place of a parameter.
    mutating func parameter(_ name: String, keepsBoolean: Bool) -> String {
        let parameter = QueryParameter(name: name, keepsBoolean: keepsBoolean)
        if let index = parameters.firstIndex(of: parameter) { return "?\(index + 1)" }
        parameters.append(parameter)
        return "?\(parameters.count)"
    }
}
