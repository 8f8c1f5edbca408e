/// Writes PNG files of 8-bit colours, without compression (PNG §5, §10; RFC 1950, RFC 1951 §3.2.4).
package enum PNGWriter {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let maximumStored = 65_535

    /// `rows`: three bytes for each pixel.
    static func file(width: Int, height: Int, rows: [[UInt8]]) -> [UInt8] {
        // 8 bits, red, green and blue.
        let header = bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, 2, 0, 0, 0]
        // Each row begins with its filter: none.
        let pixels: [UInt8] = rows.flatMap { [UInt8(0)] + $0 }
        return signature + chunk("IHDR", header) + chunk("IDAT", zlib(pixels)) + chunk("IEND", [])
    }

    package static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let checked = Array(name.utf8) + content
        return bigEndian(UInt32(content.count)) + checked + bigEndian(crc32(checked))
    }

    /// A zlib stream of stored blocks.
    package static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: bytes.count, by: maximumStored) {
            let block = bytes[start..<min(start + maximumStored, bytes.count)]
            let length = UInt16(block.count)
            stream.append(block.endIndex == bytes.count ? 1 : 0)
            for number in [length, ~length] { stream += [UInt8(number & 0xFF), UInt8(number >> 8)] }
            stream += block
        }
        return stream + bigEndian(adler32(bytes))
    }

    static func bigEndian(_ number: UInt32) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
    }

    private static let crcTable = (0..<UInt32(256)).map { byte in
        (0..<8).reduce(byte) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }

    package static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in sum >> 8 ^ crcTable[Int((sum ^ UInt32(byte)) & 0xFF)] }
    }

    package static func adler32(_ bytes: [UInt8]) -> UInt32 {
        var (first, second): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            first = (first + UInt32(byte)) % 65_521
            second = (second + first) % 65_521
        }
        return second << 16 | first
    }
}
