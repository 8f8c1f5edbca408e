import LoveseatModel

/// Evaluates expressions by walking the tree, as the specification says and as slowly as it likes.
///
/// It shares no code with the translation. Where the specification leaves an answer open, it throws
/// ``SpecValue/Unspecified``.
struct SpecInterpreter {
    var document: SpecValue
    var variables: [String: SpecValue] = [:]
    var parameters: [String: SpecValue] = [:]

    func evaluate(_ expression: SpecExpression) throws -> SpecValue {
        switch expression {
        case .literal(let value): return value
        case .array(let items): return .array(try items.map(evaluate).filter { !$0.isMissing })
        case .object(let members):
            return .object(
                try members.map { (key: $0.key, value: try evaluate($0.value)) }.filter {
                    !$0.value.isMissing
                }
            )
        case .property(let steps):
            if case .key(let name)? = steps.first, let value = variables[name] {
                return Self.walk(value, steps.dropFirst())
            }
            return Self.walk(document, steps[...])
        case .parameter(let name):
            // A parameter set to null is MISSING too.
            guard let value = parameters[name], !value.isNull else { return .missing }
            return value
        case .member(let base, let steps): return Self.walk(try evaluate(base), steps[...])
        case .negate(let value):
            let number = try evaluate(value).operand
            // Whether this is -0.0 shows in its text only, and is not said.
            if case .double(0) = number { throw SpecValue.Unspecified() }
            return Self.subtract(.integer(0), number)
        case .not(let value): return Self.truth(try evaluate(value).isTrue.map { !$0 })
        case .and(let items):
            let values = try items.map { try evaluate($0).isTrue }
            return values.contains(false) ? .truth(false) : values.contains(nil) ? .missing : .truth(true)
        case .or(let items):
            let values = try items.map { try evaluate($0).isTrue }
            return values.contains(true) ? .truth(true) : values.contains(nil) ? .missing : .truth(false)
        case .concat(let items): return try Self.concatenated(items.map(evaluate))
        case .arithmetic(let name, let left, let right):
            let (one, other) = (try evaluate(left), try evaluate(right))
            if name == "%", one.hasExponent || other.hasExponent {
                // Whether text is cut before or after its exponent is not said.
                throw SpecValue.Unspecified()
            }
            return try Self.arithmetic(name, one.operand, other.operand)
        case .comparison(let name, let left, let right, let collation):
            return try Self.compared(name, evaluate(left), evaluate(right), collation ?? .binary)
        case .test(let value, let test, let isNegated):
            return Self.tested(try evaluate(value), test, isNegated)
        case .contained(let value, let items, let isNegated, let collation):
            let found = try contained(evaluate(value), items.map(evaluate), collation ?? .binary)
            return Self.truth(isNegated ? found.map { !$0 } : found)
        case .like(let value, let pattern, let isNegated, let collation):
            let found = try Self.like(evaluate(value), evaluate(pattern), collation ?? .binary)
            return Self.truth(isNegated ? found.map { !$0 } : found)
        case .between(let value, let low, let high, let isNegated, let collation):
            let item = try evaluate(value)
            let sides = [
                try Self.compared(">=", item, evaluate(low), collation ?? .binary).isTrue,
                try Self.compared("<=", item, evaluate(high), collation ?? .binary).isTrue,
            ]
            let found = sides.contains(false) ? false : sides.contains(nil) ? nil : true
            return Self.truth(isNegated ? found.map { !$0 } : found)
        case .choice(let operand, let branches, let otherwise):
            let subject = try operand.map(evaluate)
            for branch in branches {
                let condition = try evaluate(branch.when)
                let isTaken =
                    try subject.map { try Self.compared("=", $0, condition, .binary).isTrue }
                    ?? condition.isTrue
                if isTaken == true { return try evaluate(branch.then) }
            }
            return try otherwise.map(evaluate) ?? .null
        case .quantified(let quantifier, let variable, let collection, let condition):
            return try quantified(quantifier, variable, evaluate(collection), condition)
        case .function(let name, let arguments):
            return try SpecFunctions.call(name, arguments, arguments.map(evaluate))
        }
    }

    static func truth(_ value: Bool?) -> SpecValue { value.map(SpecValue.truth) ?? .missing }

    static func walk(_ value: SpecValue, _ steps: ArraySlice<SpecExpression.Step>) -> SpecValue {
        guard let step = steps.first else { return value }
        switch (step, value) {
        case (.key(let key), .object(let members)):
            guard let member = members.first(where: { $0.key.isExactly(key) }) else { return .missing }
            return walk(member.value, steps.dropFirst())
        case (.index(let index), .array(let items)):
            let place = index < 0 ? items.count + index : index
            guard items.indices.contains(place) else { return .missing }
            return walk(items[place], steps.dropFirst())
        default: return .missing
        }
    }

    // MARK: Arithmetic

