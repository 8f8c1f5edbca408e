import LoveseatModel
import LoveseatTesting

/// Makes odd values and expressions; the same seed makes the same ones.
struct SpecGenerator {
    var random: SeededGenerator
    /// Names of the quantifiers' variables that are in use.
    private var variables: [String] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// Keys of documents; those behind the plain ones need back-quotes.
    static let keys = [
        "a", "b", "c", "d", "e", "f", "g", "it's", "a.b", "x\"y", "back`tick", "é", "e\u{301}", "select",
    ]

    static let strings = [
        "", "a", "A", "b", "abc", "Abc", "aXc", "é", "e\u{301}", "É", "ñandú", "straße", "STRASSE", "😀", "👨‍👩‍👧",
        "1", "1abc", "0", "12", "-3.5", "5e2", "abc%", "a_c", "a\\b", "%", "_", "\\", "'", "\"", "`", "a'b",
        "'\u{301}", "\"\u{301}", ";--", "/* x */", "\u{1}", "\t", "\n", "\r\n", "\u{7F}", "日本", "ﬁ", "null",
        "true",
        "[1]", " ", " a b ", "\u{FEFF}", "\u{10FFFF}", "\u{A0}", "Zebra", "zebra", "x-y", "x y",
    ]
    static let patterns = [
        "%", "_", "a%", "%c", "a_c", "%b%", "\\%", "abc\\%", "a\\_c", "\\", "a\\", "", "__", "%é%",
        "_\u{301}", "1%",
        "A%", "%'%", "%\"%", "\\\\", "a\\\\b", "%\n", "%%", "%_%", "_%_",
    ]
    static let integers: [Int64] = [
        0, 1, -1, 2, 3, 5, 7, 10, 100, -7, .max, .min, .max - 1, .min + 1, 9_007_199_254_740_992,
        9_007_199_254_740_993, 4_294_967_296, 2_147_483_648,
    ]
    static let doubles: [Double] = [
        0, 1, -1, 0.5, 1.5, 2.5, -2.5, 0.1, 1e15, 1e20, -1e20, 1e-7, 1e300, -1e300,
        Double.leastNonzeroMagnitude, 1.7976931348623157e308,
        9_007_199_254_740_992, 9.223372036854775807e18, 123456789.12345679, 7.5, 100.25,
    ]

    mutating func int(_ range: ClosedRange<Int>) -> Int { random.int(range) }
    mutating func chance(_ probability: Double) -> Bool { random.chance(probability) }

    mutating func scalar() -> SpecValue {
        switch int(0...9) {
        case 0: .null
        case 1: .bool(chance(0.5))
        case 2, 3: .integer(random.pick(Self.integers))
        case 4: .integer(Int64(int(-5...5)))
        case 5, 6: .double(random.pick(Self.doubles))
        default: .string(random.pick(Self.strings))
        }
    }

    mutating func value(_ depth: Int = 2) -> SpecValue {
        guard depth > 0, chance(0.3) else { return scalar() }
        if chance(0.6) { return .array((0..<int(0...4)).map { _ in value(depth - 1) }) }
        return object(depth - 1, 0...3)
    }

    private mutating func object(_ depth: Int, _ count: ClosedRange<Int>) -> SpecValue {
        var members: [(key: String, value: SpecValue)] = []
        for _ in 0..<int(count) {
            let key = chance(0.7) ? Self.keys[int(0...3)] : random.pick(Self.keys)
            if !members.contains(where: { $0.key.isExactly(key) }) {
                members.append((key, value(depth)))
            }
        }
        return .object(members)
    }

    /// A document; `list` is mostly an array.
    mutating func document() -> SpecValue {
        guard case .object(var members) = object(2, 4...10) else { return .object([]) }
        if chance(0.85) {
            members.append(
                ("list", chance(0.85) ? .array((0..<int(0...5)).map { _ in value(1) }) : value(2))
            )
        }
        return .object(members)
    }

    // MARK: Expressions

    mutating func steps() -> [SpecExpression.Step] {
        if let variable = variables.last, chance(0.6) {
            return chance(0.8) ? [.key(variable)] : [.key(variable), tail()]
        }
        var steps = [
            SpecExpression.Step.key(chance(0.75) ? Self.keys[int(0...3)] : random.pick(Self.keys + ["list"]))
        ]
        while chance(0.25), steps.count < 4 { steps.append(tail()) }
        return steps
    }

