/// Base32 without padding (RFC 4648 §6), which QR codes hold as alphanumeric text.
package enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// Encodes whole groups of five bits; bits that are left over are padded with zeros.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = buffer << 8 | Int(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[buffer >> bits & 31])
            }
            buffer &= (1 << bits) - 1
        }
        if bits > 0 { text.append(alphabet[buffer << (5 - bits) & 31]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes text in either case. Nil for other characters; bits that do not fill a byte are dropped.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = 0
        var bits = 0
        for character in text.utf8 {
            let value: Int
            switch character {
            case 0x41...0x5A: value = Int(character) - 0x41
            case 0x61...0x7A: value = Int(character) - 0x61
            case 0x32...0x37: value = Int(character) - 0x32 + 26
            default: return nil
            }
            buffer = buffer << 5 | value
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 0xFF))
                buffer &= (1 << bits) - 1
            }
        }
        return bytes
    }
}

/// Base64 for URLs, without padding (RFC 4648 §5), and hexadecimal digits.
package enum TextCoding {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )

    package static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var buffer = 0
        var bits = 0
        for byte in bytes {
            buffer = buffer << 8 | Int(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[buffer >> bits & 63])
            }
            buffer &= (1 << bits) - 1
        }
        if bits > 0 { text.append(alphabet[buffer << (6 - bits) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads pairs of hexadecimal digits in either case. Nil for anything else.
    package static func bytes(hexadecimal text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.compactMap { character -> UInt8? in
            switch character {
            case 0x30...0x39: character - 0x30
            case 0x41...0x46: character - 0x41 + 10
            case 0x61...0x66: character - 0x61 + 10
            default: nil
            }
        }
        guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
