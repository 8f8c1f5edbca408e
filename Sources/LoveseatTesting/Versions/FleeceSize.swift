import LoveseatModel

/// The length of a document's properties in Couchbase Lite's own encoding, which its announcements and proposals name.
struct FleeceSize {
    private var size = 0
    /// Short strings are written once.
    private var strings: Set<String> = []
    private var hasBlob = false

    /// Returns the length of an encoded document.
    static func of(_ body: JSONObject) -> Int {
        var writer = FleeceSize()
        writer.write(.object(body))
        // The root's pointer. A document with blobs was always 12 bytes longer than its parts, whatever their number.
        return writer.size + 2 + (writer.hasBlob ? 12 : 0)
    }

    /// Writes a value outside of its slot, unless its two bytes hold it.
    private mutating func write(_ value: JSONValue) {
        switch value {
        case .null, .bool: break
        case .string(let text): write(text)
        case .number(let number): size += Self.length(number)
        case .array(let items):
            if items.isEmpty { return }
            for item in items { write(item) }
            size += 2 + 2 * items.count
        case .object(let members):
            if members.isEmpty { return }
            if members["@type"]?.string == "blob" { hasBlob = true }
            for (key, value) in members {
                if !Self.isShared(key) { write(key) }
                write(value)
            }
            size += 2 + 4 * members.count
        }
    }

    private mutating func write(_ text: String) {
        let length = text.utf8.count
        if length <= 1 { return }
        if length <= 15, !strings.insert(text).inserted { return }
        let header = length < 15 ? 1 : length < 0x80 ? 2 : length < 0x4000 ? 3 : 4
        size += (header + length + 1) & ~1
    }

    private static func length(_ number: JSONNumber) -> Int {
        guard let integer = JSONValue.number(number).int else { return 10 }
        if (-2048..<2048).contains(integer) { return 0 }
        let bits = Int.bitWidth - (integer < 0 ? ~integer : integer).leadingZeroBitCount + 1
        return (1 + (bits + 7) / 8 + 1) & ~1
    }

    /// Whether a key is kept in the database's table of keys.
    private static func isShared(_ key: String) -> Bool {
        key.utf8.count <= 16
            && key.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            }
    }
}
