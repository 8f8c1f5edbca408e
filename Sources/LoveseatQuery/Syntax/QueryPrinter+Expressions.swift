import LoveseatText

extension QueryPrinter {
    /// How tightly an expression binds, from the weakest on. An expression that is weaker than its place needs parentheses.
    enum Strength: Int, Comparable {
        /// COLLATE, and every place between commas or keywords.
        case whole
        case disjunction
        case conjunction
        case negation
        /// IS MISSING, IN, LIKE and BETWEEN, which cannot follow each other.
        case test
        case equality
        case comparison
        case bits
        case sum
        case product
        case concatenation
        case operand

        static func < (one: Strength, other: Strength) -> Bool { one.rawValue < other.rawValue }

        /// The next stronger one.
        var next: Strength { Strength(rawValue: rawValue + 1) ?? .operand }
    }

    /// Writes an expression, in parentheses if it is weaker than its place needs.
    mutating func expression(_ expression: QueryExpression, _ minimum: Strength) {
        guard Self.strength(of: expression) < minimum else { return bare(expression) }
        write("(")
        bare(expression)
        write(")")
    }

    private static func strength(of expression: QueryExpression) -> Strength {
        switch expression.kind {
        case .collated: .whole
        case .or: .disjunction
        case .and: .conjunction
        case .unary(.not, _): .negation
        case .test, .contained, .like, .between: .test
        case .binary(let name, _, _): strength(of: name)
        case .chain(_, let links): links.first.map { strength(of: $0.name) } ?? .operand
        case .concatenation: .concatenation
        default: .operand
        }
    }

    private static func strength(of name: QueryExpression.BinaryOperator) -> Strength {
        switch name {
        case .equal, .notEqual, .is, .isNot: .equality
        case .less, .lessOrEqual, .greater, .greaterOrEqual: .comparison
        case .shiftLeft, .shiftRight, .bitAnd, .bitOr: .bits
        case .add, .subtract: .sum
        case .multiply, .divide, .modulo: .product
        }
    }

    private mutating func bare(_ expression: QueryExpression) {
        switch expression.kind {
        case .literal(let value): literal(value)
        case .array(let items): items.isEmpty ? write("[]") : arguments("[", items, "]")
        case .object(let members): object(members)
        case .parameter(let name):
            write("$")
            self.name(name)
        case .property(let steps): path(steps)
        case .wildcard(let source):
            if let source {
                name(source)
                write(".")
            }
            write("*")
        case .meta(let source, let name): meta(source, name)
        case .nested(let value, let steps): nested(value, steps)
        case .unary(.not, let value):
            write("NOT ")
            self.expression(value, .negation)
        case .unary(let name, let value):
            // In parentheses, because a sign in front of digits belongs to the number.
            arguments(name == .plus ? "+(" : "-(", [value], ")")
        case .binary(let name, let left, let right): binary(name, left, right)
        case .chain(let first, let links): chain(first, links)
        case .and(let items): list(items, separator: " AND ") { $0.expression($1, .negation) }
        case .or(let items): list(items, separator: " OR ") { $0.expression($1, .conjunction) }
        case .concatenation(let items): list(items, separator: " || ") { $0.expression($1, .operand) }
        case .test(let value, let test, let isNegated):
            self.expression(value, .comparison)
            write(isNegated ? " IS NOT " : " IS ")
            write(test == .null ? "NULL" : test == .missing ? "MISSING" : "VALUED")
        case .contained(let value, let items, let isNegated):
            self.expression(value, .comparison)
            arguments(isNegated ? " NOT IN (" : " IN (", items, ")")
        case .like(let value, let pattern, let isNegated):
            self.expression(value, .comparison)
            write(isNegated ? " NOT LIKE " : " LIKE ")
            self.expression(pattern, .comparison)
        case .between(let value, let low, let high, let isNegated):
            self.expression(value, .comparison)
            write(isNegated ? " NOT BETWEEN " : " BETWEEN ")
            self.expression(low, .comparison)
            write(" AND ")
            self.expression(high, .comparison)
        case .choice(let operand, let branches, let otherwise): choice(operand, branches, otherwise)
        case .quantified(let quantifier, let variable, let collection, let condition):
            write(quantifier == .any ? "ANY " : quantifier == .every ? "EVERY " : "ANY AND EVERY ")
            name(variable)
            write(" IN ")
            self.expression(collection, .whole)
            write(" SATISFIES ")
            self.expression(condition, .whole)
            write(" END")
        case .function(let name, let items): arguments(name + "(", items, ")")
        case .match(let index, let words):
            reference("MATCH(", index)
            arguments(", ", [words], ")")
        case .rank(let index):
            reference("RANK(", index)
            write(")")
        case .exists(let query):
            write("EXISTS (")
            self.query(query)
            write(")")
        case .collated(let value, let collation):
            self.expression(value, .disjunction)
            write(" COLLATE ")
            self.collation(collation)
        }
    }

