/// Types that an encoder or decoder treats in its own way, such as dates; the layer above supplies them.
package struct JSONCodingHooks: Sendable {
    /// The JSON for a value, or nil to let the value encode itself.
    package let encode: @Sendable (any Encodable) throws -> JSONValue?
    /// The value for JSON, or nil to let the type decode itself.
    package let decode: @Sendable (any Decodable.Type, JSONElement) throws -> (any Decodable)?

    package init(
        encode: @escaping @Sendable (any Encodable) throws -> JSONValue?,
        decode: @escaping @Sendable (any Decodable.Type, JSONElement) throws -> (any Decodable)?
    ) {
        self.encode = encode
        self.decode = decode
    }

    package static let none = JSONCodingHooks(encode: { _ in nil }, decode: { _, _ in nil })
}

extension JSONText {
    /// Encodes straight to canonical text, with no dictionary in between.
    ///
    /// - Throws: what the value throws, an `EncodingError`, or ``JSONError`` for what JSON cannot hold.
    package init(encoding value: some Encodable, hooks: JSONCodingHooks = .none) throws {
        let sink = EncodingSink(hooks: hooks)
        try sink.encode(value, codingPath: [])
        sink.closeAll()
        if let problem = sink.problem { throw problem }
        try self.init(validating: JSONElement(parsing: sink.bytes))
    }
}

/// The text being written, and the containers open in it.
private final class EncodingSink {
    private(set) var bytes: [UInt8] = []
    private(set) var problem: JSONError?
    private var open: [(id: Int, closing: UInt8, isEmpty: Bool)] = []
    private var nextID = 0
    let hooks: JSONCodingHooks

    init(hooks: JSONCodingHooks) { self.hooks = hooks }

    func openContainer(_ opening: Character, _ closing: Character) -> Int {
        nextID += 1
        bytes.append(opening.asciiValue ?? 0)
        open.append((nextID, closing.asciiValue ?? 0, true))
        return nextID
    }

    /// Makes a container the innermost one by closing those inside it, and begins its next member.
    func beginMember(of id: Int, codingPath: [any CodingKey]) throws {
        guard let depth = open.lastIndex(where: { $0.id == id }) else {
            throw EncodingError.invalidValue(
                id,
                .init(
                    codingPath: codingPath,
                    debugDescription: "a container was written to after its parent had moved on"
                )
            )
        }
        while open.count > depth + 1 { bytes.append(open.removeLast().closing) }
        if !open[depth].isEmpty { bytes.append(UInt8(ascii: ",")) }
        open[depth].isEmpty = false
    }

    func writeKey(_ key: String) {
        write(.string(key))
        bytes.append(UInt8(ascii: ":"))
    }

    func write(_ value: JSONValue) {
        var writer = CanonicalJSONWriter()
        writer.write(value)
        if problem == nil { problem = writer.problem }
        bytes.append(contentsOf: writer.bytes)
    }

    func closeAll() { while let last = open.popLast() { bytes.append(last.closing) } }

    func encode(_ value: some Encodable, codingPath: [any CodingKey]) throws {
        if let special = try hooks.encode(value) { return write(special) }
        if let value = value as? JSONValue { return write(value) }
        // Deeper values are refused in the end; until then they must not exhaust the stack.
        guard open.count <= JSONLimits.standard.maximumDepth else {
            throw JSONError(.tooDeep, at: bytes.count)
        }
        let start = bytes.count
        try value.encode(to: SinkEncoder(sink: self, codingPath: codingPath))
        // A type that writes nothing is an empty object, as with Foundation's encoder.
        if bytes.count == start { bytes.append(contentsOf: "{}".utf8) }
    }

    func number(_ value: Double, codingPath: [any CodingKey]) throws -> JSONValue {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value,
                .init(codingPath: codingPath, debugDescription: "JSON has no \(value)")
            )
        }
        return JSONValue(value)
    }
}

private final class SinkEncoder: Encoder {
    let sink: EncodingSink
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    private var container: Int?

    init(sink: EncodingSink, codingPath: [any CodingKey]) {
        self.sink = sink
        self.codingPath = codingPath
    }

