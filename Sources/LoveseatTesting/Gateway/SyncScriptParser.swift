import LoveseatModel

/// Reads the text of a sync function.
struct SyncScriptParser {
    private enum Token: Hashable {
        case name(String)
        case string(String)
        case number(Double)
        case symbol(String)
    }

    private typealias Expression = SyncScript.Expression
    private typealias Statement = SyncScript.Statement

    private static let symbols = [
        "===", "!==", "&&", "||", "==", "!=", "<=", ">=", "(", ")", "{", "}", "[", "]", ".", ",", ";", ":",
        "?", "!", "<", ">", "+", "-", "=",
    ]
    /// Operators, the loosest first.
    private static let operators = [
        ["||"], ["&&"], ["===", "!==", "==", "!="], ["<", ">", "<=", ">="], ["+", "-"],
    ]

    private var tokens: [Token] = []
    private var position = 0

    /// Nil if the text has something that is not a token.
    init?(_ text: String) {
        var rest = text[...]
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
            } else if rest.hasPrefix("//") {
                rest = rest.drop { !$0.isNewline }
            } else if first.isLetter || first == "_" || first == "$" {
                let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
                tokens.append(.name(String(name)))
                rest = rest.dropFirst(name.count)
            } else if first.isNumber {
                let digits = rest.prefix { $0.isNumber || $0 == "." }
                guard let number = Double(digits) else { return nil }
                tokens.append(.number(number))
                rest = rest.dropFirst(digits.count)
            } else if first == "\"" || first == "'" {
                let content = rest.dropFirst().prefix { $0 != first }
                guard !content.contains("\\") else { return nil }
                tokens.append(.string(String(content)))
                rest = rest.dropFirst(content.count + 2)
            } else if let symbol = Self.symbols.first(where: { rest.hasPrefix($0) }) {
                tokens.append(.symbol(symbol))
                rest = rest.dropFirst(symbol.count)
            } else {
                return nil
            }
        }
    }

    /// `function(doc, oldDoc) { … }`
    mutating func function() -> ([String], [SyncScript.Statement])? {
        guard consume(.name("function")) else { return nil }
        if case .name = peek { position += 1 }
        guard consume(.symbol("(")) else { return nil }
        var parameters: [String] = []
        while case .name(let name) = peek {
            position += 1
            parameters.append(name)
            _ = consume(.symbol(","))
        }
        guard consume(.symbol(")")), let body = block() else { return nil }
        _ = consume(.symbol(";"))
        return position == tokens.count ? (parameters, body) : nil
    }

    // MARK: Tokens

    private var peek: Token? { tokens.indices.contains(position) ? tokens[position] : nil }

    private mutating func consume(_ token: Token) -> Bool {
        guard peek == token else { return false }
        position += 1
        return true
    }

    // MARK: Statements

    private mutating func block() -> [Statement]? {
        guard consume(.symbol("{")) else { return nil }
        var statements: [Statement] = []
        while !consume(.symbol("}")) {
            if consume(.symbol(";")) { continue }
            guard let statement = statement() else { return nil }
            statements += statement
        }
        return statements
    }

    private mutating func statement() -> [Statement]? {
        if peek == .symbol("{") { return block() }
        if consume(.name("if")) {
            guard consume(.symbol("(")), let test = expression(), consume(.symbol(")")),
                let first = statement()
            else { return nil }
            guard consume(.name("else")) else { return [.condition(test, first, [])] }
            return statement().map { [.condition(test, first, $0)] }
        }
        defer { _ = consume(.symbol(";")) }
        if consume(.name("throw")) { return expression().map { [.raise($0)] } }
        if consume(.name("return")) {
            guard peek != .symbol(";"), peek != .symbol("}") else { return [.leave] }
            return expression().map { [.expression($0), .leave] }
        }
        if consume(.name("var")) || consume(.name("let")) || consume(.name("const")) {
            guard case .name(let name) = peek else { return nil }
            position += 1
            guard consume(.symbol("=")) else { return [.variable(name, nil)] }
            return expression().map { [.variable(name, $0)] }
        }
        return expression().map { [.expression($0)] }
    }

    // MARK: Expressions

    private mutating func expression() -> Expression? {
        guard let test = binary(0) else { return nil }
        guard consume(.symbol("?")) else { return test }
        guard let first = expression(), consume(.symbol(":")), let second = expression() else { return nil }
        return .choice(test, first, second)
    }

    private mutating func binary(_ level: Int) -> Expression? {
        guard level < Self.operators.count else { return unary() }
        guard var left = binary(level + 1) else { return nil }
        while case .symbol(let symbol) = peek, Self.operators[level].contains(symbol) {
            position += 1
            guard let right = binary(level + 1) else { return nil }
            left = .binary(symbol, left, right)
        }
        return left
    }

    private mutating func unary() -> Expression? {
        if consume(.symbol("!")) { return unary().map { .not($0) } }
        if consume(.symbol("-")) { return unary().map { .binary("-", .literal(.json(0)), $0) } }
        return postfix()
    }

    private mutating func postfix() -> Expression? {
        guard var base = primary() else { return nil }
        while true {
            if consume(.symbol(".")) {
                guard case .name(let name) = peek else { return nil }
                position += 1
                base = .member(base, .literal(.json(.string(name))))
            } else if consume(.symbol("[")) {
                guard let key = expression(), consume(.symbol("]")) else { return nil }
                base = .member(base, key)
            } else if consume(.symbol("(")) {
                guard let arguments = list(until: ")") else { return nil }
                base = .call(base, arguments)
            } else {
                return base
            }
        }
    }

    private mutating func primary() -> Expression? {
        guard let token = peek else { return nil }
        position += 1
        switch token {
        case .string(let text): return .literal(.json(.string(text)))
        case .number(let number):
            return .literal(.json(Int(exactly: number).map { JSONValue($0) } ?? JSONValue(number)))
        case .name("true"): return .literal(.json(true))
        case .name("false"): return .literal(.json(false))
        case .name("null"): return .literal(.json(.null))
        case .name("undefined"): return .literal(.undefined)
        case .name(let name): return .name(name)
        case .symbol("("):
            guard let inner = expression(), consume(.symbol(")")) else { return nil }
            return inner
        case .symbol("["): return list(until: "]").map { .array($0) }
        case .symbol("{"): return members()
        case .symbol: return nil
        }
    }

    private mutating func list(until end: String) -> [Expression]? {
        var items: [Expression] = []
        while !consume(.symbol(end)) {
            guard let item = expression() else { return nil }
            items.append(item)
            if peek != .symbol(end), !consume(.symbol(",")) { return nil }
        }
        return items
    }

    private mutating func members() -> Expression? {
        var members: [(String, Expression)] = []
        while !consume(.symbol("}")) {
            let name: String
            switch peek {
            case .name(let text), .string(let text): name = text
            case .number, .symbol, nil: return nil
            }
            position += 1
            guard consume(.symbol(":")), let value = expression() else { return nil }
            members.append((name, value))
            if peek != .symbol("}"), !consume(.symbol(",")) { return nil }
        }
        return .object(members)
    }
}
