/// The IDs of a subscription to chosen documents, of which a peer may send a million: their bytes in one array, and a hash table.
package struct ListedIDs: Hashable, Sendable {
    /// Each ID with its length in front, in two bytes.
    private var bytes: [UInt8] = []
    /// The position of an ID plus one, in the slot of its hash or a later one; 0 for an empty slot.
    private var table: [UInt32] = []
    private var count = 0

    /// `count`, `size`: the approximate number of IDs, and of their bytes with the lengths. With these, the memory for a million IDs is
    /// reserved once, and not taken twice while the arrays grow.
    package init(_ ids: some Sequence<String>, count: Int = 0, size: Int = 0) {
        bytes.reserveCapacity(size)
        if count > 0 { makeTable(for: count) }
        for id in ids { insert(id) }
    }

    private static func hash(_ id: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: id)
        return hasher.finalize()
    }

    /// The slot of an ID: its own, or the empty one where it belongs.
    private func slot(of id: UnsafeRawBufferPointer) -> Int {
        let mask = table.count - 1
        var slot = Self.hash(id) & mask
        while table[slot] != 0, !isID(id, at: Int(table[slot]) - 1) { slot = (slot + 1) & mask }
        return slot
    }

    private func isID(_ id: UnsafeRawBufferPointer, at place: Int) -> Bool {
        guard length(at: place) == id.count else { return false }
        return bytes.withUnsafeBytes { bytes in bytes[(place + 2)...].prefix(id.count).elementsEqual(id) }
    }

    private func length(at place: Int) -> Int { Int(bytes[place]) | Int(bytes[place + 1]) << 8 }

    /// Adds an ID. One that no document can have is left out.
    private mutating func insert(_ id: String) {
        var id = id
        id.withUTF8 { text in
            let id = UnsafeRawBufferPointer(text)
            // No document has an ID so long, and no message brings so many.
            if id.count > 0xFFFF || bytes.count + id.count + 2 >= UInt32.max { return }
            if (count + 1) * 4 > table.count * 3 { grow() }
            let slot = slot(of: id)
            if table[slot] != 0 { return }
            table[slot] = UInt32(bytes.count + 1)
            bytes.append(UInt8(truncatingIfNeeded: id.count))
            bytes.append(UInt8(truncatingIfNeeded: id.count >> 8))
            bytes.append(contentsOf: id)
            count += 1
        }
    }

    /// Makes an empty table, of which so many IDs fill three quarters at most.
    private mutating func makeTable(for ids: Int) {
        var size = max(16, table.count)
        while ids * 4 > size * 3 { size *= 2 }
        table = []
        table = Array(repeating: 0, count: size)
    }

    private mutating func grow() {
        makeTable(for: count + 1)
        var place = 0
        while place < bytes.count {
            let length = length(at: place)
            let found = bytes.withUnsafeBytes { bytes in
                slot(of: UnsafeRawBufferPointer(rebasing: bytes[(place + 2)..<(place + 2 + length)]))
            }
            table[found] = UInt32(place + 1)
            place += 2 + length
        }
    }

    package func contains(_ id: String) -> Bool {
        guard count > 0 else { return false }
        var id = id
        return id.withUTF8 { table[slot(of: UnsafeRawBufferPointer($0))] != 0 }
    }

    /// The IDs as they were listed, without repetitions.
    package var ids: [String] {
        var ids: [String] = []
        ids.reserveCapacity(count)
        var place = 0
        while place < bytes.count {
            let end = place + 2 + length(at: place)
            ids.append(String(decoding: bytes[(place + 2)..<end], as: UTF8.self))
            place = end
        }
        return ids
    }
}
