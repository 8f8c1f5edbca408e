import LoveseatModel

/// Text outside ASCII in the header of a mail, such as `=?utf-8?b?w7w=?=` (RFC 2047 §2).
package enum EncodedWords {
    /// The text of a header's value; nil if a word has an encoding that is not known, or is not UTF-8.
    package static func decode(_ value: String) -> String? {
        guard value.utf8.starts(with: "=?".utf8) else { return value }
        var bytes: [UInt8] = []
        // Blanks between encoded words belong to the encoding.
        for word in value.split(whereSeparator: { $0 == " " || $0 == "\t" }) {
            guard word.hasPrefix("=?"), word.hasSuffix("?="), word.utf8.count > 4 else { return nil }
            let parts = word.dropFirst(2).dropLast(2).split(
                separator: "?",
                maxSplits: 2,
                omittingEmptySubsequences: false
            )
            guard parts.count == 3, String(parts[0]).equalsIgnoringCase("utf-8") else { return nil }
            let text = String(parts[2])
            switch parts[1].lowercased() {
            case "b":
                guard let decoded = Base64.decode(text) else { return nil }
                bytes += decoded
            case "q":
                guard let decoded = quoted(text) else { return nil }
                bytes += decoded
            default: return nil
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// The `Q` encoding of RFC 2047 §4.2.
    private static func quoted(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "_"): bytes.append(0x20)
            case UInt8(ascii: "="):
                guard rest.count >= 2,
                    let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
