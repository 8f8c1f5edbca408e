/// A place in a query's text, with the tokens that can be read from it.
///
/// Nothing here throws: text that does not fit leaves the cursor where it was. The furthest place at which something was expected is
/// remembered for the message.
struct QueryCursor {
    let text: [UInt8]
    private(set) var position = 0
    private(set) var furthest = 0
    private(set) var expected: [String] = []

    init(_ text: [UInt8]) {
        self.text = text
    }

    static let reserved: Set<String> = [
        "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "COLLATE", "CROSS", "DESC", "DISTINCT", "ELSE",
        "END",
        "EVERY", "FALSE", "FROM", "GROUP", "HAVING", "IN", "INNER", "IS", "JOIN", "LEFT", "LIKE", "LIMIT",
        "MISSING",
        "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "RIGHT", "SATISFIES", "SELECT",
        "THEN",
        "TRUE", "UNNEST", "USING", "VALUED", "WHEN", "WHERE",
    ]

    var isAtEnd: Bool { position >= text.count }

    mutating func rewind(to mark: Int) { position = mark }

    /// Remembers what was expected here, for the message.
    mutating func expect(_ what: String) { expect(what, at: position) }

    mutating func expect(_ what: String, at place: Int) {
        if place > furthest {
            furthest = place
            expected = []
        }
        if place == furthest, expected.count < 12, !expected.contains(what) { expected.append(what) }
    }

    mutating func skipSpace() {
        while position < text.count, Self.isSpace(text[position]) { position += 1 }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    func peek(_ offset: Int = 0) -> UInt8? {
        position + offset < text.count ? text[position + offset] : nil
    }

    mutating func advance(_ count: Int = 1) { position += count }

    /// Reads a sign, with the white space behind it. A quiet one is not named in the message.
    mutating func consume(_ sign: StaticString, quietly: Bool = false) -> Bool {
        let count = sign.utf8CodeUnitCount
        let fits =
            position + count <= text.count
            && (0..<count).allSatisfy { text[position + $0] == sign.utf8Start[$0] }
        guard fits else {
            if !quietly { expect("`\(sign)`") }
            return false
        }
        position += count
        skipSpace()
        return true
    }

    private static func isNameStart(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || (byte | 0x20) &- UInt8(ascii: "a") < 26
    }

    static func isNamePart(_ byte: UInt8) -> Bool {
        isNameStart(byte) || byte &- 0x30 <= 9 || byte == UInt8(ascii: "$")
    }

    /// The word here, whether reserved or not.
    func word() -> String? { word(at: position) }

    private func word(at start: Int) -> String? {
        guard start < text.count, Self.isNameStart(text[start]) else { return nil }
        var end = start + 1
        while end < text.count, Self.isNamePart(text[end]) { end += 1 }
        return String(decoding: text[start..<end], as: UTF8.self)
    }

    /// The name in front of an opening parenthesis that is at a place.
    func call(at place: Int) -> String? {
        guard place < text.count, text[place] == UInt8(ascii: "(") else { return nil }
        var end = place
        while end > 0, Self.isSpace(text[end - 1]) { end -= 1 }
        var start = end
        while start > 0, Self.isNamePart(text[start - 1]) { start -= 1 }
        let name = String(decoding: text[start..<end], as: UTF8.self)
        guard start < end, Self.isNameStart(text[start]), !Self.reserved.contains(name.uppercased()),
            start == 0
                || ![UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "`")].contains(text[start - 1])
        else { return nil }
        return name
    }

    /// The reserved word that is a step of a path at a place.
    func reservedStep(at place: Int) -> String? {
        guard place > 0, text[place - 1] == UInt8(ascii: "."), let word = word(at: place),
            Self.reserved.contains(word.uppercased())
        else { return nil }
        return word
    }

    /// Reads a keyword, with the white space behind it.
    mutating func consume(keyword: String) -> Bool {
        guard let word = word(), word.utf8.count == keyword.utf8.count, word.uppercased() == keyword else {
            expect(keyword)
            return false
        }
        position += keyword.utf8.count
        skipSpace()
        return true
    }

