import LoveseatModel

/// An expression of the differential tests, which can be written as SQL++ and evaluated by the interpreter.
indirect enum SpecExpression {
    enum Step {
        case key(String)
        case index(Int)
    }

    enum Test: String { case null = "NULL", missing = "MISSING", valued = "VALUED" }
    enum Quantifier: String { case any = "ANY", some = "SOME", every = "EVERY", both = "ANY AND EVERY" }

    case literal(SpecValue)
    case array([SpecExpression])
    case object([(key: String, value: SpecExpression)])
    case property([Step])
    case parameter(String)
    case member(SpecExpression, [Step])
    case negate(SpecExpression)
    case not(SpecExpression)
    case and([SpecExpression])
    case or([SpecExpression])
    case concat([SpecExpression])
    case arithmetic(String, SpecExpression, SpecExpression)
    /// `= == != <> IS`, `IS NOT` and `< <= > >=`.
    case comparison(String, SpecExpression, SpecExpression, SpecCollation?)
    case test(SpecExpression, Test, isNegated: Bool)
    case contained(SpecExpression, [SpecExpression], isNegated: Bool, SpecCollation?)
    case like(SpecExpression, SpecExpression, isNegated: Bool, SpecCollation?)
    case between(SpecExpression, SpecExpression, SpecExpression, isNegated: Bool, SpecCollation?)
    case choice(SpecExpression?, [(when: SpecExpression, then: SpecExpression)], SpecExpression?)
    case quantified(Quantifier, String, SpecExpression, SpecExpression)
    case function(String, [SpecExpression])

    // MARK: Text

    /// How tightly the outermost operator binds, by the grammar of §3.
    private var level: Int {
        switch self {
        case .comparison(_, _, _, .some), .contained(_, _, _, .some), .like(_, _, _, .some),
            .between(_, _, _, _, .some):
            0
        case .or: 1
        case .and: 2
        case .not: 3
        case .test, .contained, .like, .between: 4
        case .comparison(let name, _, _, _):
            name.contains("<") && name != "<>" || name.contains(">") && name != "<>" ? 6 : 5
        case .arithmetic(let name, _, _): name == "+" || name == "-" ? 7 : 8
        case .concat: 9
        case .member: 10
        default: 11
        }
    }

    /// The text with no more parentheses than the grammar asks for.
    var text: String { written(0) }

    private func written(_ least: Int) -> String { level >= least ? bare : "(" + bare + ")" }

    private static func suffix(_ collation: SpecCollation?) -> String {
        collation.map { " COLLATE " + ($0.isUnicode ? "(\($0.text))" : $0.text) } ?? ""
    }

    static func string(_ text: String) -> String {
        var bytes = Array("'".utf8)
        for byte in text.utf8 { bytes += byte == 0x27 ? [byte, byte] : [byte] }
        return String(decoding: bytes + [0x27], as: UTF8.self)
    }

    static func name(_ name: String) -> String {
        // Longer names may be reserved words.
        if name.utf8.count <= 2 || name == "list", name.utf8.allSatisfy({ Self.isPlain($0) }),
            name.utf8.first.map({ $0 > 0x39 }) == true
        {
            return name
        }
        var bytes = Array("`".utf8)
        for byte in name.utf8 { bytes += byte == 0x60 ? [byte, byte] : [byte] }
        return String(decoding: bytes + [0x60], as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
    }

    static func path(_ steps: [Step]) -> String {
        var text = ""
        for step in steps {
            switch step {
            case .key(let key): text += (text.isEmpty ? "" : ".") + name(key)
            case .index(let index): text += "[\(index)]"
            }
        }
        return text
    }

    private static func literal(_ value: SpecValue) -> String {
        switch value {
        case .missing: "MISSING"
        case .null: "NULL"
        case .bool(let value), .truth(let value): value ? "TRUE" : "FALSE"
        case .integer(let value): value.description
        case .double(let value): value.description
        case .string(let value): string(value)
        case .array(let items): "[" + items.map(literal).joined(separator: ", ") + "]"
        case .object(let members):
            "{" + members.map { string($0.key) + ": " + literal($0.value) }.joined(separator: ", ") + "}"
        }
    }

    private static func list(_ items: [SpecExpression]) -> String {
        items.map(\.text).joined(separator: ", ")
    }

    private var bare: String {
        switch self {
        case .literal(let value): return Self.literal(value)
        case .array(let items): return "[" + Self.list(items) + "]"
        case .object(let members):
            return "{" + members.map { Self.string($0.key) + ": " + $0.value.text }.joined(separator: ", ")
                + "}"
        case .property(let steps): return Self.path(steps)
        case .parameter(let name): return "$" + name
        case .member(let base, let steps): return "(" + base.text + ")." + Self.path(steps)
        case .negate(let value):
            if case .literal = value { return "-(" + value.text + ")" }
            return "- " + value.written(11)
        case .not(let value): return "NOT " + value.written(3)
        case .and(let items): return items.map { $0.written(3) }.joined(separator: " AND ")
        case .or(let items): return items.map { $0.written(2) }.joined(separator: " OR ")
        case .concat(let items): return items.map { $0.written(10) }.joined(separator: " || ")
        case .arithmetic(let name, let left, let right):
            return left.written(level) + " " + name + " " + right.written(level + 1)
        case .comparison(let name, let left, let right, let collation):
            let own = SpecExpression.comparison(name, left, right, nil).level
            if name.hasPrefix("IS"), ["NULL", "MISSING", "VALUED"].contains(where: right.text.hasPrefix) {
                // Without parentheses this would be a test of its own.
                return left.written(own) + " " + name + " (" + right.text + ")" + Self.suffix(collation)
            }
            return left.written(own) + " " + name + " " + right.written(own + 1) + Self.suffix(collation)
        case .test(let value, let test, let isNegated):
            return value.written(6) + (isNegated ? " IS NOT " : " IS ") + test.rawValue
        case .contained(let value, let items, let isNegated, let collation):
            return value.written(6) + (isNegated ? " NOT IN (" : " IN (") + Self.list(items) + ")"
                + Self.suffix(collation)
        case .like(let value, let pattern, let isNegated, let collation):
            return value.written(6) + (isNegated ? " NOT LIKE " : " LIKE ") + pattern.written(6)
                + Self.suffix(collation)
        case .between(let value, let low, let high, let isNegated, let collation):
            return value.written(6) + (isNegated ? " NOT BETWEEN " : " BETWEEN ") + low.written(6) + " AND "
                + high.written(6) + Self.suffix(collation)
        case .choice(let operand, let branches, let otherwise):
            var text = "CASE" + (operand.map { " " + $0.text } ?? "")
            for branch in branches { text += " WHEN \(branch.when.text) THEN \(branch.then.text)" }
            return text + (otherwise.map { " ELSE " + $0.text } ?? "") + " END"
        case .quantified(let quantifier, let variable, let collection, let condition):
            return "\(quantifier.rawValue) \(variable) IN \(collection.text) SATISFIES \(condition.text) END"
        case .function(let name, let arguments): return name + "(" + Self.list(arguments) + ")"
        }
    }
}
