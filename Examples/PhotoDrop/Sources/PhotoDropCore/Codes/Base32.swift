/// Base32 without padding (RFC 4648 §6), which QR codes hold as alphanumeric text.
package enum Base32 {
    private static let alphabet = BitAlphabet("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", bits: 5)

    /// Encodes whole groups of five bits; bits that are left over are padded with zeros.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String { alphabet.encode(bytes) }

    /// Decodes text in either case. Nil for other characters; bits that do not fill a byte are dropped.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        alphabet.decode(text.utf8.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 })
    }
}

/// Base64 without padding (RFC 4648 §4 and §5), and hexadecimal digits.
package enum TextCoding {
    private static let lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    private static let base64 = BitAlphabet(lettersAndDigits + "+/", bits: 6)
    private static let base64URL = BitAlphabet(lettersAndDigits + "-_", bits: 6)

    package static func base64URL(_ bytes: some Sequence<UInt8>) -> String { base64URL.encode(bytes) }

    /// Decodes Base64 with or without padding. Nil for other characters.
    package static func bytes(base64 text: some StringProtocol) -> [UInt8]? {
        base64.decode(text.utf8.prefix { $0 != UInt8(ascii: "=") })
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

/// The characters for groups of bits.
private struct BitAlphabet {
    private let characters: [UInt8]
    private let bits: Int

    init(_ characters: String, bits: Int) {
        self.characters = Array(characters.utf8)
        self.bits = bits
    }

    func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        var (buffer, waiting) = (0, 0)
        for byte in bytes {
            buffer = buffer << 8 | Int(byte)
            waiting += 8
            while waiting >= bits {
                waiting -= bits
                text.append(characters[buffer >> waiting])
                buffer &= (1 << waiting) - 1
            }
        }
        if waiting > 0 { text.append(characters[buffer << (bits - waiting)]) }
        return String(decoding: text, as: UTF8.self)
    }

    func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (buffer, waiting) = (0, 0)
        for character in text {
            guard let value = characters.firstIndex(of: character) else { return nil }
            buffer = buffer << bits | value
            waiting += bits
            if waiting >= 8 {
                waiting -= 8
                bytes.append(UInt8(buffer >> waiting))
                buffer &= (1 << waiting) - 1
            }
        }
        return bytes
    }
}
