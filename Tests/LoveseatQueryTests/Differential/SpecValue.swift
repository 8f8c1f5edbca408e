import LoveseatModel

/// A value of the query language as the specification has it, for the plain interpreter of the differential tests.
indirect enum SpecValue {
    case missing
    case null
    case bool(Bool)
    /// What a comparison or test gives: the number 1 or 0, which a row may show as a boolean.
    case truth(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([SpecValue])
    case object([(key: String, value: SpecValue)])

    /// The specification leaves the answer open, so that nothing can be compared.
    struct Unspecified: Error {
        init() {}
    }

    /// The query fails when it runs.
    struct RunFailure: Error {}

    init(_ value: JSONValue?) {
        switch value {
        case nil: self = .missing
        case .null?: self = .null
        case .bool(let value)?: self = .bool(value)
        case .number(.integer(let value))?: self = .integer(value)
        case .number(let value)?: self = .double(value.double)
        case .string(let value)?: self = .string(value)
        case .array(let items)?: self = .array(items.map { SpecValue($0) })
        case .object(let members)?: self = .object(members.map { ($0.key, SpecValue($0.value)) })
        }
    }

    /// The value as JSON; nil for MISSING.
    var json: JSONValue? {
        switch self {
        case .missing: return nil
        case .null: return .null
        case .bool(let value): return .bool(value)
        case .truth(let value): return .number(.integer(value ? 1 : 0))
        case .integer(let value): return .number(.integer(value))
        case .double(let value): return .number(.double(value))
        case .string(let value): return .string(value)
        case .array(let items): return .array(items.compactMap(\.json))
        case .object(let members):
            var object = JSONObject()
            for member in members { object[member.key] = member.value.json }
            return .object(object)
        }
    }

    var isMissing: Bool { if case .missing = self { true } else { false } }
    var isNull: Bool { if case .null = self { true } else { false } }

    /// A number that is not converted from text.
    var number: Double? {
        switch self {
        case .bool(let value), .truth(let value): value ? 1 : 0
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// The value with the outcome of a comparison as the number that it is.
    var plain: SpecValue { if case .truth(let value) = self { .integer(value ? 1 : 0) } else { self } }

    /// Whether a row that shows `found` shows this value.
    func isShown(as found: JSONValue?) -> Bool {
        switch (self, found) {
        case (.missing, nil), (.null, .null?): return true
        case (.bool(let value), .bool(let other)?): return value == other
        case (.truth(let value), .bool(let other)?): return value == other
        case (.truth(let value), .number(.integer(let other))?): return other == (value ? 1 : 0)
        case (.integer(let value), .number(.integer(let other))?): return value == other
        case (.double(let value), .number(.double(let other))?):
            return value == other || abs(value - other) <= 1e-12 * abs(value)
        case (.double(let value), .null?): return value.isInfinite
        case (.double(let value), .object(let other)?) where value.isInfinite:
            return other["$double"]?.string == (value > 0 ? "inf" : "-inf")
        case (.string(let value), .string(let other)?): return value.isExactly(other)
        case (.array(let items), .array(let others)?):
            return items.count == others.count && zip(items, others).allSatisfy { $0.isShown(as: $1) }
        case (.object(let members), .object(let others)?):
            return members.count == others.count
                && members.allSatisfy { $0.value.isShown(as: others[$0.key]) }
        default: return false
        }
    }

    // MARK: Conversions

    /// What counts as true (§5); nil for MISSING.
    var isTrue: Bool? {
        switch self {
        case .missing: nil
        case .null, .array, .object: false
        case .bool(let value), .truth(let value): value
        case .integer(let value): value != 0
        case .double(let value): value != 0
        case .string(let text): Self.prefix(text).number != 0
        }
    }

    /// The longest prefix that is a number; 0 if there is none.
    static func prefix(_ text: String) -> SpecValue {
        let bytes = Array(text.utf8)
        // The specification does not speak of blanks in front; SQLite skips them.
        let start = bytes.prefix { $0 == 0x20 || (0x09...0x0D).contains($0) }.count
        var end = start
        func digits() -> Int {
            let start = end
            while end < bytes.count, (0x30...0x39).contains(bytes[end]) { end += 1 }
            return end - start
        }
        if end < bytes.count, bytes[end] == UInt8(ascii: "-") || bytes[end] == UInt8(ascii: "+") { end += 1 }
        var found = digits()
        var isInteger = true
        if end < bytes.count, bytes[end] == UInt8(ascii: ".") {
            end += 1
            let fraction = digits()
            found += fraction
            isInteger = false
        }
        guard found > 0 else { return .integer(0) }
        let mantissa = end
        if end < bytes.count, bytes[end] | 0x20 == UInt8(ascii: "e") {
            end += 1
            if end < bytes.count, bytes[end] == UInt8(ascii: "-") || bytes[end] == UInt8(ascii: "+") {
                end += 1
            }
            if digits() > 0 { isInteger = false } else { end = mantissa }
        }
        let written = String(decoding: bytes[start..<end], as: UTF8.self)
        if isInteger, let value = Int64(written) { return .integer(value) }
        return .double(Double(written) ?? 0)
    }

    /// The value as a number for arithmetic: an integer or a double.
    var operand: SpecValue {
        switch self {
        case .missing, .integer, .double: self
        case .bool(let value), .truth(let value): .integer(value ? 1 : 0)
        case .string(let text): Self.prefix(text)
        case .null, .array, .object: .integer(0)
        }
    }

    /// Whether this is text that begins with a number with an exponent.
    var hasExponent: Bool {
        guard case .string(let text) = self else { return false }
        return text.utf8.contains { $0 | 0x20 == UInt8(ascii: "e") }
    }

    // MARK: Comparison

    private var rank: Int {
        switch self {
        case .missing: 0
        case .bool, .truth, .integer, .double: 1
        case .string: 2
        case .null: 3
        case .array: 4
        case .object: 5
        }
    }

    /// -1, 0 or 1 by the order of §5, with MISSING first.
    static func compare(_ one: SpecValue, _ other: SpecValue, _ collation: SpecCollation) throws -> Int {
        if one.rank != other.rank { return one.rank < other.rank ? -1 : 1 }
        switch (one.plain, other.plain) {
        case (.missing, _), (.null, _): return 0
        case (.string(let left), .string(let right)): return try collation.compare(left, right)
        case (.array, _), (.object, _):
            // Which one is greater is free.
            if one.isIdentical(to: other) { return 0 }
            throw Unspecified()
        case (let left, let right): return compareNumbers(left.operand, right.operand)
        }
    }

    /// Equality inside of arrays and objects, where 1 and 1.0 differ.
    func isIdentical(to other: SpecValue) -> Bool { json == other.json }

    /// Whether a -0.0 is inside, which may be the same as 0.0 there or not.
    private var hasNegativeZero: Bool {
        switch self {
        case .double(let value): value == 0 && value.sign == .minus
        case .array(let items): items.contains(where: \.hasNegativeZero)
        case .object(let members): members.contains { $0.value.hasNegativeZero }
        default: false
        }
    }

    /// Equality, which is specified for all values.
    static func isEqual(_ one: SpecValue, _ other: SpecValue, _ collation: SpecCollation) throws -> Bool {
        if one.rank == other.rank, one.rank >= 4 {
            if one.hasNegativeZero || other.hasNegativeZero { throw Unspecified() }
            return one.isIdentical(to: other)
        }
        return try compare(one, other, collation) == 0
    }

    private static func compareNumbers(_ one: SpecValue, _ other: SpecValue) -> Int {
        switch (one, other) {
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.integer(let left), .double(let right)): return compare(left, right)
        case (.double(let left), .integer(let right)): return -compare(right, left)
        case (.double(let left), .double(let right)): return left < right ? -1 : left > right ? 1 : 0
        default: return 0
        }
    }

    /// Exactly, without rounding the integer.
    private static func compare(_ integer: Int64, _ double: Double) -> Int {
        if double >= 0x1p63 { return -1 }
        if double < -0x1p63 { return 1 }
        let floor = double.rounded(.down)
        guard let whole = Int64(exactly: floor) else { return 0 }
        if integer != whole { return integer < whole ? -1 : 1 }
        return double > floor ? -1 : 0
    }
}

/// A collation of §8, as far as the specification says what it does.
struct SpecCollation {
    var isUnicode = false
    var ignoresCase = false

    static let binary = SpecCollation()

    /// The order of ASCII under UNICODE, without letters and digits.
    private static let signs = Array("\t\n\r `^_-,;:!?.'\"()[]{}@*/\\&#%+<=>|~$".unicodeScalars)

    var text: String {
        (isUnicode ? "UNICODE " : "") + (ignoresCase ? "NOCASE" : "CASE")
    }

    private func weight(_ scalar: Unicode.Scalar) throws -> Int {
        if ("0"..."9").contains(scalar) { return 100 + Int(scalar.value) }
        if ("a"..."z").contains(scalar) { return 200 + Int(scalar.value) }
        if ("A"..."Z").contains(scalar) { return 232 + Int(scalar.value) }
        guard let place = Self.signs.firstIndex(of: scalar) else { throw SpecValue.Unspecified() }
        return place
    }

    func compare(_ one: String, _ other: String) throws -> Int {
        func order<T: Comparable>(_ left: [T], _ right: [T]) -> Int {
            left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
        }
        guard isUnicode else {
            func bytes(_ text: String) -> [UInt8] {
                text.utf8.map { ignoresCase && (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
            }
            return order(bytes(one), bytes(other))
        }
        // Canonical equivalence, which is Swift's own equality.
        if one == other { return 0 }
        let (left, right) = (Array(one.unicodeScalars), Array(other.unicodeScalars))
        let first = order(try left.map(weight), try right.map(weight))
        if first != 0 || ignoresCase { return first }
        // Lower case comes first when all else is equal.
        return -order(left.map(\.value), right.map(\.value))
    }

    /// Whether two characters are the same for LIKE.
    func matches(_ one: Unicode.Scalar, _ other: Unicode.Scalar) throws -> Bool {
        guard isUnicode else { return one == other }
        guard one.isASCII, other.isASCII else { throw SpecValue.Unspecified() }
        if one == other { return true }
        return ignoresCase && String(one).lowercased() == String(other).lowercased()
    }
}
