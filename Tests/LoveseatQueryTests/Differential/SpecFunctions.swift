import LoveseatModel
import LoveseatPlatform

/// The functions of §6 that the differential tests call.
enum SpecFunctions {
    /// Functions of one argument whose mistakes give null, and which therefore may stand anywhere.
    static let unary = [
        "ABS", "CEIL", "FLOOR", "SQRT", "EXP", "LENGTH", "LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM",
        "ARRAY_LENGTH",
        "ARRAY_COUNT", "ARRAY_SUM", "ARRAY_AVG", "ARRAY_MIN", "ARRAY_MAX", "ARRAY_IFNULL", "ISARRAY",
        "ISATOM",
        "ISBOOLEAN", "ISNUMBER", "ISOBJECT", "ISSTRING", "TYPE", "TOSTRING", "TONUMBER", "TOBOOLEAN",
        "TOARRAY",
        "TOOBJECT", "TOATOM",
    ]
    static let binary = ["CONTAINS", "DIV", "IDIV", "ARRAY_CONTAINS", "MISSINGIF", "NULLIF"]
    static let variadic = [
        "CONCAT", "IFMISSING", "IFNULL", "IFMISSINGORNULL", "GREATEST", "LEAST", "ARRAY_OF",
    ]
    /// Functions that fail the query for other kinds; they stand outermost only, so that nothing hides the failure.
    static let failing = ["ROUND", "TRUNC", "ROUND_EVEN", "SIGN"]

    static func call(_ name: String, _ expressions: [SpecExpression], _ arguments: [SpecValue]) throws
        -> SpecValue
    {
        switch name {
        case "CONCAT": return try SpecInterpreter.concatenated(arguments)
        case "ARRAY_OF": return .array(arguments.filter { !$0.isMissing })
        case "IFMISSING": return arguments.first { !$0.isMissing } ?? .missing
        case "IFNULL": return arguments.first { !$0.isNull } ?? .null
        case "IFMISSINGORNULL": return arguments.first { !$0.isMissing && !$0.isNull } ?? .null
        case "GREATEST", "LEAST": return try extreme(arguments, isGreatest: name == "GREATEST")
        case "ARRAY_LENGTH":
            if case .array(let items) = arguments[0] { return .integer(Int64(items.count)) }
            return .integer(0)
        case "ARRAY_COUNT": return count(arguments[0], isPath: expressions[0].isPath)
        case "ARRAY_SUM", "ARRAY_AVG":
            guard case .array(let items) = arguments[0], !items.isEmpty else { return .double(0) }
            let sum = items.reduce(0) { $0 + ($1.number ?? 0) }
            return sum.isFinite ? .double(name == "ARRAY_SUM" ? sum : sum / Double(items.count)) : try open()
        case "ARRAY_MIN", "ARRAY_MAX":
            guard case .array(let items) = arguments[0] else { return .null }
            // Whether booleans count is not said.
            if items.contains(where: { if case .bool = $0.plain { true } else { false } }) {
                return try open()
            }
            let numbers = items.compactMap(\.number)
            return (name == "ARRAY_MIN" ? numbers.min() : numbers.max()).map(SpecValue.double) ?? .null
        case "ARRAY_IFNULL":
            guard case .array(let items) = arguments[0] else { return .null }
            return items.first { !$0.isNull } ?? .null
        case "ARRAY_CONTAINS":
            // The array is looked at first.
            if arguments[0].isMissing { return .missing }
            guard case .array(let items) = arguments[0] else { return .null }
            if arguments[1].isMissing || arguments[1].isNull { return arguments[1] }
            return .bool(try contains(items, arguments[1]))
        case "SIGN":
            guard let number = arguments[0].number else { throw SpecValue.RunFailure() }
            return .integer(number > 0 ? 1 : number < 0 ? -1 : 0)
        default: break
        }
        if arguments.contains(where: \.isMissing) { return .missing }
        if arguments.contains(where: \.isNull) { return .null }
        if arguments.count == 1 { return try one(name, arguments[0].plain) }
        return try two(name, arguments[0].plain, arguments[1].plain)
    }

    private static func open() throws -> SpecValue { throw SpecValue.Unspecified() }

    private static func finite(_ value: Double) -> SpecValue { value.isFinite ? .double(value) : .null }

