/// A value within JSON text that was validated and indexed. Reading decodes only the value that is asked for.
///
/// ```swift
/// let city = document.element["address"]?["city"]?.string
/// ```
///
/// An element is read-only, keeps the whole text in memory, and is safe to use from any thread. ``value`` makes a
/// ``JSONValue`` of it, for editing.
public struct JSONElement: Sendable {
    /// The text and its tape, shared by all elements of a document.
    private final class Source: Sendable {
        let bytes: [UInt8]
        let tape: [UInt64]

        init(bytes: [UInt8], tape: [UInt64]) {
            self.bytes = bytes
            self.tape = tape
        }
    }

    /// The kinds of JSON value.
    public enum Kind: Hashable, Sendable {
        case null, boolean, number, string, array, object
    }

    private let source: Source
    private let index: Int

    private init(source: Source, index: Int) {
        self.source = source
        self.index = index
    }

    /// Validates and indexes JSON text in UTF-8, in one pass.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the text is not JSON or exceeds a limit.
    public init(parsing bytes: [UInt8], limits: JSONLimits = .standard) throws(LoveseatError) {
        do throws(JSONError) { try self.init(scanning: bytes, limits: limits) } catch {
            throw LoveseatError(error)
        }
    }

    /// Validates and indexes JSON text in UTF-8, in one pass.
    package init(scanning bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
        var failure: JSONError?
        let tape = bytes.withUnsafeBufferPointer { buffer -> [UInt64] in
            do throws(JSONError) { return try JSONScanner.scan(buffer, limits: limits) } catch {
                failure = error
                return []
            }
        }
        if let failure { throw failure }
        self.init(source: Source(bytes: bytes, tape: tape), index: 0)
    }

    /// Validates and indexes text whose parts are checked one by one: a part that is nested too deeply does not affect the others.
    ///
    /// - Returns: also whether something is nested more deeply than the limits allow. It must not be decoded:
    ///   ``isNested(deeperThan:)``.
    package static func scanningParts(_ bytes: [UInt8], limits: JSONLimits) throws(JSONError) -> (
        JSONElement, isDeep: Bool
    ) {
        do throws(JSONError) { return (try JSONElement(scanning: bytes, limits: limits), false) } catch {
            guard error.reason == .tooDeep else { throw error }
            return (try JSONElement(scanning: bytes, limits: limits.withoutDepth), true)
        }
    }

    /// Indexes text that was validated before. ``JSONText`` guarantees that, so this does not throw.
    public init(_ text: JSONText) {
        // Checked text scans again under any limits at least as wide as those it was checked with.
        let limits = JSONLimits(maximumDepth: .max, maximumBytes: .max)
        // Text in a database is validated when it is read as a document. Elsewhere, damaged text becomes null.
        self = (try? JSONElement(scanning: text.bytes, limits: limits)) ?? .null
    }

    static let null = JSONElement(
        source: Source(bytes: [], tape: [JSONTape.word(.null, offset: 0, length: 0)]),
        index: 0
    )

    private var word: UInt64 { source.tape[index] }

    /// The kind of the value.
    public var kind: Kind {
        switch JSONTape.kind(word) {
        case .null: .null
        case .true, .false: .boolean
        case .integer, .decimal: .number
        case .plainString, .escapedString: .string
        case .array: .array
        case .object: .object
        }
    }

    /// The value's bytes in the text, brackets and quotes included.
    public var bytes: ArraySlice<UInt8> {
        let start = JSONTape.offset(word)
        return switch JSONTape.kind(word) {
        case .array, .object: source.bytes[start..<JSONTape.offset(source.tape[index + 1])]
        case .plainString, .escapedString: source.bytes[start - 1..<start + JSONTape.length(word) + 1]
        case .null, .true, .false, .integer, .decimal: source.bytes[start..<start + JSONTape.length(word)]
        }
    }

    /// The string, or nil if this is not a string.
    public var string: String? {
        guard kind == .string else { return nil }
        return source.bytes.withUnsafeBufferPointer { JSONStrings.decode(word, in: $0) }
    }

