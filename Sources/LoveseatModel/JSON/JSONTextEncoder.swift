/// Types that an encoder or decoder treats in its own way, such as dates; the layer above supplies them.
package struct JSONCodingHooks: Sendable {
    /// The JSON for a value, or nil to let the value encode itself.
    package let encode: @Sendable (any Encodable) throws -> JSONValue?
    /// The value for JSON, or nil to let the type decode itself.
    package let decode: @Sendable (any Decodable.Type, JSONElement) throws -> (any Decodable)?
    /// Whether an optional property that is nil is written as null, rather than left out.
    package var writesNull = false

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
    /// - Throws: the error that the value throws, an `EncodingError`, or ``JSONError`` for a value that JSON cannot hold.
    package init(encoding value: some Encodable, hooks: JSONCodingHooks = .none) throws {
        let stream = TextStream(hooks: hooks)
        try stream.encode(value, in: nil, outerPath: [], index: nil)
        stream.close()
        if let problem = stream.writer.problem { throw problem }
        try self.init(validating: JSONElement(scanning: stream.writer.bytes))
    }
}

/// Text that is being written. Each nested container has another stream, because a type may write to several containers in turn.
private final class TextStream {
    var writer = CanonicalJSONWriter()
    /// Encoders whose text belongs into this text, in the order of their positions.
    private var nested: [(position: Int, encoder: TextEncoder)] = []
    let hooks: JSONCodingHooks

    init(hooks: JSONCodingHooks) { self.hooks = hooks }

    func insert(_ encoder: TextEncoder) { nested.append((writer.bytes.count, encoder)) }

    func encode(_ value: some Encodable, in outer: TextEncoder?, outerPath: [any CodingKey], index: Int?)
        throws
    {
        if let special = try hooks.encode(value) { return writer.write(special) }
        if let value = value as? JSONValue { return writer.write(value) }
        let depth = (outer?.depth ?? 0) + (outer?.kind == nil ? 0 : 1)
        // Deeper values are refused in the end; until then they must not exhaust the stack.
        guard depth <= JSONLimits.standard.maximumDepth else {
            throw JSONError(.tooDeep, at: writer.bytes.count)
        }
        let encoder = TextEncoder(self, outerPath: outerPath, index: index, depth: depth)
        if let elements = (value as? any UnorderedElements)?.unorderedElements {
            try encoder.encode(unordered: elements)
        } else {
            try value.encode(to: encoder)
        }
        encoder.close()
    }

    /// Puts the text of nested encoders in its place.
    func close() {
        if nested.isEmpty { return }
        var whole = CanonicalJSONWriter()
        var start = 0
        for (position, encoder) in nested {
            encoder.close()
            encoder.stream.close()
            whole.append(writer, start..<position)
            whole.append(encoder.stream.writer, encoder.stream.writer.bytes.indices)
            start = position
        }
        whole.append(writer, start..<writer.bytes.count)
        nested = []
        writer = whole
    }
}

private final class TextEncoder: Encoder {
    enum Kind { case object, array }

    let stream: TextStream
    let depth: Int
    /// The path of the value that contains this one, and the position in it if that is an array.
    private let outerPath: [any CodingKey]
    private let index: Int?
    /// The kind of container that this encoder has opened; nil for none.
    private(set) var kind: Kind?
    private(set) var count = 0
    private let start: Int
    private var isClosed = false
    /// The nested containers by their keys. One that is requested again continues.
    private var named: [ExactText: TextEncoder] = [:]

    init(_ stream: TextStream, outerPath: [any CodingKey], index: Int?, depth: Int) {
        self.stream = stream
        self.outerPath = outerPath
        self.index = index
        self.depth = depth
        start = stream.writer.bytes.count
    }