    private static func subtract(_ one: SpecValue, _ other: SpecValue) -> SpecValue {
        combine(one, other, { $0.subtractingReportingOverflow($1) }, -)
    }

    private static func combine(
        _ one: SpecValue,
        _ other: SpecValue,
        _ whole: (Int64, Int64) -> (partialValue: Int64, overflow: Bool),
        _ real: (Double, Double) -> Double
    ) -> SpecValue {
        if case .integer(let left) = one, case .integer(let right) = other {
            let result = whole(left, right)
            if !result.overflow { return .integer(result.partialValue) }
        }
        guard let left = one.number, let right = other.number else { return .missing }
        let result = real(left, right)
        return result.isNaN ? .missing : .double(result)
    }

    private static func arithmetic(_ name: String, _ one: SpecValue, _ other: SpecValue) throws -> SpecValue {
        switch name {
        case "+": return combine(one, other, { $0.addingReportingOverflow($1) }, +)
        case "-": return subtract(one, other)
        case "*": return combine(one, other, { $0.multipliedReportingOverflow(by: $1) }, *)
        case "/":
            guard let divisor = other.number, divisor != 0 else { return .missing }
            return combine(one, other, { $0.dividedReportingOverflow(by: $1) }, /)
        default:
            guard !one.isMissing, !other.isMissing else { return .missing }
            let (left, right) = (try cut(one), try cut(other))
            guard right != 0 else { return .missing }
            let rest = right == -1 ? 0 : left % right
            if case .integer = one, case .integer = other { return .integer(rest) }
            return .double(Double(rest))
        }
    }

    /// The integer part of a number.
    static func cut(_ value: SpecValue) throws -> Int64 {
        switch value {
        case .integer(let value): return value
        case .double(let value):
            guard let whole = Int64(exactly: value.rounded(.towardZero)) else {
                throw SpecValue.Unspecified()
            }
            return whole
        default: return 0
        }
    }

    // MARK: Text

    static func concatenated(_ values: [SpecValue]) throws -> SpecValue {
        if values.contains(where: \.isMissing) { return .missing }
        return .string(try values.map(text).joined())
    }

    /// The text of a value for `||`.
    static func text(_ value: SpecValue) throws -> String {
        switch value.plain {
        case .missing: return ""
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .truth, .integer: return value.json.flatMap(\.int).map(String.init) ?? ""
        case .double(let value): return try text(value)
        case .string(let value): return value
        case .array(let items):
            // JSON has several forms for a number with an exponent, and the order of keys is free.
            guard try items.allSatisfy(hasOneText) else { throw SpecValue.Unspecified() }
            return JSONText(canonical: value.json ?? .null).description
        case .object(let members):
            guard members.count < 2, try members.allSatisfy({ try hasOneText($0.value) }) else {
                throw SpecValue.Unspecified()
            }
            return JSONText(canonical: value.json ?? .null).description
        }
    }

    private static func hasOneText(_ value: SpecValue) throws -> Bool {
        switch value {
        case .double(let value): return value == 0 ? value.sign == .plus : (1e-4..<1e15).contains(abs(value))
        case .array(let items): return try items.allSatisfy(hasOneText)
        case .object(let members):
            return try members.count < 2 && members.allSatisfy { try hasOneText($0.value) }
        default: return true
        }
    }

    /// A double in its shortest form with at least one decimal.
    static func text(_ value: Double) throws -> String {
        guard value.isFinite else { throw SpecValue.Unspecified() }
        // Swift's own shortest digits, with the exponent as the specification writes it.
        let written = value.description
        guard let mark = written.firstIndex(of: "e") else {
            guard abs(value) >= 1e16 else { return written }
            throw SpecValue.Unspecified()
        }
        var mantissa = String(written[..<mark])
        if mantissa.hasSuffix(".0") { mantissa.removeLast(2) }
        let exponent = Int(written[written.index(after: mark)...].drop { $0 == "+" }) ?? 0
        let digits = String(abs(exponent))
        return mantissa + (exponent < 0 ? "e-" : "e+") + (digits.count < 2 ? "0" : "") + digits
    }

    // MARK: Tests

    static func compared(
        _ name: String,
        _ one: SpecValue,
        _ other: SpecValue,
        _ collation: SpecCollation
    ) throws -> SpecValue {
        if name == "IS" || name == "IS NOT" {
            let isSame: Bool
            if one.isMissing || other.isMissing {
                isSame = one.isMissing && other.isMissing
            } else {
                isSame = try SpecValue.isEqual(one, other, collation)
            }
            return .truth(isSame == (name == "IS"))
        }
        if one.isMissing || other.isMissing { return .missing }
        switch name {
        case "=", "==": return .truth(try SpecValue.isEqual(one, other, collation))
        case "!=", "<>": return .truth(try !SpecValue.isEqual(one, other, collation))
        case "<": return .truth(try SpecValue.compare(one, other, collation) < 0)
        case "<=": return .truth(try SpecValue.compare(one, other, collation) <= 0)
        case ">": return .truth(try SpecValue.compare(one, other, collation) > 0)
        default: return .truth(try SpecValue.compare(one, other, collation) >= 0)
        }
    }

