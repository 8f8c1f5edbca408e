/// A JSON number, kept without loss.
///
/// A number that fits neither 64 bits nor a double exactly (a longer integer, digits that the nearest double does not
/// give back, an exponent out of range) keeps its text, so that nothing is rounded silently. Two numbers are equal if
/// they are of the same case with the same value.
public enum JSONNumber: Hashable, Sendable {
    /// An integer that fits `Int64`.
    case integer(Int64)
    /// An integer above `Int64.max` that fits `UInt64`.
    case unsigned(UInt64)
    /// A number with a fraction or an exponent. Infinities and NaN cannot be saved.
    case double(Double)
    /// The text of a number that the other cases cannot hold, in JSON's grammar.
    case text(String)

    /// Reads text that the scanner has accepted as a number.
    init(scanned text: some StringProtocol) {
        let isInteger = text.utf8.allSatisfy { $0 == UInt8(ascii: "-") || $0 &- 0x30 <= 9 }
        if isInteger, text != "-0" {
            if let value = Int64(text) {
                self = .integer(value)
            } else if let value = UInt64(text) {
                self = .unsigned(value)
            } else {
                self = .text(String(text))
            }
            return
        }
        let digits = Self.significantDigits(text)
        guard digits.count <= 17, let value = Double(String(text)), value.isFinite,
            value != 0 || digits.isEmpty,
            // Up to 15 digits survive in every double; the 16th and 17th in some.
            digits.count <= 15 || digits == Self.significantDigits(value.description)
        else {
            self = .text(String(text))
            return
        }
        self = .double(value)
    }

    /// Whether validated text is already the ``text`` of its number. Up to 15 digits are the shortest form, if they are written without an
    /// exponent and without superfluous zeros. False for numbers for which this is harder to decide.
    static func isShortestDecimal(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let digits = text.first == UInt8(ascii: "-") ? text[1...] : text[...]
        guard digits.count <= 16, let point = digits.firstIndex(of: UInt8(ascii: ".")),
            let last = digits.last,
            digits.allSatisfy({ $0 &- 0x30 <= 9 || $0 == UInt8(ascii: ".") })
        else { return false }
        let fraction = digits[(point + 1)...]
        if last == 0x30 { return fraction.count == 1 }
        // A double below a ten-thousandth is written with an exponent.
        return digits[..<point].contains { $0 != 0x30 } || fraction.prefix { $0 == 0x30 }.count <= 3
    }

    /// The significant digits of a number: those that do not only scale it.
    private static func significantDigits(_ text: some StringProtocol) -> [UInt8] {
        let mantissa = text.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        let digits = mantissa.filter { $0 &- 0x30 <= 9 }.drop { $0 == 0x30 }
        return Array(digits.dropLast(digits.reversed().prefix { $0 == 0x30 }.count))
    }

    /// The nearest double. It is infinite if the number is beyond a double's range, and 0 if ``text(_:)`` holds
    /// something else than a number.
    public var double: Double {
        switch self {
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .double(let value): value
        case .text(let text): Double(text) ?? 0
        }
    }

    /// Whether all digits are 0.
    var isZero: Bool { Self.significantDigits(text).isEmpty }

    /// Whether this is a number in JSON that a double can at least approximate, which every peer can read.
    package var isJSON: Bool { isWellFormed && double.isFinite }

    /// Whether JSON's grammar has such a number.
    var isWellFormed: Bool {
        switch self {
        case .integer, .unsigned: true
        case .double(let value): value.isFinite
        case .text(let text): (try? JSONElement(scanning: Array(text.utf8)))?.kind == .number
        }
    }

    /// The canonical text. A number that an app gave as text may have been written in another form.
    var canonicalText: String {
        guard case .text(let text) = self else { return text }
        return JSONNumber(scanned: text).text
    }

    /// Returns the value as an integer type, or nil if it has a fraction or does not fit. The result is also nil for
    /// ``text(_:)``.
    public func exactly<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        switch self {
        case .integer(let value): T(exactly: value)
        case .unsigned(let value): T(exactly: value)
        case .double(let value): T(exactly: value)
        case .text: nil
        }
    }

    /// The number as text: an integer in decimal, a double in the shortest form that reads back as the same double.
    public var text: String {
        switch self {
        case .integer(let value): value.description
        case .unsigned(let value): value.description
        case .double(let value): value.description
        case .text(let text): text
        }
    }
}
