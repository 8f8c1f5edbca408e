/// Makes text safe for headers.
enum HeaderText {
    /// Returns a quoted string with `"` and `\` escaped. Control characters become spaces.
    static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = [0x22]
        for byte in withoutControls(text).utf8 {
            if byte == 0x22 || byte == 0x5C { bytes.append(0x5C) }
            bytes.append(byte)
        }
        bytes.append(0x22)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the text with every control character replaced by a space, so that it cannot end the header.
    static func withoutControls(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return text }
        return String(decoding: text.utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
    }

    /// Whether the text is not empty and has printable ASCII characters only.
    static func isPrintable(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    /// Whether the text is a token of RFC 9110.
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(HeaderScanner.isToken)
    }
}