    private mutating func arguments(_ start: String, _ items: [QueryExpression], _ end: String) {
        write(start)
        list(items) { $0.expression($1, .whole) }
        write(end)
    }

    private mutating func object(_ members: [QueryExpression.Member]) {
        write("{")
        list(members) { printer, member in
            printer.write(member.key.quoted("'") + ": ")
            printer.expression(member.value, .whole)
        }
        write("}")
    }

    private mutating func meta(_ source: String?, _ name: String?) {
        write("META(")
        if let source { self.name(source) }
        write(")")
        // META() alone stands for the whole object.
        guard let name else { return }
        write(".")
        self.name(name)
    }

    private mutating func nested(_ value: QueryExpression, _ steps: [PathStep]) {
        switch value.kind {
        case .property(let first): return path(first + steps)
        case .parameter, .function, .meta, .array, .object: bare(value)
        default:
            // Numbers and texts too: a point behind digits would be read as part of the number.
            write("(")
            bare(value)
            write(")")
        }
        path(steps, isInside: true)
    }

    private mutating func binary(
        _ name: QueryExpression.BinaryOperator,
        _ left: QueryExpression,
        _ right: QueryExpression
    ) {
        let strength = Self.strength(of: name)
        expression(left, strength)
        write(" \(name.rawValue) ")
        switch (name, right.kind) {
        case (.is, .literal(.null)), (.is, .literal(.missing)), (.isNot, .literal(.null)),
            (.isNot, .literal(.missing)):
            // Without parentheses this would be the test IS NULL.
            write("(")
            bare(right)
            write(")")
        case (.is, _), (.isNot, _): expression(right, .operand)
        default: expression(right, strength.next)
        }
    }

    private mutating func chain(_ first: QueryExpression, _ links: [QueryExpression.Link]) {
        let strength = links.first.map { Self.strength(of: $0.name) } ?? .operand
        expression(first, strength)
        for link in links {
            write(" \(link.name.rawValue) ")
            expression(link.operand, strength.next)
        }
    }

    private mutating func choice(
        _ operand: QueryExpression?,
        _ branches: [QueryExpression.Branch],
        _ otherwise: QueryExpression?
    ) {
        write("CASE ")
        if let operand {
            expression(operand, .whole)
            write(" ")
        }
        for branch in branches {
            write("WHEN ")
            expression(branch.condition, .whole)
            write(" THEN ")
            expression(branch.result, .whole)
            write(" ")
        }
        if let otherwise {
            write("ELSE ")
            expression(otherwise, .whole)
            write(" ")
        }
        write("END")
    }

    private mutating func reference(_ start: String, _ index: QueryExpression.IndexReference) {
        write(start)
        if let source = index.source {
            name(source)
            write(".")
        }
        name(index.name)
    }

    private mutating func collation(_ collation: TextCollation) {
        var options: [String] = []
        if collation.isUnicode || collation.locale != nil {
            var printer = QueryPrinter()
            printer.write("UNICODE")
            if let locale = collation.locale {
                printer.write(":")
                printer.name(locale)
            }
            options.append(printer.text)
        }
        if !collation.isUnicode, collation.locale != nil { options.append("NOUNICODE") }
        if collation.ignoresCase { options.append("NOCASE") }
        if collation.ignoresAccents { options.append("NODIAC") }
        if options.isEmpty { options = ["NOUNICODE"] }
        write(options.count == 1 ? options[0] : "(\(options.joined(separator: " ")))")
    }
}