    var codingPath: [any CodingKey] { outerPath + (index.map { [IndexKey(index: $0)] } ?? []) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Opens the container. A second request, as subclasses make it, continues with the same one.
    private func open(_ kind: Kind) {
        if self.kind != nil { return }
        self.kind = kind
        stream.writer.append(UInt8(ascii: kind == .object ? "{" : "["))
    }

    func close() {
        if isClosed { return }
        isClosed = true
        switch kind {
        case .object: stream.writer.append(UInt8(ascii: "}"))
        case .array: stream.writer.append(UInt8(ascii: "]"))
        // A type that writes nothing is an empty object, as with Foundation's encoder.
        case nil where stream.writer.bytes.count == start:
            JSONText.emptyObject.bytes.forEach { stream.writer.append($0) }
        case nil: break
        }
    }

    func beginMember() throws {
        guard !isClosed else {
            throw EncodingError.invalidValue(
                count,
                .init(
                    codingPath: codingPath,
                    debugDescription: "a container was written to after its value was encoded"
                )
            )
        }
        if count > 0 { stream.writer.append(UInt8(ascii: ",")) }
        count += 1
    }

    /// Begins a member whose value may be written later.
    func nested(_ key: (any CodingKey)?, _ kind: Kind?) -> TextEncoder {
        if let key, let kind, let known = named[ExactText(key.stringValue)], known.kind == kind {
            return known
        }
        let encoder = TextEncoder(
            TextStream(hooks: stream.hooks),
            outerPath: codingPath + (key.map { [$0] } ?? []),
            index: key == nil ? count : nil,
            depth: depth + 1
        )
        // These calls cannot throw. Values that are written to an encoder that has ended are lost, as with Foundation's.
        guard (try? beginMember()) != nil else { return encoder }
        if let key {
            stream.writer.write(key: key.stringValue)
            if kind != nil { named[ExactText(key.stringValue)] = encoder }
        }
        if let kind { encoder.open(kind) }
        stream.insert(encoder)
        return encoder
    }

    func encode(unordered elements: [[any Encodable]]) throws {
        let texts = try elements.map { element in
            let encoder = TextEncoder(
                TextStream(hooks: stream.hooks),
                outerPath: codingPath,
                index: nil,
                depth: depth
            )
            var container = encoder.unkeyedContainer()
            for value in element { try container.encode(value) }
            encoder.stream.close()
            return encoder.stream.writer
        }
        open(.array)
        for text in texts.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }) {
            try beginMember()
            // Without its bracket, which is not closed.
            stream.writer.append(text, text.bytes.indices.dropFirst())
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        open(.object)
        return KeyedEncodingContainer(KeyedText(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        open(.array)
        return UnkeyedText(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleText(encoder: self, outerPath: outerPath, index: index)
    }
}

private struct SingleText: SingleValueEncodingContainer {
    let encoder: TextEncoder
    let outerPath: [any CodingKey]
    let index: Int?
    var codingPath: [any CodingKey] { outerPath + (index.map { [IndexKey(index: $0)] } ?? []) }

    private func write(_ value: JSONValue) { encoder.stream.writer.write(value) }

    func encodeNil() { write(.null) }
    func encode(_ value: Bool) { write(.bool(value)) }
    func encode(_ value: String) { write(.string(value)) }
    func encode(_ value: Double) throws {
        guard value.isFinite else {
            throw EncodingError.invalidValue(
                value,
                .init(codingPath: codingPath, debugDescription: "JSON has no \(value)")
            )
        }
        write(JSONValue(value))
    }
    func encode(_ value: Float) throws { try encode(Double(value.description) ?? Double(value)) }
    func encode(_ value: Int128) { write(JSONValue(value)) }
    func encode(_ value: UInt128) { write(JSONValue(value)) }
    func encode<T: Encodable>(_ value: T) throws {
        if let integer = value as? any BinaryInteger { return write(JSONValue(integer)) }
        try encoder.stream.encode(value, in: encoder, outerPath: outerPath, index: index)
    }
}

private struct KeyedText<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: TextEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }

    private func single(_ key: some CodingKey) throws -> SingleText {
        try encoder.beginMember()
        encoder.stream.writer.write(key: key.stringValue)
        return SingleText(encoder: encoder, outerPath: codingPath + [key], index: nil)
    }

    func encodeNil(forKey key: Key) throws { try single(key).encodeNil() }
    func encode(_ value: Bool, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: String, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: Double, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: Float, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: Int128, forKey key: Key) throws { try single(key).encode(value) }
    func encode(_ value: UInt128, forKey key: Key) throws { try single(key).encode(value) }
    func encode<T: Encodable>(_ value: T, forKey key: Key) throws { try single(key).encode(value) }

    func encodeIfPresent(_ value: Bool?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: String?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Float?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Int?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }
    func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
        if let value { try encode(value, forKey: key) } else { try omit(key) }
    }

    /// A property that is nil.
    private func omit(_ key: Key) throws { if encoder.stream.hooks.writesNull { try encodeNil(forKey: key) } }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        encoder.nested(key, .object).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.nested(key, .array).unkeyedContainer()
    }
    func superEncoder() -> any Encoder { encoder.nested(SuperKey(), nil) }
    func superEncoder(forKey key: Key) -> any Encoder { encoder.nested(key, nil) }
}

private struct UnkeyedText: UnkeyedEncodingContainer {
    let encoder: TextEncoder
    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { encoder.count }

    private func single() throws -> SingleText {
        let index = encoder.count
        try encoder.beginMember()
        return SingleText(encoder: encoder, outerPath: codingPath, index: index)
    }

    func encodeNil() throws { try single().encodeNil() }
    func encode(_ value: Bool) throws { try single().encode(value) }
    func encode(_ value: String) throws { try single().encode(value) }
    func encode(_ value: Double) throws { try single().encode(value) }
    func encode(_ value: Float) throws { try single().encode(value) }
    func encode(_ value: Int128) throws { try single().encode(value) }
    func encode(_ value: UInt128) throws { try single().encode(value) }
    func encode<T: Encodable>(_ value: T) throws { try single().encode(value) }
    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        encoder.nested(nil, .object).container(keyedBy: type)
    }
    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        encoder.nested(nil, .array).unkeyedContainer()
    }
    func superEncoder() -> any Encoder { encoder.nested(nil, nil) }
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
        // A decoder says only by an error that the value is of another kind.
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
