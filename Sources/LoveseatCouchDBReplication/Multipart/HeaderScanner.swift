/// Reads the pieces of a structured header value: tokens, quoted strings, and separators.
struct HeaderScanner {
    private var rest: ArraySlice<UInt8>

    init(_ text: String) { rest = ArraySlice(Array(text.utf8)) }

    var isAtEnd: Bool { rest.isEmpty }
    var next: UInt8? { rest.first }

    /// Skips blanks and tabs.
    mutating func skipBlanks() {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    }

    /// Skips a character, and returns whether it was there.
    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard let first = rest.first, UInt32(first) == character.value else { return false }
        rest.removeFirst()
        return true
    }

    /// Returns the characters up to one that ends the token; nil if there are none.
    mutating func token(_ isAllowed: (UInt8) -> Bool = HeaderScanner.isToken) -> String? {
        let token = rest.prefix(while: isAllowed)
        guard !token.isEmpty else { return nil }
        rest = rest[token.endIndex...]
        return String(decoding: token, as: UTF8.self)
    }

    /// Returns the contents of a quoted string; nil if none begins here or it has no end.
    ///
    /// The strict form follows RFC 9110. The lenient form reads file names, which some peers do not escape: a quotation
    /// mark ends the string only before `;` or the end of the header, and a backslash escapes only `"` and `\`.
    mutating func quotedString(isLenient: Bool = false) -> String? {
        guard rest.first == 0x22 else { return nil }
        var index = rest.startIndex + 1
        var content: [UInt8] = []
        while index < rest.endIndex {
            let byte = rest[index]
            if byte == 0x22, !isLenient || isEnd(after: index) {
                rest = rest[(index + 1)...]
                return String(decoding: content, as: UTF8.self)
            }
            if byte == 0x5C, index + 1 < rest.endIndex {
                let escaped = rest[index + 1]
                if isEscape(at: index, isLenient: isLenient) {
                    content.append(escaped)
                    index += 2
                    continue
                }
            }
            content.append(byte)
            index += 1
        }
        return nil
    }

    /// Whether a backslash escapes the next byte. In the lenient form `\"` at the very end is a name that ends with
    /// an unescaped backslash.
    private func isEscape(at index: Int, isLenient: Bool) -> Bool {
        guard isLenient else { return true }
        switch rest[index + 1] {
        case 0x5C: return true
        case 0x22: return index + 2 < rest.endIndex
        default: return false
        }
    }

    private func isEnd(after quote: Int) -> Bool {
        let following = rest[(quote + 1)...].first { $0 != 0x20 && $0 != 0x09 }
        return following == nil || following == 0x3B
    }

    /// Whether a byte may stand in a token of RFC 9110.
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: false
        }
    }

    /// Whether a byte may stand in a parameter value without quotation marks. Peers put characters there that RFC 9110
    /// wants quoted, such as `/` and `=` in boundaries.
    static func isUnquotedValue(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != 0x7F && byte != 0x22 && byte != 0x2C && byte != 0x3B
    }
}

extension String {
    /// The string with A to Z in lower case; other characters are unchanged.
    var lowercasedASCII: String {
        String(
            decoding: utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 },
            as: UTF8.self
        )
    }

    /// Whether two strings are equal but for the case of ASCII letters.
    func equalsIgnoringCase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && zip(utf8, other.utf8).allSatisfy { left, right in
                left == right
                    || (left ^ right == 0x20 && (0x61...0x7A).contains(left | 0x20))
            }
    }

    /// The string without blanks and tabs at its ends.
    var trimmedBlanks: String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        let front = utf8.drop(while: isBlank)
        guard let last = front.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(decoding: front[...last], as: UTF8.self)
    }
}