    /// The number without loss, or nil if this is not a number.
    public var number: JSONNumber? {
        guard kind == .number else { return nil }
        return JSONNumber(scanned: String(decoding: bytes, as: UTF8.self))
    }

    /// The number as an `Int`, or nil if this is not a number, has a fraction, or does not fit. The number 3.0 counts
    /// as 3.
    public var int: Int? {
        guard JSONTape.kind(word) == .integer else { return number?.exactly(Int.self) }
        var slice = bytes
        let negative = slice.first == UInt8(ascii: "-")
        if negative { slice.removeFirst() }
        guard slice.count <= 18 else { return number?.exactly(Int.self) }
        let magnitude = slice.reduce(0) { $0 * 10 + Int($1 &- 0x30) }
        return negative ? -magnitude : magnitude
    }

    /// The nearest double, or nil if this is not a number.
    public var double: Double? { number?.double }

    /// The boolean, or nil if this is not a boolean.
    public var bool: Bool? {
        switch JSONTape.kind(word) {
        case .true: true
        case .false: false
        default: nil
        }
    }

    /// Whether this is `null`.
    public var isNull: Bool { JSONTape.kind(word) == .null }

    /// The number of an array's items or an object's members; 0 for any other kind. A key that occurs twice counts
    /// twice.
    public var count: Int {
        switch kind {
        case .array, .object: Int(truncatingIfNeeded: source.tape[index + 1] >> 32)
        case .null, .boolean, .number, .string: 0
        }
    }

    /// How many values it consists of, with the keys of its objects. Arrays and objects count twice.
    package var extent: Int { JSONTape.span(word) }

    /// The value of a key, or nil if this is not an object or has no such key. Of a key that occurs twice, the last
    /// value counts. The search takes time in proportion to the number of members.
    public subscript(key: String) -> JSONElement? {
        guard kind == .object else { return nil }
        var key = key
        return key.withUTF8 { wanted in
            var found: JSONElement?
            var member = index + 2
            let end = index + JSONTape.length(word)
            source.bytes.withUnsafeBufferPointer { text in
                while member < end {
                    if Self.names(source.tape[member], wanted, in: text) {
                        found = JSONElement(source: source, index: member + 1)
                    }
                    member += 1 + JSONTape.span(source.tape[member + 1])
                }
            }
            return found
        }
    }

    /// The item at a position from 0, or nil if this is not an array or is shorter. The search takes time in proportion
    /// to the position; use ``items`` to read all.
    public subscript(position: Int) -> JSONElement? {
        guard kind == .array, position >= 0, position < count else { return nil }
        var item = index + 2
        for _ in 0..<position { item += JSONTape.span(source.tape[item]) }
        return JSONElement(source: source, index: item)
    }

    private static func names(
        _ word: UInt64,
        _ key: UnsafeBufferPointer<UInt8>,
        in text: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        if JSONTape.kind(word) == .plainString {
            guard JSONTape.length(word) == key.count else { return false }
            let start = JSONTape.offset(word)
            for offset in 0..<key.count where text[start + offset] != key[offset] { return false }
            return true
        }
        return JSONStrings.decode(word, in: text).utf8.elementsEqual(key)
    }

    /// Whether the value has more levels of arrays and objects, itself included. Does not recurse.
    package func isNested(deeperThan levels: Int) -> Bool {
        var ends: [Int] = []
        var position = index
        let end = index + JSONTape.span(word)
        while position < end {
            while let last = ends.last, position >= last { ends.removeLast() }
            let word = source.tape[position]
            switch JSONTape.kind(word) {
            case .array, .object:
                guard ends.count < levels else { return true }
                ends.append(position + JSONTape.length(word))
                position += 2
            default: position += 1
            }
        }
        return false
    }

    /// The items of an array, in order; empty for any other kind.
    public var items: Items { Items(walk: Walk(self, entering: .array)) }