    /// The container of this encoder; asking again, as subclasses do, gives the same one.
    private func opened(_ opening: Character, _ closing: Character) -> Int {
        if let container { return container }
        let id = sink.openContainer(opening, closing)
        container = id
        return id
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedSink(sink: sink, id: opened("{", "}"), codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedSink(sink: sink, id: opened("[", "]"), codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleSink(sink: sink, codingPath: codingPath)
    }
}

private struct SingleSink: SingleValueEncodingContainer {
    let sink: EncodingSink
    let codingPath: [any CodingKey]

    func encodeNil() { sink.write(.null) }
    func encode(_ value: Bool) { sink.write(.bool(value)) }
    func encode(_ value: String) { sink.write(.string(value)) }
    func encode(_ value: Double) throws { sink.write(try sink.number(value, codingPath: codingPath)) }
    func encode(_ value: Float) throws { try encode(Double(value.description) ?? Double(value)) }
    func encode<T: Encodable>(_ value: T) throws {
        if let integer = value as? any BinaryInteger { return sink.write(JSONValue(integer)) }
        try sink.encode(value, codingPath: codingPath)
    }
}

private struct KeyedSink<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let sink: EncodingSink
    let id: Int
    let codingPath: [any CodingKey]

    private func single(_ key: some CodingKey) throws -> SingleSink {
        try sink.beginMember(of: id, codingPath: codingPath)
        sink.writeKey(key.stringValue)
        return SingleSink(sink: sink, codingPath: codingPath + [key])
    }

    func encodeNil(forKey key: Key) throws { try single(key).encodeNil() }
    func encode(_ value: Bool, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: String, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: Double, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: Float, forKey key: Key) throws { try single(key).encode(value) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try single(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        nestedEncoder(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        nestedEncoder(key).unkeyedContainer()
    }
    func superEncoder() -> any Encoder { nestedEncoder(SuperKey()) }
    func superEncoder(forKey key: Key) -> any Encoder { nestedEncoder(key) }

    private func nestedEncoder(_ key: some CodingKey) -> SinkEncoder {
        // These calls cannot throw; a stale container throws at its next value instead.
        if (try? single(key)) == nil {
            return SinkEncoder(sink: EncodingSink(hooks: sink.hooks), codingPath: [])
        }
        return SinkEncoder(sink: sink, codingPath: codingPath + [key])
    }
}

private struct UnkeyedSink: UnkeyedEncodingContainer {
    let sink: EncodingSink
    let id: Int
    let codingPath: [any CodingKey]
    private(set) var count = 0

    init(sink: EncodingSink, id: Int, codingPath: [any CodingKey]) {
        self.sink = sink
        self.id = id
        self.codingPath = codingPath
    }

    private mutating func single() throws -> SingleSink {
        try sink.beginMember(of: id, codingPath: codingPath)
        count += 1
        return SingleSink(sink: sink, codingPath: codingPath)
    }

    mutating func encodeNil() throws { try single().encodeNil() }
    mutating func encode(_ value: Bool) throws { try single().encode(value) }
    mutating func encode(_ value: String) throws { try single().encode(value) }
    mutating func encode(_ value: Double) throws { try single().encode(value) }
    mutating func encode(_ value: Float) throws { try single().encode(value) }
    mutating func encode<T: Encodable>(_ value: T) throws { try single().encode(value) }
    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        nestedEncoder().container(keyedBy: type)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        nestedEncoder().unkeyedContainer()
    }
    mutating func superEncoder() -> any Encoder { nestedEncoder() }

    private mutating func nestedEncoder() -> SinkEncoder {
        if (try? single()) == nil {
            return SinkEncoder(sink: EncodingSink(hooks: sink.hooks), codingPath: [])
        }
        return SinkEncoder(sink: sink, codingPath: codingPath)
    }
}

/// The key under which a superclass is nested, as with Foundation's coders.
struct SuperKey: CodingKey {
    var stringValue: String { "super" }
    var intValue: Int? { nil }
    init() {}
    init?(stringValue: String) { nil }
    init?(intValue: Int) { nil }
}

extension JSONValue: Codable {
    /// Encodes the value with any encoder.
    ///
    /// - Throws: `EncodingError` for a number that JSON or a double cannot hold; errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(.integer(let value)): try container.encode(value)
        case .number(.unsigned(let value)): try container.encode(value)
        case .number(let number):
            guard number.isJSON else {
                throw EncodingError.invalidValue(
                    self,
                    .init(codingPath: encoder.codingPath, debugDescription: "JSON has no \(number.text)")
                )
            }
            try container.encode(number.double)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    /// Decodes the value with any decoder.
    ///
    /// - Throws: `DecodingError` for anything that is not a JSON value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .number(.integer(value))
        } else if let value = try? container.decode(UInt64.self) {
            self = .number(.unsigned(value))
        } else if let value = try? container.decode(Double.self) {
            self = .number(.double(value))
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode(JSONObject.self))
        }
    }
}
