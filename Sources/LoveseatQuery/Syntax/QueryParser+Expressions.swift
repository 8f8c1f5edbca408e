import LoveseatModel
import LoveseatText

extension QueryParser {
    /// Reads an expression with its collation.
    mutating func expression() -> QueryExpression? {
        nested { parser in
            let start = parser.cursor.position
            guard let item = parser.disjunction() else { return nil }
            guard parser.cursor.consume(keyword: "COLLATE") else { return item }
            guard let collation = parser.collation() else { return nil }
            return parser.checked(parser.node(.collated(item, collation), at: start))
        }
    }

    mutating func collation() -> TextCollation? {
        var collation = TextCollation()
        if cursor.consume("(") {
            repeat {
                guard collationOption(&collation) else { return nil }
            } while !cursor.consume(")")
            return collation
        }
        return collationOption(&collation) ? collation : nil
    }

    mutating func collationOption(_ collation: inout TextCollation) -> Bool {
        let word = cursor.word()
        switch word?.uppercased() {
        case "UNICODE": collation.isUnicode = true
        case "NOUNICODE": collation.isUnicode = false
        case "CASE": collation.ignoresCase = false
        case "NOCASE": collation.ignoresCase = true
        case "DIAC": collation.ignoresAccents = false
        case "NODIAC": collation.ignoresAccents = true
        default:
            cursor.expect("UNICODE, CASE, NOCASE, DIAC or NODIAC")
            return false
        }
        cursor.advance(word?.utf8.count ?? 0)
        if collation.isUnicode, cursor.peek() == UInt8(ascii: ":") {
            cursor.advance()
            guard let locale = cursor.identifier("a locale", skippingSpace: false) else { return false }
            collation.locale = locale
        }
        cursor.skipSpace()
        return true
    }

    mutating func disjunction() -> QueryExpression? {
        let start = cursor.position
        guard let first = conjunction() else { return nil }
        guard cursor.consume(keyword: "OR") else { return first }
        var items = [first]
        repeat {
            guard let item = conjunction() else { return nil }
            items.append(item)
        } while cursor.consume(keyword: "OR")
        return checked(node(.or(items), at: start))
    }

    mutating func conjunction() -> QueryExpression? {
        let start = cursor.position
        guard let first = negation() else { return nil }
        guard cursor.consume(keyword: "AND") else { return first }
        var items = [first]
        repeat {
            guard let item = negation() else { return nil }
            items.append(item)
        } while cursor.consume(keyword: "AND")
        return checked(node(.and(items), at: start))
    }

    mutating func negation() -> QueryExpression? {
        let start = cursor.position
        guard cursor.isAt(keyword: "NOT") else { return equality() }
        _ = cursor.consume(keyword: "NOT")
        guard let item = nested({ $0.negation() }) else { return nil }
        return checked(node(.unary(.not, item), at: start))
    }

    // MARK: Comparisons

    mutating func equality() -> QueryExpression? {
        let start = cursor.position
        guard let first = comparison() else { return nil }
        if let test = test(of: first, at: start) { return checked(test) }
        if problem != nil { return nil }
        var left = first
        while let name = equalityOperator() {
            guard let right = comparison() else { return nil }
            guard let grown = checked(node(.binary(name, left, right), at: start)) else { return nil }
            left = grown
        }
        return left
    }

    /// `IS MISSING`, `IN`, `LIKE` and `BETWEEN`; nil, with nothing read, if none of these is here.
    mutating func test(of value: QueryExpression, at start: Int) -> QueryExpression? {
        let mark = cursor.position
        if cursor.consume(keyword: "IS") {
            let isNegated = cursor.consume(keyword: "NOT")
            for (word, test) in [
                ("NULL", QueryExpression.Test.null), ("MISSING", .missing), ("VALUED", .valued),
            ]
            where cursor.consume(keyword: word) {
                return node(.test(value, test, isNegated: isNegated), at: start)
            }
            cursor.rewind(to: mark)
            return nil
        }
        let isNegated = cursor.consume(keyword: "NOT")
        if isNegated, cursor.consume(keyword: "NULL") {
            return node(.test(value, .null, isNegated: true), at: start)
        }
        if cursor.consume(keyword: "IN"), let items = list() {
            return node(.contained(value, items, isNegated: isNegated), at: start)
        } else if cursor.consume(keyword: "LIKE"), let pattern = comparison() {
            return node(.like(value, pattern: pattern, isNegated: isNegated), at: start)
        } else if cursor.consume(keyword: "BETWEEN"), let low = comparison(), cursor.consume(keyword: "AND"),
            let high = comparison()
        {
            return node(.between(value, low, high, isNegated: isNegated), at: start)
        }
        cursor.rewind(to: mark)
        return nil
    }

