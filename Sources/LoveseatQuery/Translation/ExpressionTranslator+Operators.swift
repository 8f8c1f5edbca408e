import LoveseatText

extension ExpressionTranslator {
    // MARK: Operators

    /// The text with the collation by which it is compared.
    ///
    /// SQLite takes a collation from anywhere inside of an operand, also from a comparison in a CASE or in a function's arguments. If there
    /// is one inside, the outer comparison has to name its own.
    func collated(_ text: String, _ collation: TextCollation?, with others: [String] = []) -> String {
        if let name = collation?.sqlName { return text + " COLLATE " + SQL.name(name) }
        guard namesCollation, ([text] + others).contains(where: SQL.mayNameCollation) else { return text }
        return text + " COLLATE BINARY"
    }

    mutating func binary(
        _ name: QueryExpression.BinaryOperator,
        _ left: QueryExpression,
        _ right: QueryExpression,
        _ collation: TextCollation?,
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
            return "(\(collated(one, collation, with: [other])) \(name.rawValue) \(other))"
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .equal, .notEqual:
            if name == .equal, collation == nil, let text = try reference(left, right) { return text }
            let (one, other) = try operands(left, right, isEquality: name == .equal || name == .notEqual)
            return "(\(collated(one, collation, with: [other])) \(name.rawValue) \(other))"
        }
    }

    /// The condition that a property is the ID of a document of another collection; nil for any other comparison.
    ///
    /// SQLite uses no index of the property in a comparison with a column of texts, and none of the column if its kind is taken away. So the
    /// condition is written in both forms, and SQLite can begin on either side.
    private mutating func reference(_ left: QueryExpression, _ right: QueryExpression) throws(QueryError)
        -> String?
    {
        guard names.sources.count > 1 else { return nil }
        let (id, property): (QueryExpression, QueryExpression)
        switch (column(left), column(right)) {
        case (.id?, nil): (id, property) = (left, right)
        case (nil, .id?): (id, property) = (right, left)
        default: return nil
        }
        guard case .property = property.kind else { return nil }
        let (one, other) = (try sql(id, .operand), try sql(property, .operand))
        return "(\(one) = ls_text(\(other)) AND \(other) = +\(one))"
    }

    mutating func chain(_ first: QueryExpression, _ links: [QueryExpression.Link]) throws(QueryError)
        -> String
    {
        var text = try sql(first, .operand)
        for link in links { text += " \(link.name.rawValue) \(try sql(link.operand, .operand))" }
        return "(\(text))"
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
        _ collation: TextCollation?
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
        // SQLite folds this to the word FALSE or TRUE, which is another operator after IS.
        if items.isEmpty { return "ifnull(\(text) \(isNegated ? "NOT " : "")IN (), 0)" }
        return
            "(\(collated(text, collation, with: list)) \(isNegated ? "NOT " : "")IN (\(list.joined(separator: ", "))))"
    }

    /// An operand that does not convert the other side of a comparison, if it is a column.
    private mutating func plain(_ expression: QueryExpression) throws(QueryError) -> String {
        (column(expression) == nil ? "" : "+") + (try sql(expression, .operand))
    }

    mutating func between(
        _ value: QueryExpression,
        _ low: QueryExpression,
        _ high: QueryExpression,
        _ isNegated: Bool,
        _ collation: TextCollation?
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
        let range = "\(try plain(low)) AND \(try plain(high))"
        return "(\(collated(text, collation, with: [range])) \(isNegated ? "NOT " : "")BETWEEN \(range))"
    }

    /// SQLite's own LIKE can use an index; where it would take an array for text, the function `ls_like` decides.
    mutating func like(
        _ value: QueryExpression,
        _ pattern: QueryExpression,
        _ isNegated: Bool,
        _ collation: TextCollation?
    ) throws(QueryError) -> String {
        let (one, other) = (try sql(value, .operand), try sql(pattern, .operand))
        let text: String
        if let collation, collation.isUnicode, let name = collation.sqlName {
            text = "ls_like(\(one), \(other), \(SQL.string(name)))"
        } else if scope.isIndex {
            // SQLite's own LIKE is not deterministic once its case sensitivity was set, and indexes refuse it.
            text = "ls_like(\(one), \(other))"
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
        let subject = try operand.map { value throws(QueryError) in try plain(value) }
        var conditions: [String] = []
        var text = ""
        for branch in branches {
            let condition = try operand == nil ? sql(branch.condition, .operand) : plain(branch.condition)
            conditions.append(condition)
            text += " WHEN \(condition) THEN \(try sql(branch.result, context))"
        }
        text = "CASE" + (subject.map { " " + collated($0, nil, with: conditions) } ?? "") + text
        if let otherwise { text += " ELSE " + (try sql(otherwise, context)) } else { text += " ELSE x''" }
        return "(" + text + " END)"
    }

    // MARK: Keys and results

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
            guard seesAliases, case .alias(let aliased, [])? = try? names.resolve(steps, at: nil) else {
                return false
            }
            // Inside its own definition a name is the property.
            return isConstant(aliased, seesAliases: false)
        default: return false
        }
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
}
