extension JSONElement {
    /// Decodes a type straight from the text, with no dictionary in between.
    ///
    /// `added`: further members of the object, which replace those with the same keys. `listsAdded`: whether a type that asks for all keys,
    /// such as a dictionary, gets those of `added`, too.
    package func decode<T: Decodable>(
        _ type: T.Type,
        hooks: JSONCodingHooks = .none,
        adding added: [ExactText: JSONElement] = [:],
        listsAdded: Bool = true
    ) throws -> T {
        try ElementDecoder(element: self, hooks: hooks, added: added, listsAdded: listsAdded).decode(type)
    }
}

private struct ElementDecoder: Decoder, SingleValueDecodingContainer {
    let element: JSONElement
    let hooks: JSONCodingHooks
    /// Further members of the outermost object.
    var added: [ExactText: JSONElement] = [:]
    /// Whether the keys of these are listed for a type that asks for all keys.
    var listsAdded = true
    /// The path of the value that contains this one, and the position in it if that is an array. Arrays are long, so that the
    /// whole path is only made for an error.
    var outerPath: [any CodingKey] = []
    var index: Int?
    var codingPath: [any CodingKey] { outerPath + (index.map { [IndexKey(index: $0)] } ?? []) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard element.kind == .object else { throw mismatch(JSONObject.self) }
        return KeyedDecodingContainer(KeyedElements(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard element.kind == .array else { throw mismatch([JSONValue].self) }
        return UnkeyedElements(decoder: self)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func nested(_ element: JSONElement, _ key: some CodingKey) -> ElementDecoder {
        ElementDecoder(element: element, hooks: hooks, outerPath: codingPath + [key])
    }

    func mismatch(_ type: any Any.Type) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath,
            debugDescription: "expected \(type), found \(element.kind)"
        )
        return element.isNull ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }

    private func corrupted(_ message: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath, debugDescription: message))
    }

    func decodeNil() -> Bool { element.isNull }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard let value = element.bool else { throw mismatch(type) }
        return value
    }

    func decode(_ type: String.Type) throws -> String {
        guard let value = element.string else { throw mismatch(type) }
        return value
    }

    /// A number that is beyond the type's range, or that would become zero, is refused.
    private func floating<T: BinaryFloatingPoint & LosslessStringConvertible>(_ type: T.Type) throws -> T {
        guard let number = element.number else { throw mismatch(type) }
        // Through a double, a `Float` would be rounded twice.
        guard let value = T(number.text), value.isFinite, value != 0 || number.isZero else {
            throw corrupted("\(number.text) does not fit \(type)")
        }
        return value
    }

    func decode(_ type: Double.Type) throws -> Double {
        switch element.number {
        case .double(let value): value
        case .integer(let value): Double(value)
        case .unsigned, .text, nil: try floating(type)
        }
    }

    func decode(_ type: Float.Type) throws -> Float { try floating(type) }

    private func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        if let value = element.int, let exact = T(exactly: value) { return exact }
        guard let number = element.number else { throw mismatch(type) }
        guard let value = number.exactly(type) ?? T(number.text) else {
            throw corrupted("\(number.text) does not fit \(type)")
        }
        return value
    }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let integers = type as? any FixedWidthInteger.Type, let value = try integer(integers) as? T {
            return value
        }
        // Bound before it is cast: a nil that is cast to an optional type is a value.
        if let special = try special(type), let value = special as? T { return value }
        if type == JSONValue.self {
            var value = element.value
            if listsAdded { for (key, element) in added { value[key.text] = element.value } }
            if let value = value as? T { return value }
        }
        return try T(from: self)
    }

    private func special(_ type: any Decodable.Type) throws -> (any Decodable)? {
        do { return try hooks.decode(type, element) } catch let error as LoveseatError {
            throw element.isNull ? mismatch(type) : corrupted(error.message)
        }
    }

    func decode(_ type: Int.Type) throws -> Int { try integer(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
    func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }
}

private struct KeyedElements<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: ElementDecoder
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] {
        let own = decoder.element.members.map(\.key)
        guard decoder.listsAdded else { return own.compactMap { Key(stringValue: $0) } }
        return (own.filter { decoder.added[ExactText($0)] == nil } + decoder.added.keys.map(\.text))
            .compactMap { Key(stringValue: $0) }
    }

    func contains(_ key: Key) -> Bool { element(key.stringValue) != nil }

    private func element(_ key: String) -> JSONElement? {
        if !decoder.added.isEmpty, let added = decoder.added[ExactText(key)] { return added }
        return decoder.element[key]
    }

    private func find(_ key: some CodingKey) throws -> ElementDecoder {
        guard let element = element(key.stringValue) else {
            throw DecodingError.keyNotFound(
                key,
                .init(codingPath: codingPath, debugDescription: "no key \"\(key.stringValue)\"")
            )
        }
        return decoder.nested(element, key)
    }

    func decodeNil(forKey key: Key) throws -> Bool { try find(key).decodeNil() }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try find(key).decode(type) }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try find(key).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try find(key).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try find(key).decode(type) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try find(key).decode(type) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try find(key).decode(type) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try find(key).decode(type) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try find(key).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try find(key).unkeyedContainer()
    }
    func superDecoder() throws -> any Decoder { superDecoder(SuperKey()) }
    func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(key) }

    /// A missing superclass is null, as with Foundation's decoder.
    private func superDecoder(_ key: some CodingKey) -> any Decoder {
        decoder.nested(element(key.stringValue) ?? .null, key)
    }
}

private struct UnkeyedElements: UnkeyedDecodingContainer {
    let decoder: ElementDecoder
    let codingPath: [any CodingKey]
    private let items: [JSONElement]
    private(set) var currentIndex = 0

    init(decoder: ElementDecoder) {
        self.decoder = decoder
        codingPath = decoder.codingPath
        items = Array(decoder.element.items)
    }

    var count: Int? { items.count }
    var isAtEnd: Bool { currentIndex >= items.count }

    private func peek() throws -> ElementDecoder {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                JSONValue.self,
                .init(codingPath: codingPath, debugDescription: "the array has ended")
            )
        }
        return ElementDecoder(
            element: items[currentIndex],
            hooks: decoder.hooks,
            outerPath: codingPath,
            index: currentIndex
        )
    }

    /// Moves on only when the item was decoded, so that a caller may try another type.
    private mutating func decodeNext<T>(_ read: (ElementDecoder) throws -> T) throws -> T {
        let value = try read(try peek())
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        guard try peek().decodeNil() else { return false }
        currentIndex += 1
        return true
    }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: Bool.Type) throws -> Bool { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: String.Type) throws -> String { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try decodeNext { try $0.decode(type) } }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try decodeNext { try $0.decode(type) } }
    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try decodeNext { try $0.container(keyedBy: type) }
    }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try decodeNext { try $0.unkeyedContainer() }
    }
    mutating func superDecoder() throws -> any Decoder { try decodeNext { $0 } }
}

/// The position of an array's item in the path of an error, written as Foundation's coders do.
struct IndexKey: CodingKey {
    let index: Int
    init(index: Int) { self.index = index }
    init?(intValue: Int) { index = intValue }
    init?(stringValue: String) { return nil }
    var intValue: Int? { index }
    var stringValue: String { "Index \(index)" }
}
