/// Writes the canonical form of indexed text straight from its tape. Parts that are canonical already are copied.
struct CanonicalTapeWriter {
    private let text: UnsafeBufferPointer<UInt8>
    private let tape: UnsafeBufferPointer<UInt64>
    private(set) var writer: CanonicalJSONWriter
    /// How many arrays and objects may still be opened.
    private var levels: Int

    init(
        text: UnsafeBufferPointer<UInt8>,
        tape: UnsafeBufferPointer<UInt64>,
        reserving count: Int,
        levels: Int
    ) {
        self.text = text
        self.tape = tape
        self.levels = levels
        writer = CanonicalJSONWriter(reserving: count)
    }

    /// Writes the value at a position of the tape.
    mutating func write(_ index: Int) {
        let word = tape[index]
        switch JSONTape.kind(word) {
        case .null, .true, .false: writer.append(raw(word))
        case .integer where isCanonicalInteger(word): writer.append(raw(word))
        case .integer, .decimal: writer.write(number: raw(word))
        case .plainString: writer.append(quoted(word))
        case .escapedString: writer.writeString(JSONStrings.unescape(raw(word)))
        case .array, .object:
            guard levels > 0 else { return writer.refuse(.tooDeep) }
            levels -= 1
            if JSONTape.kind(word) == .array { writeArray(index) } else { writeObject(index) }
            levels += 1
        }
    }

    private func raw(_ word: UInt64) -> UnsafeBufferPointer<UInt8> {
        let start = JSONTape.offset(word)
        return UnsafeBufferPointer(rebasing: text[start..<start + JSONTape.length(word)])
    }

    private func quoted(_ word: UInt64) -> UnsafeBufferPointer<UInt8> {
        let start = JSONTape.offset(word)
        return UnsafeBufferPointer(rebasing: text[start - 1..<start + JSONTape.length(word) + 1])
    }

    /// Whether the text of an integer is its canonical form. The text of -0 is not, and one with more than 308 digits may be beyond the
    /// range of a double.
    private func isCanonicalInteger(_ word: UInt64) -> Bool {
        let length = JSONTape.length(word)
        return length <= 308 && (length != 2 || !raw(word).elementsEqual("-0".utf8))
    }

    private mutating func writeArray(_ index: Int) {
        let end = index + JSONTape.length(tape[index])
        var item = index + 2
        writer.append(UInt8(ascii: "["))
        while item < end {
            if item > index + 2 { writer.append(UInt8(ascii: ",")) }
            write(item)
            item += JSONTape.span(tape[item])
        }
        writer.append(UInt8(ascii: "]"))
    }

    private mutating func writeObject(_ index: Int) {
        let end = index + JSONTape.length(tape[index])
        guard isInOrder(from: index + 2, to: end) else { return writeSorted(from: index + 2, to: end) }
        var member = index + 2
        writer.append(UInt8(ascii: "{"))
        while member < end {
            if member > index + 2 { writer.append(UInt8(ascii: ",")) }
            writer.append(quoted(tape[member]))
            writer.append(UInt8(ascii: ":"))
            write(member + 1)
            member += 1 + JSONTape.span(tape[member + 1])
        }
        writer.append(UInt8(ascii: "}"))
    }

    /// Writes the object at a position of the tape without some of its members.
    mutating func writeObject(_ index: Int, without names: [StaticString]) {
        let end = index + JSONTape.length(tape[index])
        guard isInOrder(from: index + 2, to: end, without: names) else {
            return writeSorted(from: index + 2, to: end, without: names)
        }
        var member = index + 2
        var isFirst = true
        writer.append(UInt8(ascii: "{"))
        while member < end {
            if !isNamed(raw(tape[member]), names) {
                if !isFirst { writer.append(UInt8(ascii: ",")) }
                isFirst = false
                writer.append(quoted(tape[member]))
                writer.append(UInt8(ascii: ":"))
                write(member + 1)
            }
            member += 1 + JSONTape.span(tape[member + 1])
        }
        writer.append(UInt8(ascii: "}"))
    }

    private func isNamed(_ key: UnsafeBufferPointer<UInt8>, _ names: [StaticString]) -> Bool {
        names.contains { name in
            key.count == name.utf8CodeUnitCount
                && key.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: key.count))
        }
    }

    /// Whether the keys ascend and have no escapes.
    private func isInOrder(from start: Int, to end: Int, without names: [StaticString] = []) -> Bool {
        var member = start
        var last: UnsafeBufferPointer<UInt8>?
        while member < end {
            let word = tape[member]
            guard JSONTape.kind(word) == .plainString else { return false }
            let key = raw(word)
            if names.isEmpty || !isNamed(key, names) {
                if let last, !last.precedes(key) { return false }
                last = key
            }
            member += 1 + JSONTape.span(tape[member + 1])
        }
        return true
    }

    private mutating func writeSorted(from start: Int, to end: Int, without names: [StaticString] = []) {
        var members: [(key: [UInt8], value: Int)] = []
        var member = start
        while member < end {
            let word = tape[member]
            let isPlain = JSONTape.kind(word) == .plainString
            members.append((isPlain ? Array(raw(word)) : JSONStrings.unescape(raw(word)), member + 1))
            member += 1 + JSONTape.span(tape[member + 1])
        }
        if !names.isEmpty {
            members.removeAll { member in member.key.withUnsafeBufferPointer { isNamed($0, names) } }
        }
        // The sort is stable, so of equal keys the last in the text stays last, and is the one kept.
        members.sort { left, right in
            left.key.withUnsafeBufferPointer { left in right.key.withUnsafeBufferPointer { left.precedes($0) }
            }
        }
        writer.append(UInt8(ascii: "{"))
        var isFirst = true
        for (index, member) in members.enumerated()
        where index + 1 == members.count || members[index + 1].key != member.key {
            if !isFirst { writer.append(UInt8(ascii: ",")) }
            isFirst = false
            writer.writeString(member.key)
            writer.append(UInt8(ascii: ":"))
            write(member.value)
        }
        writer.append(UInt8(ascii: "}"))
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// The order of keys.
    fileprivate func precedes(_ other: Self) -> Bool {
        for index in 0..<Swift.min(count, other.count) where self[index] != other[index] {
            return self[index] < other[index]
        }
        return count < other.count
    }
}