    /// A list in parentheses, which may be empty, or in brackets.
    mutating func list() -> [QueryExpression]? {
        if cursor.consume("(") { return items(until: ")") }
        if cursor.consume("[") { return items(until: "]") }
        return nil
    }

    mutating func items(until end: StaticString) -> [QueryExpression]? {
        if cursor.consume(end) { return [] }
        var items: [QueryExpression] = []
        repeat {
            guard let item = expression() else { return nil }
            items.append(item)
        } while cursor.consume(",")
        return cursor.consume(end) ? items : nil
    }

    mutating func equalityOperator() -> QueryExpression.BinaryOperator? {
        if cursor.consume("==") || cursor.consume("=") { return .equal }
        if cursor.consume("!=") || cursor.consume("<>") { return .notEqual }
        guard cursor.consume(keyword: "IS") else { return nil }
        return cursor.consume(keyword: "NOT") ? .isNot : .is
    }

    mutating func comparison() -> QueryExpression? { binary(0) }

    // MARK: Arithmetic

    /// Reads a chain of operators that bind at least this tightly.
    mutating func binary(_ minimum: Int) -> QueryExpression? {
        let start = cursor.position
        guard var left = concatenation() else { return nil }
        while let (name, length, strength) = arithmeticOperator(), strength >= minimum {
            cursor.advance(length)
            cursor.skipSpace()
            guard let right = binary(strength + 1),
                let grown = checked(node(.binary(name, left, right), at: start))
            else { return nil }
            left = grown
        }
        return left
    }

    mutating func arithmeticOperator() -> (
        QueryExpression.BinaryOperator, length: Int, strength: Int
    )? {
        switch (cursor.peek(), cursor.peek(1)) {
        case (UInt8(ascii: "<"), UInt8(ascii: ">")): break
        case (UInt8(ascii: "<"), UInt8(ascii: "<")): return (.shiftLeft, 2, 1)
        case (UInt8(ascii: ">"), UInt8(ascii: ">")): return (.shiftRight, 2, 1)
        case (UInt8(ascii: "<"), UInt8(ascii: "=")): return (.lessOrEqual, 2, 0)
        case (UInt8(ascii: ">"), UInt8(ascii: "=")): return (.greaterOrEqual, 2, 0)
        case (UInt8(ascii: "<"), _): return (.less, 1, 0)
        case (UInt8(ascii: ">"), _): return (.greater, 1, 0)
        case (UInt8(ascii: "|"), UInt8(ascii: "|")): break
        case (UInt8(ascii: "|"), _): return (.bitOr, 1, 1)
        case (UInt8(ascii: "&"), _): return (.bitAnd, 1, 1)
        case (UInt8(ascii: "+"), _): return (.add, 1, 2)
        case (UInt8(ascii: "-"), _): return (.subtract, 1, 2)
        case (UInt8(ascii: "*"), _): return (.multiply, 1, 3)
        case (UInt8(ascii: "/"), _): return (.divide, 1, 3)
        case (UInt8(ascii: "%"), _): return (.modulo, 1, 3)
        default: break
        }
        cursor.expect("an operator")
        return nil
    }

    mutating func concatenation() -> QueryExpression? {
        let start = cursor.position
        guard let first = member() else { return nil }
        guard cursor.consume("||") else { return first }
        var items = [first]
        repeat {
            guard let item = member() else { return nil }
            items.append(item)
        } while cursor.consume("||")
        return checked(node(.concatenation(items), at: start))
    }

    // MARK: Operands

