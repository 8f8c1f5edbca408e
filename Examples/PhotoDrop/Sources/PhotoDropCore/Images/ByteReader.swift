/// Reads numbers from bytes of which none can be trusted.
struct ByteReader {
    private let bytes: [UInt8]
    /// Whether the most significant byte comes first.
    var isBigEndian: Bool

    init(_ bytes: some Sequence<UInt8>, isBigEndian: Bool = true) {
        self.bytes = Array(bytes)
        self.isBigEndian = isBigEndian
    }

    var count: Int { bytes.count }

    /// Returns an unsigned number of some bytes, or nil beyond the end.
    func number(at offset: Int, bytes width: Int) -> Int? {
        guard offset >= 0, width <= 4, offset <= bytes.count - width else { return nil }
        let part = bytes[offset..<offset + width]
        return isBigEndian
            ? part.reduce(0) { $0 << 8 | Int($1) } : part.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8>? {
        guard offset >= 0, count >= 0, offset <= bytes.count - count else { return nil }
        return bytes[offset..<offset + count]
    }

    func text(at offset: Int, count: Int) -> String? {
        bytes(at: offset, count: count).map { String(decoding: $0, as: UTF8.self) }
    }
}
