extension ArraySlice<UInt8> {
    /// Removes a varint from the front: seven bits a byte, lowest first, high bit means "more" (blip.md §3).
    package mutating func readVarInt() throws(BLIPError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: 0, through: 63, by: 7) {
            guard let byte = popFirst() else { throw .frame("a varint is cut off") }
            guard shift < 63 || byte < 2 else { throw .frame("a varint is longer than 64 bits") }
            value |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte < 0x80 { return value }
        }
        throw .frame("a varint is longer than 64 bits")
    }
}

extension [UInt8] {
    package mutating func appendVarInt(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }
}

extension UInt64 {
    /// The number of bytes of this value as a varint.
    var varIntSize: Int { Swift.max(1, (bitWidth - leadingZeroBitCount + 6) / 7) }
}

extension UnsafeMutableBufferPointer<UInt8> {
    /// Writes a varint, of at most ten bytes, and returns where it ends.
    func writeVarInt(_ value: UInt64, at start: Int) -> Int {
        var (rest, end) = (value, start)
        while rest >= 0x80 {
            self[end] = UInt8(truncatingIfNeeded: rest) | 0x80
            rest >>= 7
            end += 1
        }
        self[end] = UInt8(truncatingIfNeeded: rest)
        return end + 1
    }
}