    func isAt(keyword: String) -> Bool { word()?.uppercased() == keyword }

    /// Reads a name that is not reserved, or anything in back-quotes.
    mutating func identifier(_ what: String = "a name", skippingSpace: Bool = true) -> String? {
        if peek() == UInt8(ascii: "`") { return quoted(UInt8(ascii: "`"), skippingSpace: skippingSpace) }
        guard let word = word(), !Self.reserved.contains(word.uppercased()) else {
            expect(what)
            return nil
        }
        position += word.utf8.count
        if skippingSpace { skipSpace() }
        return word
    }

    /// Reads the text between two delimiters. A delimiter inside it is written twice.
    mutating func quoted(_ delimiter: UInt8, skippingSpace: Bool = true) -> String? {
        guard peek() == delimiter else { return nil }
        var bytes: [UInt8] = []
        var cursor = position + 1
        while cursor < text.count {
            if text[cursor] == delimiter {
                guard cursor + 1 < text.count, text[cursor + 1] == delimiter else {
                    position = cursor + 1
                    if skippingSpace { skipSpace() }
                    return String(decoding: bytes, as: UTF8.self)
                }
                cursor += 1
            }
            bytes.append(text[cursor])
            cursor += 1
        }
        expect("a closing \(Character(Unicode.Scalar(delimiter)))", at: text.count)
        return nil
    }

    mutating func string() -> String? {
        if let string = quoted(UInt8(ascii: "'")) ?? quoted(UInt8(ascii: "\"")) { return string }
        expect("a string")
        return nil
    }

    private func digits(from start: Int) -> Int {
        var end = start
        while end < text.count, text[end] &- 0x30 <= 9 { end += 1 }
        return end
    }

    /// Reads a number with its sign. Integers beyond 64 bits are clamped.
    mutating func number() -> QueryValue? {
        var start = position
        let isNegative = peek() == UInt8(ascii: "-")
        if isNegative { start += 1 }
        var end = digits(from: start)
        let whole = end - start
        var isInteger = true
        if end < text.count, text[end] == UInt8(ascii: ".") {
            let fraction = digits(from: end + 1)
            guard whole > 0 || fraction > end + 1 else { return fail() }
            isInteger = false
            end = fraction
        } else if whole == 0 {
            return fail()
        }
        if end < text.count, text[end] | 0x20 == UInt8(ascii: "e") {
            var exponent = end + 1
            if exponent < text.count,
                text[exponent] == UInt8(ascii: "+") || text[exponent] == UInt8(ascii: "-")
            {
                exponent += 1
            }
            let last = digits(from: exponent)
            if last > exponent {
                end = last
                isInteger = false
            }
        }
        if end < text.count, Self.isNamePart(text[end]), text[end] != UInt8(ascii: "$") {
            expect("the end of the number", at: end)
            return nil
        }
        let written = String(decoding: text[position..<end], as: UTF8.self)
        if !isInteger, !Self.double(written).isFinite {
            expect("a number below 1.8e308", at: end)
            return nil
        }
        position = end
        skipSpace()
        if isInteger { return .integer(Int64(written) ?? (isNegative ? .min : .max)) }
        return .double(Self.double(written))
    }

    private mutating func fail() -> QueryValue? {
        expect("a number")
        return nil
    }

    /// The standard library does not read `.5` or `5.`.
    private static func double(_ written: String) -> Double {
        var bytes = Array(written.utf8)
        if let point = bytes.firstIndex(of: UInt8(ascii: ".")) {
            if point + 1 == bytes.count || bytes[point + 1] &- 0x30 > 9 { bytes.insert(0x30, at: point + 1) }
            if point == 0 || bytes[point - 1] &- 0x30 > 9 { bytes.insert(0x30, at: point) }
        }
        return Double(String(decoding: bytes, as: UTF8.self)) ?? 0
    }
}
