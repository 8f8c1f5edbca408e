extension QueryTranslator {
    // MARK: Operators

    func collated(_ text: String, _ collation: QueryCollation?) -> String {
        guard let name = collation?.sqlName else { return text }
        return text + " COLLATE " + SQL.name(name)
    }

    mutating func binary(
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

    mutating func tested(_ value: QueryExpression, _ test: QueryExpression.Test, _ isNegated: Bool)
        throws(QueryError) -> String
    {
        let text = try sql(value, .operand)
        switch test {
        case .null: return "(\(text) \(isNegated ? "!=" : "=") x'')"
        case .missing: return "(\(text) IS \(isNegated ? "NOT " : "")NULL)"
        case .valued: return "(ifnull(\(text), x'') \(isNegated ? "=" : "!=") x'')"
        }
    }

    mutating func contained(
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

    mutating func between(
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

    /// SQLite's own LIKE can use an index; where it would take an array for text, the function `ls_like` decides.
    mutating func like(
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
    static func isSpecific(_ pattern: String) -> Bool {
        pattern.utf8.count < 40_000 && !pattern.utf8.contains(0)
            && pattern.contains { $0 != "%" && $0 != "_" }
    }

    mutating func choice(
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
}
