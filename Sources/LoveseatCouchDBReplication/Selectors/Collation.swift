package import LoveseatModel

/// CouchDB's order of JSON values: null, false, true, numbers, strings, arrays, objects.
///
/// Strings are compared letter by letter without regard to case and then by their scalars, which is what ICU's root collation does
/// with letters of ASCII; accents come after all unaccented letters.
package enum Collation {
    package enum Order: Sendable { case before, same, after }

    package static func compare(_ one: JSONValue, _ other: JSONValue) -> Order {
        let (rank, otherRank) = (rank(one), rank(other))
        guard rank == otherRank else { return rank < otherRank ? .before : .after }
        switch (one, other) {
        case (.number(let one), .number(let other)): return compare(one, other)
        case (.string(let one), .string(let other)): return compare(one, other)
        case (.array(let one), .array(let other)):
            for (one, other) in zip(one, other) {
                let order = compare(one, other)
                if order != .same { return order }
            }
            return order(one.count, other.count)
        case (.object(let one), .object(let other)): return compare(one, other)
        default: return .same
        }
    }

    /// Compares the ID of a document with a value: IDs have the order of `_all_docs`, which is that of their bytes, and come after all
    /// values that are not strings.
    static func compareID(_ id: JSONValue, _ other: JSONValue) -> Order {
        guard let id = id.string else { return compare(id, other) }
        guard let other = other.string else { return .after }
        return id.isExactly(other) ? .same : id.bytesPrecede(other) ? .before : .after
    }

    /// Integers are compared exactly, with doubles too. Longer ones are compared by their digits.
    package static func compare(_ one: JSONNumber, _ other: JSONNumber) -> Order {
        if let left = one.exactly(Int128.self), let right = other.exactly(Int128.self) {
            return order(left, right)
        }
        let approximate = order(one.double, other.double)
        guard approximate == .same else { return approximate }
        // An integer that the double is near, and a double that is near the integer.
        if case .text = one { return compareDigits(one, other) }
        if case .text = other { return compareDigits(one, other) }
        return .same
    }

    /// Compares two numbers that have the same double.
    private static func compareDigits(_ one: JSONNumber, _ other: JSONNumber) -> Order {
        guard let left = DecimalInteger(one), let right = DecimalInteger(other) else { return .same }
        return left < right ? .before : right < left ? .after : .same
    }

    private static func rank(_ value: JSONValue) -> Int {
        switch value {
        case .null: 0
        case .bool(let flag): flag ? 2 : 1
        case .number: 3
        case .string: 4
        case .array: 5
        case .object: 6
        }
    }

    private static func order<Value: Comparable>(_ one: Value, _ other: Value) -> Order {
        one < other ? .before : one > other ? .after : .same
    }

    private static func compare(_ one: JSONObject, _ other: JSONObject) -> Order {
        let (keys, otherKeys) = (
            one.keys.sorted { $0.bytesPrecede($1) }, other.keys.sorted { $0.bytesPrecede($1) }
        )
        for (key, otherKey) in zip(keys, otherKeys) {
            let order = compare(key, otherKey)
            if order != .same { return order }
            let values = compare(one[key] ?? .null, other[otherKey] ?? .null)
            if values != .same { return values }
        }
        return order(keys.count, otherKeys.count)
    }

    package static func compare(_ one: String, _ other: String) -> Order {
        let folded = order(one, other) { weight($0) }
        // Lower case comes first.
        return folded != .same
            ? folded
            : order(one, other) { isUpper($0) ? 1 : 0 } == .same
                ? order(one, other) { Int($0.value) } : order(one, other) { isUpper($0) ? 1 : 0 }
    }

    private static func order(_ one: String, _ other: String, by weight: (Unicode.Scalar) -> Int) -> Order {
        var (one, other) = (one.unicodeScalars.makeIterator(), other.unicodeScalars.makeIterator())
        while true {
            switch (one.next(), other.next()) {
            case (nil, nil): return .same
            case (nil, _): return .before
            case (_, nil): return .after
            case (let one?, let other?):
                let order = order(weight(one), weight(other))
                if order != .same { return order }
            }
        }
    }

    private static func isUpper(_ scalar: Unicode.Scalar) -> Bool { (0x41...0x5A).contains(scalar.value) }

    /// Signs come before digits, and digits before letters.
    private static func weight(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x41...0x5A: 2_000 + Int(scalar.value) + 0x20
        case 0x61...0x7A: 2_000 + Int(scalar.value)
        case 0x30...0x39: 1_000 + Int(scalar.value)
        case 0..<0x80: Int(scalar.value)
        default: 4_000 + Int(scalar.value)
        }
    }
}

/// An integer of any length.
private struct DecimalInteger: Comparable {
    private let isNegative: Bool
    private let digits: [UInt8]

    /// Nil for a number that is not written as an integer.
    init?(_ number: JSONNumber) {
        let text = number.exactly(Int128.self).map(String.init) ?? number.text
        isNegative = text.utf8.first == UInt8(ascii: "-")
        digits = Array(text.utf8.dropFirst(isNegative ? 1 : 0))
        guard digits.allSatisfy({ $0 &- 0x30 <= 9 }) else { return nil }
    }

    static func < (one: Self, other: Self) -> Bool {
        if one.isNegative != other.isNegative { return one.isNegative }
        let (smaller, greater) = one.isNegative ? (other.digits, one.digits) : (one.digits, other.digits)
        return smaller.count != greater.count
            ? smaller.count < greater.count : smaller.lexicographicallyPrecedes(greater)
    }
}
