package import LoveseatModel

/// A value of an expression: JSON, or MISSING.
package enum QueryValue: Hashable, Sendable {
    /// No such property, which is not the same as null.
    case missing
    case null
    case bool(Bool)
    case integer(Int64)
    /// An integer above `Int64.max`.
    case unsigned(UInt64)
    case double(Double)
    case string(String)
    /// The JSON text of an array.
    case array([UInt8])
    /// The JSON text of an object.
    case object([UInt8])

    /// The value as a number, if it is one or a boolean.
    package var number: Double? {
        switch self {
        case .bool(let value): value ? 1 : 0
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .double(let value): value
        case .missing, .null, .string, .array, .object: nil
        }
    }

    package var isMissing: Bool { self == .missing }
    package var isNull: Bool { self == .null }
    package var string: String? { if case .string(let value) = self { value } else { nil } }

    /// Whether it is a boolean, a number or a string.
    var isScalar: Bool {
        switch self {
        case .bool, .integer, .unsigned, .double, .string: true
        case .missing, .null, .array, .object: false
        }
    }

    /// Whether it can be a number of rows.
    var isRowCount: Bool {
        switch self {
        case .bool, .integer, .unsigned: true
        case .double(let value): Int64(exactly: value) != nil
        case .missing, .null, .string, .array, .object: false
        }
    }

    package var isNumber: Bool {
        switch self {
        case .integer, .unsigned, .double: true
        case .missing, .null, .bool, .string, .array, .object: false
        }
    }

    /// The JSON text; nil for MISSING. Infinities, which JSON has no form for, become null.
    package func appendJSON(to bytes: inout [UInt8]) {
        switch self {
        case .missing, .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .unsigned(let value): bytes.append(contentsOf: String(value).utf8)
        case .double(let value):
            bytes.append(contentsOf: value.isFinite ? value.description.utf8 : "null".utf8)
        case .string(let value): bytes.append(contentsOf: JSONText(canonical: .string(value)).bytes)
        case .array(let text), .object(let text): bytes.append(contentsOf: text)
        }
    }

    /// The JSON text of the value.
    package var json: [UInt8] {
        var bytes: [UInt8] = []
        appendJSON(to: &bytes)
        return bytes
    }

    /// The value of JSON that an app has.
    package init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .number(.integer(let value)): self = .integer(value)
        case .number(.unsigned(let value)): self = .unsigned(value)
        case .number(let value): self = .double(value.double)
        case .string(let value): self = .string(value)
        case .array: self = .array(JSONText(canonical: value).bytes)
        case .object: self = .object(JSONText(canonical: value).bytes)
        }
    }

    /// Reads JSON text that the database holds, and that was therefore checked.
    package init(json bytes: UnsafeBufferPointer<UInt8>) {
        self = JSONWalker(bytes).value(at: JSONWalker(bytes).start)
    }

    package init(json bytes: [UInt8]) {
        self = bytes.withUnsafeBufferPointer { QueryValue(json: $0) }
    }

    /// Compares as queries do: numbers and booleans, text, null, arrays, objects. MISSING comes first.
    package static func compare(_ one: QueryValue, _ other: QueryValue) -> Int {
        func rank(_ value: QueryValue) -> Int {
            switch value {
            case .missing: 0
            case .bool, .integer, .unsigned, .double: 1
            case .string: 2
            case .null: 3
            case .array: 4
            case .object: 5
            }
        }
        let (left, right) = (rank(one), rank(other))
        if left != right { return left < right ? -1 : 1 }
        switch (one, other) {
        case (.string(let one), .string(let other)):
            return one.utf8.elementsEqual(other.utf8)
                ? 0 : one.utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
        case (.array(let one), .array(let other)), (.object(let one), .object(let other)):
            return one == other ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
        default:
            return compareNumbers(one, other)
        }
    }

    private static func compareNumbers(_ one: QueryValue, _ other: QueryValue) -> Int {
        func exact(_ value: QueryValue) -> Int64? {
            switch value {
            case .bool(let value): value ? 1 : 0
            case .integer(let value): value
            case .double(let value): Int64(exactly: value)
            case .missing, .null, .unsigned, .string, .array, .object: nil
            }
        }
        if let left = exact(one), let right = exact(other) {
            return left == right ? 0 : left < right ? -1 : 1
        }
        guard let left = one.number, let right = other.number else { return 0 }
        if left != right { return left < right ? -1 : 1 }
        // A double that is a whole number beyond 2^53 may have been rounded to.
        if case .integer = one, exact(other) == nil { return right > 0 ? -1 : 1 }
        if case .integer = other, exact(one) == nil { return left > 0 ? 1 : -1 }
        return 0
    }
}