    /// The members of an object, in the order of the text; empty for any other kind. A key that occurs twice is there
    /// twice.
    public var members: Members { Members(walk: Walk(self, entering: .object)) }

    /// The members of an object with keys that are not decoded yet.
    package var rawMembers: Walk { Walk(self, entering: .object) }

    /// Whether the key of any member begins with this byte.
    package func hasKey(beginningWith byte: UInt8) -> Bool {
        guard kind == .object else { return false }
        var member = index + 2
        let end = index + JSONTape.length(word)
        return source.bytes.withUnsafeBufferPointer { text in
            while member < end {
                let key = source.tape[member]
                if JSONTape.kind(key) == .plainString {
                    if JSONTape.length(key) > 0, text[JSONTape.offset(key)] == byte { return true }
                } else if JSONStrings.decode(key, in: text).utf8.first == byte {
                    return true
                }
                member += 1 + JSONTape.span(source.tape[member + 1])
            }
            return false
        }
    }

    /// A sequence of an array's items.
    public struct Items: Sequence, IteratorProtocol {
        fileprivate var walk: Walk

        /// Returns the next item, or nil after the last one.
        public mutating func next() -> JSONElement? { walk.next()?.value }
    }

    /// A sequence of an object's members, in the order of the text.
    public struct Members: Sequence, IteratorProtocol {
        fileprivate var walk: Walk

        /// Returns the next member, or nil after the last one.
        public mutating func next() -> (key: String, value: JSONElement)? {
            walk.next().map { ($0.key?.string ?? "", $0.value) }
        }
    }

    /// The members of an object, or the items of an array without keys.
    package struct Walk: Sequence, IteratorProtocol {
        private let source: Source
        private let hasKeys: Bool
        private var nextIndex: Int
        private let end: Int

        fileprivate init(_ element: JSONElement, entering kind: Kind) {
            source = element.source
            hasKeys = kind == .object
            let matches = element.kind == kind
            nextIndex = matches ? element.index + 2 : 0
            end = matches ? element.index + JSONTape.length(element.word) : 0
        }

        package mutating func next() -> (key: JSONElement?, value: JSONElement)? {
            guard nextIndex < end else { return nil }
            let key = hasKeys ? JSONElement(source: source, index: nextIndex) : nil
            let value = hasKeys ? nextIndex + 1 : nextIndex
            nextIndex = value + JSONTape.span(source.tape[value])
            return (key, JSONElement(source: source, index: value))
        }
    }

    /// The canonical form, and the first number that a double cannot hold.
    var canonicalBytes: (bytes: [UInt8], problem: JSONError?) { canonicalBytes(without: []) }

    /// The canonical form of an object without some of its own members, and the first number that a double cannot hold, or the first
    /// value that is nested more deeply than `levels`.
    func canonicalBytes(without names: [StaticString], levels: Int = .max) -> (
        bytes: [UInt8], problem: JSONError?
    ) {
        source.bytes.withUnsafeBufferPointer { text in
            source.tape.withUnsafeBufferPointer { tape in
                // An object without some of its members takes up the first level.
                let isWhole = names.isEmpty || kind != .object
                var writer = CanonicalTapeWriter(
                    text: text,
                    tape: tape,
                    reserving: bytes.count,
                    levels: isWhole ? levels : levels - 1
                )
                if isWhole { writer.write(index) } else { writer.writeObject(index, without: names) }
                return (writer.writer.bytes, writer.writer.problem)
            }
        }
    }

    /// The value with everything in it, decoded.
    public var value: JSONValue {
        switch kind {
        case .null: .null
        case .boolean: .bool(bool ?? false)
        case .number: .number(number ?? .integer(0))
        case .string: .string(string ?? "")
        case .array: .array(items.map(\.value))
        case .object: .object(object)
        }
    }

    private var object: JSONObject {
        var object = JSONObject(minimumCapacity: count)
        for (key, value) in members { object[key] = value.value }
        return object
    }
}
