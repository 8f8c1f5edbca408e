/// Base64 with padding (RFC 4648 §4), for the few dozen bytes of a digest.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
            for index in 0..<4 {
                let isPadding = index > group.count
                text.append(
                    isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * UInt32(index))) & 63]
                )
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: characters.count, by: 4) {
            let group = characters[start..<start + 4]
            let padding =
                start + 4 == characters.count ? group.reversed().prefix { $0 == UInt8(ascii: "=") }.count : 0
            guard padding <= 2 else { return nil }
            var bits: UInt32 = 0
            for character in group.dropLast(padding) {
                guard let digit = digit(character) else { return nil }
                bits = bits << 6 | digit
            }
            bits <<= 6 * UInt32(padding)
            // Bits that no byte uses must be zero, or one content would have several names.
            guard padding == 0 || bits & (padding == 1 ? 0xFF : 0xFFFF) == 0 else { return nil }
            for index in 0..<3 - padding {
                bytes.append(UInt8(truncatingIfNeeded: bits >> (16 - 8 * UInt32(index))))
            }
        }
        return bytes
    }

    /// The six bits of a character; nil if Base64 has no such character.
    static func digit(_ character: UInt8) -> UInt32? {
        switch character {
        case 0x41...0x5A: UInt32(character - 0x41)
        case 0x61...0x7A: UInt32(character - 0x61 + 26)
        case 0x30...0x39: UInt32(character - 0x30 + 52)
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