    private static func tested(_ value: SpecValue, _ test: SpecExpression.Test, _ isNegated: Bool)
        -> SpecValue
    {
        switch test {
        case .null: value.isMissing ? .missing : .truth(value.isNull != isNegated)
        case .missing: .truth(value.isMissing != isNegated)
        case .valued: .truth((!value.isMissing && !value.isNull) != isNegated)
        }
    }

    private func contained(_ value: SpecValue, _ items: [SpecValue], _ collation: SpecCollation) throws
        -> Bool?
    {
        if items.isEmpty { return false }
        if value.isMissing { return nil }
        var isOpen = false
        for item in items {
            if item.isMissing {
                isOpen = true
            } else if try SpecValue.isEqual(value, item, collation) {
                return true
            }
        }
        return isOpen ? nil : false
    }

    static func like(_ value: SpecValue, _ pattern: SpecValue, _ collation: SpecCollation) throws -> Bool? {
        func isFalse(_ value: SpecValue) -> Bool {
            switch value {
            case .null, .array, .object: true
            default: false
            }
        }
        if isFalse(value) || isFalse(pattern) { return false }
        if value.isMissing || pattern.isMissing { return nil }
        guard case .string(let wanted) = pattern else { throw SpecValue.Unspecified() }
        let found: String
        switch value.plain {
        case .string(let text): found = text
        case .bool(let value): found = value ? "1" : "0"
        case .integer(let value): found = String(value)
        case .double(let value):
            // The specification does not say how many digits.
            guard value.description.utf8.count < 9, !value.description.contains("e") else {
                throw SpecValue.Unspecified()
            }
            found = value.description
        default: return false
        }
        return try like(Array(found.unicodeScalars)[...], Array(wanted.unicodeScalars)[...], collation)
    }

    private static func like(
        _ text: ArraySlice<Unicode.Scalar>,
        _ pattern: ArraySlice<Unicode.Scalar>,
        _ collation: SpecCollation
    ) throws -> Bool {
        guard let sign = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch sign {
        case "%":
            for start in text.startIndex...text.endIndex where try like(text[start...], rest, collation) {
                return true
            }
            return false
        case "_": return try !text.isEmpty && like(text.dropFirst(), rest, collation)
        case "\\":
            guard let wanted = rest.first, let first = text.first else { return false }
            return try collation.matches(first, wanted) && like(text.dropFirst(), rest.dropFirst(), collation)
        default:
            guard let first = text.first else { return false }
            return try collation.matches(first, sign) && like(text.dropFirst(), rest, collation)
        }
    }

    // MARK: Quantifiers

    private func quantified(
        _ quantifier: SpecExpression.Quantifier,
        _ variable: String,
        _ collection: SpecValue,
        _ condition: SpecExpression
    ) throws -> SpecValue {
        if quantifier == .any || quantifier == .some,
            case .comparison(let name, let left, let right, nil) = condition,
            name == "=" || name == "==", case .property(let steps) = left, steps.count == 1,
            case .key(variable)? = steps.first, !right.mentions(variable)
        {
            // The form that is answered by a lookup.
            let wanted = try evaluate(right)
            let items: [SpecValue]
            switch collection {
            case .array(let all): items = all
            case .object(let members): items = members.map(\.value)
            default: return .null
            }
            if wanted.isMissing { throw SpecValue.Unspecified() }
            // A boolean here: golden answers any-050 and any-060.
            return wanted.isNull ? .null : .bool(try SpecFunctions.contains(items, wanted))
        }
        let items: [SpecValue]
        switch collection {
        case .missing: items = []
        case .array(let all): items = all
        case .object(let members): items = members.map(\.value)
        default: items = [collection]
        }
        var inner = self
        var outcomes: [Bool?] = []
        for item in items {
            inner.variables[variable] = item
            outcomes.append(try inner.evaluate(condition).isTrue)
        }
        switch quantifier {
        case .any, .some: return .truth(outcomes.contains(true))
        case .every: return .truth(!outcomes.contains(false))
        case .both:
            // What is neither an array nor an object has no length to ask for (golden answers any-008 and any-020).
            if outcomes.contains(false) { return .truth(false) }
            switch collection {
            case .array, .object:
                // Whether an array of nulls is empty is not said.
                if !items.isEmpty, items.allSatisfy(\.isNull) { throw SpecValue.Unspecified() }
                return .truth(!items.isEmpty)
            default: return .missing
            }
        }
    }
}

extension SpecExpression {
    /// Whether a path begins with a name.
    func mentions(_ name: String) -> Bool {
        // The text is enough: the generator's variables have names that nothing else has.
        text.split { !$0.isLetter && !$0.isNumber }.contains { $0 == name }
    }
}
