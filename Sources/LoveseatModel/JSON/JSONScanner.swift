/// Checks that bytes are JSON (RFC 8259) and indexes them, in one pass.
///
/// It works eight bytes at a time inside strings, never recurses, and uses only its input, its tape and a stack that the depth limit
/// bounds.
struct JSONScanner {
    private let base: UnsafePointer<UInt8>
    private let end: Int
    private let limits: JSONLimits
    private let maximumDepth: Int
    private var position = 0
    private(set) var tape: [UInt64] = []
    /// Tape positions of the open containers, whose top bit says "object", and the numbers of their members.
    private var open: [(position: Int, count: Int)] = []

    private static let objectMark = 1 << 62

    /// The tape of a whole text.
    static func scan(_ bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits) throws(JSONError) -> [UInt64] {
        guard bytes.count <= limits.maximumBytes else { throw JSONError(.tooLarge, at: limits.maximumBytes) }
        guard let base = bytes.baseAddress else { throw JSONError(.truncated, at: 0) }
        var scanner = JSONScanner(base: base, end: bytes.count, limits: limits)
        try scanner.scanDocument()
        if limits.refusesDuplicateKeys { try scanner.refuseDuplicateKeys(bytes) }
        return scanner.tape
    }

    private init(base: UnsafePointer<UInt8>, end: Int, limits: JSONLimits) {
        self.base = base
        self.end = end
        self.limits = limits
        maximumDepth = limits.hasDepthLimit ? limits.maximumDepth : .max
        tape.reserveCapacity(end / 12 + 8)
    }

    private mutating func scanDocument() throws(JSONError) {
        skipSpace()
        try scanValue()
        while let container = open.last?.position {
            skipSpace()
            guard position < end else { throw JSONError(.truncated, at: end) }
            let isObject = container & Self.objectMark != 0
            switch base[position] {
            case UInt8(ascii: ","):
                position += 1
                skipSpace()
                if isObject { try scanKey() }
                open[open.count - 1].count += 1
                guard tape.count < limits.maximumValues else { throw JSONError(.tooLarge, at: position) }
                try scanValue()
            case UInt8(ascii: "]") where !isObject, UInt8(ascii: "}") where isObject:
                position += 1
                closeContainer(at: container & ~Self.objectMark)
            default:
                throw JSONError(.unexpectedByte, at: position)
            }
        }
        skipSpace()
        guard position == end else { throw JSONError(.trailingBytes, at: position) }
    }

    /// Scans one scalar, or opens containers down to their first scalar or empty container.
    @inline(__always)
    private mutating func scanValue() throws(JSONError) {
        while true {
            guard position < end else { throw JSONError(.truncated, at: end) }
            switch base[position] {
            case UInt8(ascii: "\""):
                try scanString()
                return
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                try scanNumber()
                return
            case UInt8(ascii: "{"):
                // An object without members is a whole value.
                guard try openContainer(.object, closing: UInt8(ascii: "}")) else { return }
                try scanKey()
            case UInt8(ascii: "["):
                // An array without items is a whole value, too.
                guard try openContainer(.array, closing: UInt8(ascii: "]")) else { return }
            case UInt8(ascii: "t"):
                try scanWord("true", .true)
                return
            case UInt8(ascii: "f"):
                try scanWord("false", .false)
                return
            case UInt8(ascii: "n"):
                try scanWord("null", .null)
                return
            default:
                throw JSONError(.unexpectedByte, at: position)
            }
        }
    }

    // MARK: Containers

    /// Returns whether the container has members.
    @inline(__always)
    private mutating func openContainer(_ kind: JSONTape.Kind, closing: UInt8) throws(JSONError) -> Bool {
        guard open.count < maximumDepth else { throw JSONError(.tooDeep, at: position) }
        guard tape.count < limits.maximumValues else { throw JSONError(.tooLarge, at: position) }
        let index = tape.count
        tape.append(JSONTape.word(kind, offset: position, length: 2))
        tape.append(0)
        position += 1
        skipSpace()
        if position < end, base[position] == closing {
            position += 1
            tape[index + 1] = UInt64(position)
            return false
        }
        open.append((kind == .object ? index | Self.objectMark : index, 1))
        return true
    }

    @inline(__always)
    private mutating func closeContainer(at index: Int) {
        let count = open.removeLast().count
        let first = tape[index]
        tape[index] = JSONTape.word(
            JSONTape.kind(first),
            offset: JSONTape.offset(first),
            length: tape.count - index
        )
        tape[index + 1] = UInt64(count) << 32 | UInt64(position)
    }