    private static func one(_ name: String, _ value: SpecValue) throws -> SpecValue {
        switch name {
        case "ABS": return value.number.map { finite(abs($0)) } ?? .null
        case "CEIL": return value.number.map { finite($0.rounded(.up)) } ?? .null
        case "FLOOR": return value.number.map { finite($0.rounded(.down)) } ?? .null
        case "SQRT": return value.number.map { finite($0.squareRoot()) } ?? .null
        case "EXP": return value.number.map { finite(LoveseatPlatform.exp($0)) } ?? .null
        case "ROUND", "TRUNC", "ROUND_EVEN":
            guard let number = value.number else { throw SpecValue.RunFailure() }
            return .double(
                number.rounded(
                    name == "ROUND"
                        ? .toNearestOrAwayFromZero : name == "TRUNC" ? .towardZero : .toNearestOrEven
                )
            )
        case "LENGTH":
            if case .string(let text) = value { return .integer(Int64(text.unicodeScalars.count)) }
            return .null
        case "LOWER", "UPPER":
            guard case .string(let text) = value else { return .null }
            return .string(name == "LOWER" ? text.lowercased() : text.uppercased())
        case "TRIM", "LTRIM", "RTRIM":
            guard case .string(let text) = value else { return value }
            return .string(trimmed(text, left: name != "RTRIM", right: name != "LTRIM"))
        case "ISARRAY": return .bool(kind(value) == "array")
        case "ISBOOLEAN": return .bool(kind(value) == "boolean")
        case "ISNUMBER": return .bool(kind(value) == "number")
        case "ISOBJECT": return .bool(kind(value) == "object")
        case "ISSTRING": return .bool(kind(value) == "string")
        case "ISATOM": return .bool(["boolean", "number", "string"].contains(kind(value)))
        case "TYPE": return .string(kind(value))
        case "TOARRAY": if case .array = value { return value } else { return .array([value]) }
        case "TOOBJECT": if case .object = value { return value } else { return .object([]) }
        case "TOSTRING":
            switch value {
            case .array, .object: return .null
            default: return .string(try SpecInterpreter.text(value))
            }
        case "TONUMBER": return try number(value)
        case "TOBOOLEAN":
            switch value {
            case .string(let text): return .bool(!text.isEmpty)
            case .array(let items): return .bool(!items.isEmpty)
            case .object(let members): return .bool(!members.isEmpty)
            default: return .bool(value.number.map { $0 != 0 && !$0.isNaN } ?? false)
            }
        default:
            // TOATOM
            switch value {
            case .array(let items): return items.count == 1 ? items[0] : .null
            case .object(let members): return members.count == 1 ? members[0].value : .null
            default: return value
            }
        }
    }

    private static func number(_ value: SpecValue) throws -> SpecValue {
        switch value {
        case .integer, .double: return value
        case .string(let text):
            guard !text.isEmpty, text.utf8.allSatisfy({ $0 | 0x20 != UInt8(ascii: "e") }) else {
                return text.isEmpty || Double(text) == nil ? .null : try open()
            }
            let bytes = Array(text.utf8)
            guard (0x30...0x39).contains(bytes[bytes.count - 1]), bytes[0] != UInt8(ascii: "+"),
                let number = Double(text)
            else { return .null }
            if bytes.contains(where: { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ".") && $0 > 0x39 }) {
                return try open()
            }
            return Int64(text).map(SpecValue.integer) ?? .double(number)
        case .bool: return try open()
        default: return .null
        }
    }

    private static func two(_ name: String, _ one: SpecValue, _ other: SpecValue) throws -> SpecValue {
        switch name {
        case "CONTAINS":
            guard case .string(let text) = one, case .string(let part) = other else { return .bool(false) }
            let (bytes, wanted) = (Array(text.utf8), Array(part.utf8))
            guard !wanted.isEmpty, wanted.count <= bytes.count else { return .bool(false) }
            return .bool(
                (0...(bytes.count - wanted.count)).contains {
                    Array(bytes[$0..<($0 + wanted.count)]) == wanted
                }
            )
        case "DIV":
            guard let left = one.number, let right = other.number, right != 0 else { return .null }
            return .double(left / right)
        case "IDIV":
            guard let first = one.number, let second = other.number else { return .null }
            // The real engine cuts by way of a double (golden answer fn2-014), against the specification.
            if abs(first) >= 0x1p53 || abs(second) >= 0x1p53 { return try open() }
            let (left, right) = (try SpecInterpreter.cut(one.operand), try SpecInterpreter.cut(other.operand))
            if right == 0 { return .null }
            let result = left.dividedReportingOverflow(by: right)
            return result.overflow ? try open() : .integer(result.partialValue)
        default:
            return try SpecValue.isEqual(one, other, .binary) ? (name == "NULLIF" ? .null : .missing) : one
        }
    }

    /// Looks up a value; an array or an object is never found.
    static func contains(_ items: [SpecValue], _ wanted: SpecValue) throws -> Bool {
        switch wanted {
        case .array, .object: return false
        default: return try items.contains { try SpecValue.isEqual($0, wanted, .binary) }
        }
    }

    private static func extreme(_ values: [SpecValue], isGreatest: Bool) throws -> SpecValue {
        if values.contains(where: \.isMissing) { return .missing }
        var best = values[0]
        for value in values.dropFirst() {
            let order = try SpecValue.compare(value, best, .binary)
            // Of equal values of different kinds, 1, 1.0 and TRUE, either may be given.
            if order == 0, !value.isIdentical(to: best) { throw SpecValue.Unspecified() }
            if isGreatest ? order > 0 : order < 0 { best = value }
        }
        return best
    }

    private static func count(_ value: SpecValue, isPath: Bool) -> SpecValue {
        switch value {
        case .array(let items): .integer(Int64(items.filter { !$0.isNull }.count))
        case .object(let members) where isPath: .integer(Int64(members.count))
        default: isPath ? .missing : .integer(0)
        }
    }

    private static func kind(_ value: SpecValue) -> String {
        switch value {
        case .missing: "missing"
        case .null: "null"
        case .bool: "boolean"
        case .truth, .integer, .double: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    private static func trimmed(_ text: String, left: Bool, right: Bool) -> String {
        func isBlank(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.value {
            case 0x09...0x0D, 0x20, 0x1680, 0x180E, 0x2000...0x2006, 0x2008...0x200A, 0x2028, 0x2029, 0x205F,
                0x3000:
                true
            default: false
            }
        }
        var scalars = Array(text.unicodeScalars)[...]
        if left { scalars = scalars.drop(while: isBlank) }
        while right, let last = scalars.last, isBlank(last) { scalars.removeLast() }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }
}

extension SpecExpression {
    var isProperty: Bool { if case .property = self { true } else { false } }

    /// Whether ARRAY_COUNT takes it for a path.
    var isPath: Bool { if case .member = self { true } else { isProperty } }
}
