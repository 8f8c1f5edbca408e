import LoveseatModel

/// Finds values in JSON text without making a tape or a tree: it skips everything before the value, and stops there.
///
/// The text comes from the database, where only checked JSON is stored. On anything else the walk ends early, and the
/// answer is that there is no such value; it never reads outside of the text.
package struct JSONWalker {
    private let base: UnsafePointer<UInt8>
    private let end: Int

    package init(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let address = bytes.baseAddress {
            base = address
            end = bytes.count
        } else {
            base = StaticString("").utf8Start
            end = 0
        }
    }

    package enum Kind: Sendable { case null, bool, number, string, array, object }

    /// The first byte of the value, or nil if the text is empty.
    package var start: Int? {
        let first = skipSpace(0)
        return first < end ? first : nil
    }

    @inline(__always)
    private func skipSpace(_ from: Int) -> Int {
        var position = from
        while position < end, base[position] <= 0x20 { position += 1 }
        return position
    }

    /// The kind of the value that begins here.
    package func kind(at position: Int) -> Kind? {
        guard position < end else { return nil }
        switch base[position] {
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
        default: return nil
        }
    }

    /// The byte behind a string, whose opening quote is at `start`.
    @inline(__always)
    private func endOfString(_ start: Int) -> Int {
        let raw = UnsafeRawPointer(base)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var position = start + 1
        while true {
            while position + 8 <= end {
                let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
                let quote = word ^ (ones &* 0x22)
                let backslash = word ^ (ones &* 0x5C)
                let special = (((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash)) & highs
                if special != 0 {
                    position += special.trailingZeroBitCount >> 3
                    break
                }
                position += 8
            }
            guard position < end else { return end }
            switch base[position] {
            case UInt8(ascii: "\""): return position + 1
            case UInt8(ascii: "\\"): position += 2
            default: position += 1
            }
        }
    }

    /// The byte behind the value that begins at `start`.
    package func skip(_ start: Int) -> Int {
        guard start < end else { return end }
        switch base[start] {
        case UInt8(ascii: "\""): return min(end, endOfString(start))
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            var depth = 0
            var position = start
            while position < end {
                switch base[position] {
                case UInt8(ascii: "\""):
                    position = endOfString(position)
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    depth -= 1
                    if depth == 0 { return position + 1 }
                default: break
                }
                position += 1
            }
            return end
        default:
            var position = start
            while position < end {
                switch base[position] {
                case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), 0x20, 0x0A, 0x0D, 0x09:
                    return max(position, start + 1)
                default: position += 1
                }
            }
            return end
        }
    }

    /// The value of a path, or nil if there is none.
    package func find(_ path: QueryPath, from root: Int? = nil) -> Int? {
        guard var position = root ?? start else { return nil }
        for step in path.steps {
            switch step {
            case .key(let key):
                guard let found = member(key, of: position) else { return nil }
                position = found
            case .index(let index):
                guard let found = item(index, of: position) else { return nil }
                position = found
            }
        }
        return position
    }

    /// The value of a key. Of a key that occurs twice, the first counts; stored bodies have each key once.
    @inline(__always)
    private func member(_ key: [UInt8], of object: Int) -> Int? {
        guard object < end, base[object] == UInt8(ascii: "{") else { return nil }
        return key.withUnsafeBufferPointer { key in
            var position = skipSpace(object + 1)
            while position < end, base[position] == UInt8(ascii: "\"") {
                let close = endOfString(position)
                var value = skipSpace(close)
                guard value < end, base[value] == UInt8(ascii: ":") else { return nil }
                value = skipSpace(value + 1)
                if names(position + 1, close - 1, key) { return value < end ? value : nil }
                position = skipSpace(skip(value))
                guard position < end, base[position] == UInt8(ascii: ",") else { return nil }
                position = skipSpace(position + 1)
            }
            return nil
        }
    }

    @inline(__always)
    private func names(_ from: Int, _ to: Int, _ key: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = to - from
        if count == key.count {
            var index = 0
            while index < count {
                if base[from + index] != key[index] { break }
                index += 1
            }
            if index == count { return !hasEscape(from, to) || count == 0 }
        }
        guard count > key.count, hasEscape(from, to) else { return false }
        return string(from - 1, to + 1).utf8.elementsEqual(key)
    }

    private func hasEscape(_ from: Int, _ to: Int) -> Bool {
        var position = from
        while position < to {
            if base[position] == UInt8(ascii: "\\") { return true }
            position += 1
        }
        return false
    }

    private func item(_ index: Int, of array: Int) -> Int? {
        guard array < end, base[array] == UInt8(ascii: "[") else { return nil }
        var wanted = index
        if wanted < 0 {
            wanted += count(of: array)
            guard wanted >= 0 else { return nil }
        }
        var items = children(of: array)
        var position = 0
        while let item = items.next() {
            if position == wanted { return item.value }
            position += 1
        }
        return nil
    }

    /// The number of an array's items or an object's members; 0 for anything else.
    package func count(of container: Int) -> Int {
        var children = children(of: container)
        var count = 0
        while children.next() != nil { count += 1 }
        return count
    }

    /// The items of an array, or the members of an object; nothing for anything else.
    package func children(of container: Int) -> Children { Children(walker: self, container: container) }

    /// The positions at which the values of a container begin, one by one.
    package struct Children {
        private let walker: JSONWalker
        private var position: Int
        private let isObject: Bool

        fileprivate init(walker: JSONWalker, container: Int) {
            self.walker = walker
            let kind = walker.kind(at: container)
            isObject = kind == .object
            position = kind == .object || kind == .array ? walker.skipSpace(container + 1) : walker.end
        }

        package mutating func next() -> (key: Int?, value: Int)? {
            guard position < walker.end else { return nil }
            var key: Int?
            if isObject {
                guard walker.base[position] == UInt8(ascii: "\"") else { return nil }
                key = position
                position = walker.skipSpace(walker.endOfString(position))
                guard position < walker.end, walker.base[position] == UInt8(ascii: ":") else { return nil }
                position = walker.skipSpace(position + 1)
            }
            guard walker.kind(at: position) != nil else { return nil }
            let value = position
            position = walker.skipSpace(walker.skip(value))
            if position < walker.end, walker.base[position] == UInt8(ascii: ",") {
                position = walker.skipSpace(position + 1)
            } else {
                position = walker.end
            }
            return (key, value)
        }
    }

    // MARK: Values

    /// The text of the value that begins here.
    package func text(at position: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + position, count: max(0, skip(position) - position))
    }

    /// The content of the string whose opening quote is here, if nothing in it is escaped.
    package func plainString(at position: Int) -> UnsafeBufferPointer<UInt8>? {
        let close = endOfString(position)
        guard close <= end, close >= position + 2, !hasEscape(position + 1, close - 1) else { return nil }
        return UnsafeBufferPointer(start: base + position + 1, count: close - position - 2)
    }

    /// The string whose opening quote is here.
    package func string(at position: Int) -> String { string(position, min(end, endOfString(position))) }

    private func string(_ from: Int, _ to: Int) -> String {
        let content = UnsafeBufferPointer(start: base + from + 1, count: max(0, to - from - 2))
        guard content.contains(UInt8(ascii: "\\")) else { return String(decoding: content, as: UTF8.self) }
        let quoted = Array(UnsafeBufferPointer(start: base + from, count: to - from))
        // A string that is not JSON, which only a damaged file has, is taken as it is.
        return (try? JSONElement(parsing: quoted))?.string ?? String(decoding: content, as: UTF8.self)
    }

    /// The number that begins here.
    package func number(at position: Int) -> QueryValue {
        let stop = skip(position)
        var cursor = position
        let isNegative = base[cursor] == UInt8(ascii: "-")
        if isNegative { cursor += 1 }
        var digits: UInt64 = 0
        var count = 0
        while cursor < stop, base[cursor] &- 0x30 <= 9 {
            digits = digits &* 10 &+ UInt64(base[cursor] &- 0x30)
            count += 1
            cursor += 1
        }
        if cursor == stop {
            if count <= 18, digits > 0 || !isNegative {
                return .integer(isNegative ? -Int64(digits) : Int64(digits))
            }
            return slowNumber(position, stop, isInteger: true)
        }
        guard base[cursor] == UInt8(ascii: "."), count <= 15 else {
            return slowNumber(position, stop, isInteger: false)
        }
        cursor += 1
        var fraction = 0
        while cursor < stop, base[cursor] &- 0x30 <= 9, count < 16 {
            digits = digits &* 10 &+ UInt64(base[cursor] &- 0x30)
            count += 1
            fraction += 1
            cursor += 1
        }
        // Up to 15 digits and a power of ten that a double holds exactly give the nearest double.
        guard cursor == stop, count <= 15 else { return slowNumber(position, stop, isInteger: false) }
        let value = Double(digits) / Self.powers[fraction]
        return .double(isNegative ? -value : value)
    }

    private static let powers: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    ]

    private func slowNumber(_ start: Int, _ stop: Int, isInteger: Bool) -> QueryValue {
        let text = String(
            decoding: UnsafeBufferPointer(start: base + start, count: stop - start),
            as: UTF8.self
        )
        if isInteger, text != "-0" {
            if let value = Int64(text) { return .integer(value) }
            if let value = UInt64(text) { return .unsigned(value) }
        }
        return .double(Double(text) ?? 0)
    }

    /// The value that begins here; MISSING if there is none.
    package func value(at position: Int?) -> QueryValue {
        guard let position, let kind = kind(at: position) else { return .missing }
        switch kind {
        case .null: return .null
        case .bool: return .bool(base[position] == UInt8(ascii: "t"))
        case .number: return number(at: position)
        case .string: return .string(string(at: position))
        case .array: return .array(Array(text(at: position)))
        case .object: return .object(Array(text(at: position)))
        }
    }

    package func isTrue(at position: Int) -> Bool { base[position] == UInt8(ascii: "t") }
}
