extension QueryParser {
    // MARK: Expressions that begin with a word

    mutating func named() -> QueryExpression? {
        let start = cursor.position
        let word = cursor.word()?.uppercased()
        switch word {
        case "CASE": return choice()
        case "ANY", "EVERY", "SOME":
            if let quantified = quantified() { return quantified }
            guard word == "SOME" else { return nil }
            cursor.rewind(to: start)
        case "EXISTS":
            if let exists = exists() { return exists }
            cursor.rewind(to: start)
        default: break
        }
        if let name = word, cursor.peek() != UInt8(ascii: "`"), let call = call(name) { return checked(call) }
        guard problem == nil else { return nil }
        cursor.rewind(to: start)
        return property()
    }

    private mutating func exists() -> QueryExpression? {
        let start = cursor.position
        guard cursor.consume(keyword: "EXISTS"), cursor.consume("("), let query = nested({ $0.select() }),
            cursor.consume(")")
        else { return nil }
        return checked(node(.exists(query), at: start))
    }

    mutating func choice() -> QueryExpression? {
        let start = cursor.position
        guard cursor.consume(keyword: "CASE") else { return nil }
        var operand: QueryExpression?
        if !cursor.isAt(keyword: "WHEN") {
            guard let read = expression() else {
                cursor.expect("WHEN", at: cursor.position)
                return nil
            }
            operand = read
        }
        var branches: [QueryExpression.Branch] = []
        while cursor.consume(keyword: "WHEN") {
            guard let condition = expression(), cursor.consume(keyword: "THEN"), let result = expression()
            else {
                return nil
            }
            branches.append(.init(condition: condition, result: result))
        }
        guard !branches.isEmpty else { return nil }
        var otherwise: QueryExpression?
        if cursor.consume(keyword: "ELSE") {
            guard let read = expression() else { return nil }
            otherwise = read
        }
        guard cursor.consume(keyword: "END") else { return nil }
        return checked(node(.choice(operand: operand, branches, otherwise: otherwise), at: start))
    }

    mutating func quantified() -> QueryExpression? {
        let start = cursor.position
        var quantifier = QueryExpression.Quantifier.every
        if !cursor.consume(keyword: "EVERY") {
            guard cursor.consume(keyword: "ANY") || cursor.consume(keyword: "SOME") else { return nil }
            quantifier = .any
            if cursor.consume(keyword: "AND") {
                guard cursor.consume(keyword: "EVERY") else { return nil }
                quantifier = .anyAndEvery
            }
        }
        guard let variable = cursor.identifier("the name of a variable"), cursor.consume(keyword: "IN"),
            let collection = expression(), cursor.consume(keyword: "SATISFIES"), let condition = expression(),
            cursor.consume(keyword: "END")
        else { return nil }
        return checked(
            node(
                .quantified(quantifier, variable: variable, collection: collection, condition: condition),
                at: start
            )
        )
    }

    /// Reads a function's arguments; nil if this is not a function.
    mutating func call(_ name: String) -> QueryExpression? {
        guard QueryFunctionTable.isFunction(name) else { return nil }
        let start = cursor.position
        cursor.advance(name.utf8.count)
        cursor.skipSpace()
        guard cursor.peek() == UInt8(ascii: "("), cursor.consume("(") else { return nil }
        switch name {
        case "META": return meta(from: start)
        case "MATCH": return match(from: start)
        case "RANK": return rank(from: start)
        default:
            guard let arguments = items(until: ")") else { return nil }
            return node(.function(name, arguments), at: start)
        }
    }

    private mutating func meta(from start: Int) -> QueryExpression? {
        if cursor.consume(")") { return node(.meta(source: nil, name: nil), at: start) }
        guard var source = cursor.identifier("the alias of a collection") else { return nil }
        if cursor.consume(".") {
            guard let last = cursor.identifier("the name of a collection") else { return nil }
            source += "." + last
        }
        return cursor.consume(")") ? node(.meta(source: source, name: nil), at: start) : nil
    }

    private mutating func match(from start: Int) -> QueryExpression? {
        guard let index = indexReference(), cursor.consume(","), let text = expression(), cursor.consume(")")
        else {
            return nil
        }
        return node(.match(index, text), at: start)
    }

    private mutating func rank(from start: Int) -> QueryExpression? {
        guard let index = indexReference(), cursor.consume(")") else { return nil }
        return node(.rank(index), at: start)
    }

    mutating func indexReference() -> QueryExpression.IndexReference? {
        guard let first = cursor.identifier("the name of a full-text index") else { return nil }
        guard cursor.consume(".") else { return .init(name: first) }
        guard let second = cursor.identifier("the name of a full-text index") else { return nil }
        return .init(source: first, name: second)
    }

    mutating func property() -> QueryExpression? {
        let start = cursor.position
        guard let name = cursor.identifier("a property") else { return nil }
        if cursor.peek() == UInt8(ascii: "."), cursor.peek(1) == UInt8(ascii: "*") {
            _ = cursor.consume(".")
            _ = cursor.consume("*")
            return checked(node(.wildcard(source: name), at: start))
        }
        guard let steps = steps(after: [.key(name)]) else { return nil }
        return checked(node(.property(steps), at: start))
    }

    /// A path that begins with a name.
    mutating func path() -> [PathStep]? {
        guard let name = cursor.identifier("a property") else { return nil }
        return steps(after: [.key(name)])
    }

    mutating func steps(after first: [PathStep]) -> [PathStep]? {
        var steps = first
        while true {
            if cursor.peek() == UInt8(ascii: "."), cursor.consume(".") {
                guard let name = cursor.identifier("a property") else { return nil }
                steps.append(.key(name))
            } else if cursor.peek() == UInt8(ascii: "["), cursor.consume("[") {
                guard case .integer(let value)? = cursor.number(), cursor.consume("]") else {
                    cursor.expect("a position in the array")
                    return nil
                }
                steps.append(.index(Int(clamping: value)))
            } else {
                cursor.expect("an operator")
                return steps
            }
            if steps.count > QueryLimits.pathSteps {
                cursor.expect("a shorter path")
                return nil
            }
        }
    }
}
