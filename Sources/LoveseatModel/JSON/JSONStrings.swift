/// Reads strings that the scanner has checked.
enum JSONStrings {
    /// The string that a tape word names.
    static func decode(_ word: UInt64, in bytes: UnsafeBufferPointer<UInt8>) -> String {
        let start = JSONTape.offset(word)
        let raw = UnsafeBufferPointer(rebasing: bytes[start..<start + JSONTape.length(word)])
        if JSONTape.kind(word) == .plainString { return String(decoding: raw, as: UTF8.self) }
        return String(decoding: unescape(raw), as: UTF8.self)
    }

    /// The UTF-8 bytes of escaped text.
    static func unescape(_ raw: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(raw.count)
        var index = 0
        while index < raw.count {
            let byte = raw[index]
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                index += 1
                continue
            }
            index += 2
            switch raw[index - 1] {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"):
                var scalar = UInt32(unit(raw, at: index))
                index += 4
                if (0xD800...0xDBFF).contains(scalar) {
                    scalar = 0x10000 + ((scalar - 0xD800) << 10) + (UInt32(unit(raw, at: index + 2)) - 0xDC00)
                    index += 6
                }
                if let scalar = Unicode.Scalar(scalar) {
                    result.append(contentsOf: UTF8.encode(scalar) ?? .init())
                }
            case let other: result.append(other)
            }
        }
        return result
    }

    private static func unit(_ raw: UnsafeBufferPointer<UInt8>, at index: Int) -> UInt16 {
        (index..<index + 4).reduce(0) { $0 << 4 | UInt16(hexadecimalDigit(raw[$1]) ?? 0) }
    }
}