    @inline(__always)
    private mutating func scanKey() throws(JSONError) {
        guard position < end else { throw JSONError(.truncated, at: end) }
        guard base[position] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: position) }
        try scanString()
        skipSpace()
        guard position < end else { throw JSONError(.truncated, at: end) }
        guard base[position] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: position) }
        position += 1
        skipSpace()
    }

    @inline(__always)
    private mutating func skipSpace() {
        while position < end {
            let byte = base[position]
            // The next token begins here.
            guard byte <= 0x20, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            position += 1
        }
    }

    private mutating func scanWord(_ word: StaticString, _ kind: JSONTape.Kind) throws(JSONError) {
        let start = position
        for index in 0..<word.utf8CodeUnitCount {
            guard position < end else { throw JSONError(.truncated, at: end) }
            guard base[position] == word.utf8Start[index] else {
                throw JSONError(.unexpectedByte, at: position)
            }
            position += 1
        }
        tape.append(JSONTape.word(kind, offset: start, length: word.utf8CodeUnitCount))
    }

    // MARK: Numbers

    @inline(__always)
    private mutating func scanDigits() throws(JSONError) {
        let start = position
        while position < end, base[position] &- 0x30 <= 9 { position += 1 }
        guard position > start else {
            throw position < end ? JSONError(.invalidNumber, at: position) : JSONError(.truncated, at: end)
        }
    }

    private mutating func scanNumber() throws(JSONError) {
        let start = position
        var kind = JSONTape.Kind.integer
        if base[position] == UInt8(ascii: "-") { position += 1 }
        if position < end, base[position] == UInt8(ascii: "0") {
            position += 1
            if position < end, base[position] &- 0x30 <= 9 { throw JSONError(.invalidNumber, at: position) }
        } else {
            try scanDigits()
        }
        if position < end, base[position] == UInt8(ascii: ".") {
            kind = .decimal
            position += 1
            try scanDigits()
        }
        if position < end, base[position] | 0x20 == UInt8(ascii: "e") {
            kind = .decimal
            position += 1
            if position < end, base[position] == UInt8(ascii: "+") || base[position] == UInt8(ascii: "-") {
                position += 1
            }
            try scanDigits()
        }
        tape.append(JSONTape.word(kind, offset: start, length: position - start))
    }

    // MARK: Strings

    /// The high bit of each byte that ends the fast path; exact for the lowest such byte.
    @inline(__always)
    private static func specialBytes(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        let delete = word ^ (ones &* 0x7F)
        let equal =
            ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | ((delete &- ones) & ~delete)
        let control = (word &- (ones &* 0x20)) & ~word
        return (equal | control | word) & highs
    }

    @inline(__always)
    private mutating func scanString() throws(JSONError) {
        let start = position + 1
        var cursor = start
        var kind = JSONTape.Kind.plainString
        let raw = UnsafeRawPointer(base)
        while true {
            if cursor + 8 <= end {
                let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: cursor, as: UInt64.self))
                let special = Self.specialBytes(in: word)
                if special == 0 {
                    cursor += 8
                    continue
                }
                cursor += special.trailingZeroBitCount >> 3
            }
            guard cursor < end else { throw JSONError(.truncated, at: end) }
            let byte = base[cursor]
            if byte == UInt8(ascii: "\"") {
                tape.append(JSONTape.word(kind, offset: start, length: cursor - start))
                position = cursor + 1
                return
            } else if byte >= 0x80 {
                cursor = try checkMultibyte(at: cursor)
            } else if byte == UInt8(ascii: "\\") {
                kind = .escapedString
                cursor = try checkEscape(at: cursor)
            } else if byte < 0x20 {
                throw JSONError(.controlCharacter, at: cursor)
            } else {
                if byte == 0x7F { kind = .escapedString }
                cursor += 1
            }
        }
    }

    /// Returns the offset after a run of well-formed multi-byte sequences.
    private func checkMultibyte(at start: Int) throws(JSONError) -> Int {
        var cursor = start
        while cursor < end, base[cursor] >= 0x80 {
            let lead = base[cursor]
            let length: Int
            var low: UInt8 = 0x80
            var high: UInt8 = 0xBF
            switch lead {
            case 0xC2...0xDF: length = 2
            case 0xE0: (length, low) = (3, 0xA0)
            case 0xED: (length, high) = (3, 0x9F)
            case 0xE1...0xEF: length = 3
            case 0xF0: (length, low) = (4, 0x90)
            case 0xF4: (length, high) = (4, 0x8F)
            case 0xF1...0xF3: length = 4
            default: throw JSONError(.invalidUTF8, at: cursor)
            }
            for index in 1..<length {
                guard cursor + index < end else { throw JSONError(.truncated, at: end) }
                let byte = base[cursor + index]
                guard byte >= low, byte <= high else { throw JSONError(.invalidUTF8, at: cursor + index) }
                (low, high) = (0x80, 0xBF)
            }
            cursor += length
        }
        return cursor
    }

    /// Returns the offset after the escape whose backslash is at `start`.
    private func checkEscape(at start: Int) throws(JSONError) -> Int {
        guard start + 1 < end else { throw JSONError(.truncated, at: end) }
        switch base[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start + 2
        case UInt8(ascii: "u"):
            let unit = try hexUnit(at: start + 2)
            switch unit {
            case 0xDC00...0xDFFF:
                throw JSONError(.loneSurrogate, at: start)
            case 0xD800...0xDBFF:
                guard start + 7 < end else { throw JSONError(.truncated, at: end) }
                guard base[start + 6] == UInt8(ascii: "\\"), base[start + 7] == UInt8(ascii: "u") else {
                    throw JSONError(.loneSurrogate, at: start)
                }
                let second = try hexUnit(at: start + 8)
                guard (0xDC00...0xDFFF).contains(second) else { throw JSONError(.loneSurrogate, at: start) }
                return start + 12
            default:
                return start + 6
            }
        default:
            throw JSONError(.invalidEscape, at: start + 1)
        }
    }

    private func hexUnit(at start: Int) throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for index in start..<start + 4 {
            guard index < end else { throw JSONError(.truncated, at: end) }
            guard let digit = hexadecimalDigit(base[index]) else {
                throw JSONError(.invalidEscape, at: index)
            }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    // MARK: Duplicate keys

    private func refuseDuplicateKeys(_ bytes: UnsafeBufferPointer<UInt8>) throws(JSONError) {
        var index = 0
        while index < tape.count {
            let word = tape[index]
            guard JSONTape.kind(word) == .object else {
                index += JSONTape.kind(word) == .array ? 2 : 1
                continue
            }
            guard mayRepeatKeys(at: index, bytes) else {
                index += 2
                continue
            }
            // Keys are compared by their bytes: two Unicode forms of one letter are two keys.
            var keys: [(bytes: ArraySlice<UInt8>, offset: Int)] = []
            var member = index + 2
            while member < index + JSONTape.length(word) {
                keys.append((Self.content(tape[member], in: bytes), JSONTape.offset(tape[member]) - 1))
                member += 1 + JSONTape.span(tape[member + 1])
            }
            keys.sort { $0.bytes.lexicographicallyPrecedes($1.bytes) }
            for (key, next) in zip(keys, keys.dropFirst()) where key.bytes == next.bytes {
                throw JSONError(.duplicateKey, at: max(key.offset, next.offset))
            }
            index += 2
        }
    }

    /// Whether two keys of an object have the same hash; most objects need no other check.
    private func mayRepeatKeys(at object: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let end = object + JSONTape.length(tape[object])
        let count = Int(truncatingIfNeeded: tape[object + 1] >> 32)
        guard count > 1 else { return false }
        // Up to 128 keys take no memory of the heap.
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: count) { hashes in
            var member = object + 2
            var made = 0
            while member < end, made < count {
                let word = tape[member]
                guard JSONTape.kind(word) == .plainString else { return true }
                var hash: UInt64 = 0xCBF2_9CE4_8422_2325
                for offset in JSONTape.offset(word)..<JSONTape.offset(word) + JSONTape.length(word) {
                    hash = (hash ^ UInt64(bytes[offset])) &* 0x100_0000_01B3
                }
                hashes.initializeElement(at: made, to: hash)
                made += 1
                member += 1 + JSONTape.span(tape[member + 1])
            }
            // Of few keys, comparing all takes less time than sorting.
            var sorted = hashes
            if count > 32 { sorted.sort() }
            for index in 1..<made {
                for other in (count > 32 ? index - 1 : 0)..<index where sorted[index] == sorted[other] {
                    return true
                }
            }
            return false
        }
    }

    private static func content(_ word: UInt64, in bytes: UnsafeBufferPointer<UInt8>) -> ArraySlice<UInt8> {
        let start = JSONTape.offset(word)
        let raw = UnsafeBufferPointer(rebasing: bytes[start..<start + JSONTape.length(word)])
        return JSONTape.kind(word) == .plainString ? Array(raw)[...] : JSONStrings.unescape(raw)[...]
    }
}

/// The value of a hexadecimal digit in either case.
@inline(__always)
package func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
}
