/// Base64 of large content (RFC 4648 §4).
package enum BulkBase64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// The value of each digit; 255 for other bytes.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, digit) in alphabet.enumerated() { values[Int(digit)] = UInt8(value) }
        return values
    }()

    /// Encodes bytes, with padding.
    package static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let count = (bytes.count + 2) / 3 * 4
        let input = Array(bytes)
        return [UInt8](unsafeUninitializedCapacity: count) { output, filled in
            alphabet.withUnsafeBufferPointer { alphabet in
                var (from, to) = (0, 0)
                while from < input.count {
                    let left = input.count - from
                    let second = left > 1 ? input[from + 1] : 0
                    let third = left > 2 ? input[from + 2] : 0
                    let bits = UInt32(input[from]) << 16 | UInt32(second) << 8 | UInt32(third)
                    output[to] = alphabet[Int(bits >> 18)]
                    output[to + 1] = alphabet[Int(bits >> 12 & 63)]
                    output[to + 2] = left > 1 ? alphabet[Int(bits >> 6 & 63)] : UInt8(ascii: "=")
                    output[to + 3] = left > 2 ? alphabet[Int(bits & 63)] : UInt8(ascii: "=")
                    from += 3
                    to += 4
                }
                filled = to
            }
        }
    }

    /// Decodes text, with or without padding; nil for anything else. White space is passed over.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        var decoder = Decoder()
        let input = Array(text)
        var bytes = input.withUnsafeBufferPointer { decoder.decode($0) }
        guard let last = decoder.finish() else { return nil }
        bytes += last
        return bytes
    }

    /// Decodes text that comes in pieces, with or without padding. White space is passed over.
    package struct Decoder {
        private var bits: UInt32 = 0
        private var digits = 0
        private var padding = 0
        /// Whether nothing but digits has come so far, and padding after them.
        package private(set) var isValid = true

        package init() {}

        /// Decodes the next piece, as far as its digits make whole groups with those before them.
        package mutating func decode(_ piece: UnsafeBufferPointer<UInt8>) -> [UInt8] {
            var (bits, digits, padding, isValid) = (bits, digits, padding, isValid)
            let bytes = [UInt8](unsafeUninitializedCapacity: piece.count / 4 * 3 + 3) { output, filled in
                filled = 0
                values.withUnsafeBufferPointer { values in
                    for byte in piece {
                        let value = values[Int(byte)]
                        if value == 255 {
                            if byte == UInt8(ascii: "=") {
                                padding += 1
                            } else if byte > 0x20 {
                                isValid = false
                            }
                            continue
                        }
                        if padding > 0 { isValid = false }
                        bits = bits << 6 | UInt32(value)
                        digits += 1
                        if digits == 4 {
                            output[filled] = UInt8(truncatingIfNeeded: bits >> 16)
                            output[filled + 1] = UInt8(truncatingIfNeeded: bits >> 8)
                            output[filled + 2] = UInt8(truncatingIfNeeded: bits)
                            filled += 3
                            (bits, digits) = (0, 0)
                        }
                    }
                }
            }
            (self.bits, self.digits, self.padding, self.isValid) = (bits, digits, padding, isValid)
            return bytes
        }

        /// The bytes of the last, incomplete group; nil if the text is not Base64.
        package mutating func finish() -> [UInt8]? {
            guard isValid, padding <= 2, digits != 1 else { return nil }
            return switch digits {
            case 2: [UInt8(truncatingIfNeeded: bits >> 4)]
            case 3: [UInt8(truncatingIfNeeded: bits >> 10), UInt8(truncatingIfNeeded: bits >> 2)]
            default: []
            }
        }
    }
}