    private mutating func tail() -> SpecExpression.Step {
        chance(0.5) ? .index(int(-3...3)) : .key(Self.keys[int(0...3)])
    }

    private mutating func collation() -> SpecCollation? {
        guard chance(0.25) else { return nil }
        return SpecCollation(isUnicode: chance(0.5), ignoresCase: chance(0.5))
    }

    private mutating func list(_ count: ClosedRange<Int>, _ depth: Int) -> [SpecExpression] {
        (0..<int(count)).map { _ in expression(depth - 1) }
    }

    private mutating func leaf() -> SpecExpression {
        if chance(0.55) { return .property(steps()) }
        if chance(0.1) { return .parameter(chance(0.5) ? "p1" : "p2") }
        if chance(0.06) { return .literal(.missing) }
        return .literal(chance(0.9) ? scalar() : value(1))
    }

    /// An expression of any kind, at most that deep.
    mutating func expression(_ depth: Int) -> SpecExpression {
        guard depth > 0, chance(0.85) else { return leaf() }
        switch int(0...19) {
        case 0, 1, 2: return condition(depth)
        case 3, 4, 5, 6:
            return .arithmetic(
                random.pick(["+", "-", "*", "/", "%"]),
                expression(depth - 1),
                expression(depth - 1)
            )
        case 7: return .negate(expression(depth - 1))
        case 8, 9: return .concat(list(2...3, depth))
        case 10: return .array(list(0...3, depth))
        case 11:
            let keys = Self.keys.shuffled(using: &random).prefix(int(0...2))
            return .object(keys.map { (key: $0, value: expression(depth - 1)) })
        case 12:
            var branches: [(when: SpecExpression, then: SpecExpression)] = []
            let operand = chance(0.5) ? expression(depth - 1) : nil
            for _ in 0..<int(1...2) {
                branches.append(
                    (operand == nil ? condition(depth - 1) : expression(depth - 1), expression(depth - 1))
                )
            }
            return .choice(operand, branches, chance(0.6) ? expression(depth - 1) : nil)
        case 13:
            return .member(
                expression(depth - 1),
                [.key(Self.keys[int(0...3)])] + (chance(0.3) ? [tail()] : [])
            )
        case 14, 15, 16: return .function(random.pick(SpecFunctions.unary), [expression(depth - 1)])
        case 17: return .function(random.pick(SpecFunctions.binary), list(2...2, depth))
        case 18: return .function(random.pick(SpecFunctions.variadic), list(2...3, depth))
        default: return leaf()
        }
    }

    /// An expression that is true, false or MISSING.
    mutating func condition(_ depth: Int) -> SpecExpression {
        guard depth > 0 else { return leaf() }
        switch int(0...14) {
        case 0: return .and((0..<int(2...3)).map { _ in condition(depth - 1) })
        case 1: return .or((0..<int(2...3)).map { _ in condition(depth - 1) })
        case 2: return .not(condition(depth - 1))
        case 3:
            return .test(
                expression(depth - 1),
                random.pick([.null, .missing, .valued]),
                isNegated: chance(0.4)
            )
        case 4, 5:
            return .contained(expression(depth - 1), list(0...4, depth), isNegated: chance(0.3), collation())
        case 6, 7:
            let pattern =
                chance(0.85)
                ? SpecExpression.literal(.string(random.pick(Self.patterns))) : expression(depth - 1)
            return .like(expression(depth - 1), pattern, isNegated: chance(0.3), collation())
        case 8:
            return .between(
                expression(depth - 1),
                expression(depth - 1),
                expression(depth - 1),
                isNegated: chance(0.3),
                collation()
            )
        case 9:
            guard variables.count < 2 else { return leaf() }
            let collection = chance(0.7) ? SpecExpression.property(steps()) : .array(list(0...3, depth))
            let variable = variables.isEmpty ? "v1" : "v2"
            variables.append(variable)
            defer { variables.removeLast() }
            let inner =
                chance(0.4)
                ? .comparison("=", .property([.key(variable)]), expression(0), nil) : condition(depth - 1)
            return .quantified(random.pick([.any, .some, .every, .both]), variable, collection, inner)
        default:
            let name = random.pick(["=", "==", "!=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT"])
            var right = expression(depth - 1)
            if name.hasPrefix("IS"), case .literal = right { right = .property(steps()) }
            return .comparison(name, expression(depth - 1), right, collation())
        }
    }
}