    /// Reads an operand and the path behind it.
    mutating func member() -> QueryExpression? {
        let start = cursor.position
        if cursor.isAt(keyword: "NOT") {
            // After an operator too, NOT takes in everything that binds tighter.
            return nested { $0.negation() }
        }
        guard let value = nested({ $0.primary() }) else { return nil }
        // A property has read its own path; one in parentheses has not.
        guard cursor.peek() == UInt8(ascii: ".") else { return value }
        let mark = cursor.position
        _ = cursor.consume(".")
        guard let steps = path() else {
            cursor.rewind(to: mark)
            return nil
        }
        if case .meta(let source, nil) = value.kind, case .key(let name) = steps[0] {
            let meta = node(.meta(source: source, name: name), at: start)
            return steps.count == 1 ? meta : checked(node(.nested(meta, Array(steps.dropFirst())), at: start))
        }
        return checked(node(.nested(value, steps), at: start))
    }

    /// Reads an operand without a path. Each kind has a separate function, so that a level takes few bytes of the stack.
    mutating func primary() -> QueryExpression? {
        switch cursor.peek() {
        case UInt8(ascii: "["): return array()
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "("): return parenthesized()
        case UInt8(ascii: "+"): return signed(.plus)
        default: break
        }
        if let value = constant() { return value }
        guard problem == nil else { return nil }
        switch cursor.peek() {
        // A sign in front of digits belongs to the number.
        case UInt8(ascii: "-"): return signed(.negate)
        case UInt8(ascii: "$"): return parameter()
        case UInt8(ascii: "*"): return wildcard()
        default: return named()
        }
    }

    private mutating func constant() -> QueryExpression? {
        let start = cursor.position
        guard let value = literal() else { return nil }
        return checked(node(.literal(value), at: start))
    }

    private mutating func array() -> QueryExpression? {
        let start = cursor.position
        guard cursor.consume("["), let items = items(until: "]") else { return nil }
        return checked(node(.array(items), at: start))
    }

    private mutating func object() -> QueryExpression? {
        let start = cursor.position
        guard cursor.consume("{"), let members = members() else { return nil }
        return checked(node(.object(members), at: start))
    }

    private mutating func parenthesized() -> QueryExpression? {
        guard cursor.consume("("), let item = expression(), cursor.consume(")") else { return nil }
        return item
    }

    private mutating func signed(_ name: QueryExpression.UnaryOperator) -> QueryExpression? {
        let start = cursor.position
        guard cursor.consume(name == .plus ? "+" : "-", quietly: true), let value = nested({ $0.primary() })
        else {
            return nil
        }
        return checked(node(.unary(name, value), at: start))
    }

    private mutating func parameter() -> QueryExpression? {
        let start = cursor.position
        cursor.advance()
        guard let name = cursor.identifier("the name of a parameter") else { return nil }
        return checked(node(.parameter(name), at: start))
    }

    private mutating func wildcard() -> QueryExpression? {
        let start = cursor.position
        _ = cursor.consume("*")
        return checked(node(.wildcard(source: nil), at: start))
    }

    mutating func literal() -> QueryValue? {
        switch cursor.peek() {
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            return cursor.string().map(QueryValue.string)
        case let byte? where byte &- 0x30 <= 9 || byte == UInt8(ascii: "."): return cursor.number()
        case UInt8(ascii: "-"):
            let next = cursor.peek(1)
            if next == UInt8(ascii: ".") || (next.map { $0 &- 0x30 <= 9 } ?? false) { return cursor.number() }
            return nil
        default: break
        }
        let words: [(String, QueryValue)] = [
            ("TRUE", .bool(true)), ("FALSE", .bool(false)), ("NULL", .null), ("MISSING", .missing),
        ]
        for (word, value) in words where cursor.isAt(keyword: word) {
            _ = cursor.consume(keyword: word)
            return value
        }
        cursor.expect("an expression")
        return nil
    }

    mutating func members() -> [QueryExpression.Member]? {
        if cursor.consume("}") { return [] }
        var members: [QueryExpression.Member] = []
        repeat {
            guard let key = cursor.string(), cursor.consume(":"), let value = expression() else { return nil }
            // Of a key that is written twice, the last counts.
            members.removeAll { $0.key.isExactly(key) }
            members.append(.init(key: key, value: value))
        } while cursor.consume(",")
        return cursor.consume("}") ? members : nil
    }
}
