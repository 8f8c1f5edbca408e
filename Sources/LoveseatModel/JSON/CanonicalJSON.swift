import LoveseatAssertions

/// Writes the one byte form from which revision digests are computed.
///
/// No white space; keys sorted by their UTF-8 bytes; only quote, backslash, control characters and U+007F escaped;
/// integers in decimal; doubles in their shortest form that reads back the same.
struct CanonicalJSONWriter {
    private(set) var bytes: [UInt8] = []
    /// The first value that JSON cannot hold, or that is nested too deeply. `null` is written in its place.
    private(set) var problem: JSONError?
    private var depth = 0
    private let maximumDepth: Int

    init(reserving count: Int = 0, maximumDepth: Int = JSONLimits.deepest) {
        self.maximumDepth = maximumDepth
        bytes.reserveCapacity(count)
    }

    mutating func refuse(_ reason: JSONError.Reason) {
        if problem == nil { problem = JSONError(reason, at: bytes.count) }
        bytes.append(contentsOf: "null".utf8)
    }

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let number): write(number)
        case .string(let string): writeString(string.utf8)
        case .array, .object:
            guard depth < maximumDepth else { return refuse(.tooDeep) }
            depth += 1
            writeContainer(value)
            depth -= 1
        }
    }

    private mutating func writeContainer(_ value: JSONValue) {
        switch value {
        case .array(let items):
            bytes.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                write(item)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.sortedByBytes.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                writeString(member.key.utf8)
                bytes.append(UInt8(ascii: ":"))
                write(member.value)
            }
            bytes.append(UInt8(ascii: "}"))
        case .null, .bool, .number, .string: impossible("a scalar is written as a container")
        }
    }

    /// Writes a number that came from the app or from text, which JSON or a double may not be able to hold.
    private mutating func write(_ number: JSONNumber) {
        if case .integer(let value) = number {
            bytes.append(contentsOf: value.description.utf8)
            return
        }
        guard number.isWellFormed else {
            if case .double = number { return refuse(.numberTooLarge) }
            return refuse(.invalidNumber)
        }
        // A number that a peer sent keeps its text.
        if problem == nil, !number.double.isFinite { problem = JSONError(.numberTooLarge, at: bytes.count) }
        bytes.append(contentsOf: number.canonicalText.utf8)
    }

    mutating func append(_ text: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: text) }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    /// Appends a part of another writer's text, and takes over its problem.
    mutating func append(_ other: CanonicalJSONWriter, _ range: Range<Int>) {
        bytes.append(contentsOf: other.bytes[range])
        if problem == nil { problem = other.problem }
    }

    mutating func write(key: String) {
        writeString(key.utf8)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Writes a number from validated text.
    mutating func write(number text: UnsafeBufferPointer<UInt8>) {
        if JSONNumber.isShortestDecimal(text) { return append(text) }
        let number = JSONNumber(scanned: String(decoding: text, as: UTF8.self))
        if problem == nil, !number.double.isFinite { problem = JSONError(.numberTooLarge, at: bytes.count) }
        bytes.append(contentsOf: number.text.utf8)
    }

    mutating func writeString(_ content: some Sequence<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        let isPlain: Void? =
            content.withContiguousStorageIfAvailable { content -> Void? in
                guard !content.contains(where: { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C || $0 == 0x7F }) else {
                    return nil
                }
                bytes.append(contentsOf: content)
                return ()
            } ?? nil
        if isPlain == nil { writeEscaped(content) }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func writeEscaped(_ content: some Sequence<UInt8>) {
        for byte in content {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0x00..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(hexadecimal[Int(byte >> 4)])
                bytes.append(hexadecimal[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
    }
}

extension JSONText {
    /// Creates the canonical text of a value: without white space, with keys sorted by their bytes.
    ///
    /// Numbers that JSON cannot hold, and arrays and objects nested more than 512 deep, become `null`.
    public init(canonical value: JSONValue) {
        var writer = CanonicalJSONWriter()
        writer.write(value)
        self.init(trusted: writer.bytes)
    }

    /// The canonical text of a value that an app made.
    ///
    /// - Throws: ``JSONError`` for a number that JSON or a double cannot hold, and for nesting beyond the standard limit.
    package init(validating value: JSONValue) throws(JSONError) {
        var writer = CanonicalJSONWriter(maximumDepth: JSONLimits.standard.maximumDepth)
        writer.write(value)
        if let problem = writer.problem { throw problem }
        self.init(trusted: writer.bytes)
    }

    /// The canonical text of an element; throws as ``init(validating:)-(JSONValue)`` does.
    ///
    /// `names`: the object's own members that are left out. `levels`: how deep it may be nested.
    package init(
        validating element: JSONElement,
        without names: [StaticString] = [],
        levels: Int = JSONLimits.standard.maximumDepth
    ) throws(JSONError) {
        let (bytes, problem) = element.canonicalBytes(without: names, levels: levels)
        if let problem { throw problem }
        self.init(trusted: bytes)
    }

    /// The canonical text of an element without some of its own members, whatever numbers it has.
    package init(canonical element: JSONElement, without names: [StaticString]) {
        self.init(trusted: element.canonicalBytes(without: names).bytes)
    }

    /// Creates the canonical text of an element: without white space, with keys sorted by their bytes. Of a key that
    /// occurs twice, the last value counts.
    public init(canonical element: JSONElement) { self.init(trusted: element.canonicalBytes.bytes) }

    /// The same value in canonical form: without white space, with keys sorted by their bytes.
    public var canonical: JSONText { JSONText(canonical: JSONElement(self)) }
}
