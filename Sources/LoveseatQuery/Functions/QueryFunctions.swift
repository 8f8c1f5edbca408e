import LoveseatAssertions
import LoveseatModel

/// The functions of the language, on values.
package struct QueryFunctions: Sendable {
    package let environment: QueryEnvironment

    package init(environment: QueryEnvironment) { self.environment = environment }

    /// Computes a function.
    ///
    /// - Throws: ``QueryRunError`` where the language makes a query fail because of an argument.
    package func evaluate(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError)
        -> QueryValue
    {
        switch id {
        case .abs, .acos, .asin, .atan, .atan2, .ceil, .cos, .degrees, .div, .e, .exp, .floor, .idiv, .ln,
            .log, .pi,
            .power, .radians, .round, .roundEven, .sign, .sin, .sqrt, .tan, .trunc:
            try mathematical(id, arguments)
        case .concat, .contains, .length, .lower, .upper, .trim, .ltrim, .rtrim, .regexpLike, .regexpPosition,
            .regexpReplace, .like:
            try textual(id, arguments)
        case .arrayAverage, .arrayContains, .arrayCount, .arrayIfNull, .arrayLength, .arrayMax, .arrayMin,
            .arrayOf,
            .arraySum, .object:
            collective(id, arguments)
        case .ifMissing, .ifNull, .ifMissingOrNull, .missingIf, .nullIf: conditional(id, arguments)
        case .isArray, .isAtom, .isBoolean, .isNumber, .isObject, .isString, .type, .toArray, .toAtom,
            .toBoolean,
            .toNumber, .toObject, .toString:
            converted(id, arguments.first ?? .missing)
        case .strToMillis, .strToUTC, .strToTZ, .millisToUTC, .millisToTZ, .millisToStr, .dateAddStr,
            .dateAddMillis,
            .dateDiffStr, .dateDiffMillis:
            dated(id, arguments)
        }
    }

    /// MISSING or null, if an argument is: of several, MISSING wins.
    static func absent(_ arguments: some Sequence<QueryValue>) -> QueryValue? {
        var result: QueryValue?
        for argument in arguments {
            if argument.isMissing { return .missing }
            if argument.isNull { result = .null }
        }
        return result
    }

    // MARK: Conditions

    private func conditional(_ id: QueryFunctionID, _ arguments: [QueryValue]) -> QueryValue {
        switch id {
        case .ifMissing: return arguments.first { !$0.isMissing } ?? .missing
        case .ifNull: return arguments.first { !$0.isNull } ?? .null
        case .ifMissingOrNull: return arguments.first { !$0.isNull && !$0.isMissing } ?? .null
        default:
            if let absent = Self.absent(arguments.prefix(2)) { return absent }
            guard arguments.count == 2, QueryValue.compare(arguments[0], arguments[1]) == 0 else {
                return arguments.first ?? .missing
            }
            return id == .missingIf ? .missing : .null
        }
    }

    // MARK: Kinds

    private func converted(_ id: QueryFunctionID, _ value: QueryValue) -> QueryValue {
        if value.isMissing || value.isNull { return value }
        switch id {
        case .isArray: if case .array = value { return .bool(true) } else { return .bool(false) }
        case .isObject: if case .object = value { return .bool(true) } else { return .bool(false) }
        case .isBoolean: if case .bool = value { return .bool(true) } else { return .bool(false) }
        case .isNumber: return .bool(value.isNumber)
        case .isString: return .bool(value.string != nil)
        case .isAtom:
            switch value {
            case .array, .object: return .bool(false)
            default: return .bool(true)
            }
        case .type: return .string(Self.typeName(value))
        case .toString: return Self.text(value).map(QueryValue.string) ?? .null
        case .toNumber: return Self.number(value)
        case .toBoolean: return .bool(Self.truth(value))
        case .toArray:
            if case .array = value { return value }
            return .array([UInt8(ascii: "[")] + value.json + [UInt8(ascii: "]")])
        case .toObject: if case .object = value { return value } else { return .object(Array("{}".utf8)) }
        case .toAtom: return Self.atom(value)
        default:
            impossible("\(id) converts nothing")
            return .null
        }
    }

    static func typeName(_ value: QueryValue) -> String {
        switch value {
        case .missing: "missing"
        case .null: "null"
        case .bool: "boolean"
        case .integer, .unsigned, .double: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    private static func truth(_ value: QueryValue) -> Bool {
        switch value {
        case .bool(let value): value
        case .integer(let value): value != 0
        case .unsigned: true
        case .double(let value): value != 0 && !value.isNaN
        case .string(let value): !value.isEmpty
        case .array(let text), .object(let text):
            text.withUnsafeBufferPointer { JSONWalker($0).count(of: 0) } > 0
        case .missing, .null: false
        }
    }

    private static func number(_ value: QueryValue) -> QueryValue {
        guard case .string(let text) = value else {
            if case .array = value { return .null }
            if case .object = value { return .null }
            return value
        }
        // As JSON writes numbers, with a plus sign, zeros in front, and blanks around.
        var trimmed = Substring(text)
        while let first = trimmed.first, first == " " || first == "\t" || first == "\n" {
            trimmed.removeFirst()
        }
        while let last = trimmed.last, last == " " || last == "\t" || last == "\n" { trimmed.removeLast() }
        let isNegative = trimmed.first == "-"
        if isNegative || trimmed.first == "+" { trimmed.removeFirst() }
        while trimmed.first == "0", let next = trimmed.dropFirst().utf8.first, next &- 0x30 <= 9 {
            trimmed.removeFirst()
        }
        guard let first = trimmed.utf8.first, first &- 0x30 <= 9,
            let number =
                (try? JSONElement(parsing: Array((isNegative ? "-" : "").utf8) + Array(trimmed.utf8)))?.number
        else { return .null }
        return QueryValue(.number(number))
    }

    private static func atom(_ value: QueryValue) -> QueryValue {
        switch value {
        case .array(let text), .object(let text):
            text.withUnsafeBufferPointer { text in
                let walker = JSONWalker(text)
                var children = walker.children(of: 0)
                guard let only = children.next(), children.next() == nil else { return .null }
                return walker.value(at: only.value)
            }
        default: value
        }
    }

    // MARK: Text of values

    /// The text of a scalar; nil for everything else.
    static func text(_ value: QueryValue) -> String? {
        switch value {
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .unsigned(let value): String(value)
        case .double(let value): text(value)
        case .string(let value): value
        case .missing, .null, .array, .object: nil
        }
    }

    /// The shortest text that reads back as the same double, with at least one decimal.
    static func text(_ value: Double) -> String {
        let text = value.description
        guard abs(value) >= 1e16, value.isFinite, !text.contains("e") else { return text }
        // The standard library writes whole numbers up to 2^54 in full.
        let digits = text.prefix { $0 != "." }.filter { $0 != "-" }
        let significant = digits.reversed().drop { $0 == "0" }.reversed().map(String.init).joined()
        let fraction = significant.dropFirst()
        return (value < 0 ? "-" : "") + significant.prefix(1) + (fraction.isEmpty ? "" : "." + fraction)
            + "e+\(digits.count - 1)"
    }
}
