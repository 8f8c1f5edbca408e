/// The members of a JSON object: string keys with ``JSONValue``s, used like a dictionary.
///
/// Keys are compared by their bytes, as by every peer: two Unicode forms of one letter are two keys. JSON gives the
/// order of members no meaning, and iteration has no particular order.
public struct JSONObject: Hashable, Sendable {
    /// The type of keys.
    public typealias Key = String
    /// The type of values.
    public typealias Value = JSONValue

    private var storage: [ExactText: JSONValue]

    /// Creates an object without members.
    public init() { storage = [:] }

    /// An object with room for a number of members.
    init(minimumCapacity: Int) { storage = Dictionary(minimumCapacity: minimumCapacity) }

    /// Creates an object with the members of a dictionary.
    public init(_ members: [String: JSONValue]) { self.init(members) { _, last in last } }

    /// Creates an object from keys and values. `combine` gets the values of a key that occurs twice, and returns the
    /// one to keep.
    ///
    /// - Throws: The error that `combine` throws.
    public init(
        _ members: some Sequence<(key: String, value: JSONValue)>,
        uniquingKeysWith combine: (JSONValue, JSONValue) throws -> JSONValue
    ) rethrows {
        storage = try Dictionary(
            members.lazy.map { (ExactText($0.key), $0.value) },
            uniquingKeysWith: combine
        )
    }

    /// Creates an object from keys and values. `combine` gets the values of a key that occurs twice, and returns the
    /// one to keep.
    ///
    /// - Throws: The error that `combine` throws.
    public init(
        _ members: some Sequence<(String, JSONValue)>,
        uniquingKeysWith combine: (JSONValue, JSONValue) throws -> JSONValue
    ) rethrows {
        storage = try Dictionary(members.lazy.map { (ExactText($0.0), $0.1) }, uniquingKeysWith: combine)
    }

    /// The value of a key, or nil if there is none. Setting nil removes the member; set ``JSONValue/null`` for a JSON
    /// null.
    public subscript(key: String) -> JSONValue? {
        get { storage[ExactText(key)] }
        set { storage[ExactText(key)] = newValue }
    }

    /// Removes a member and returns its value, or nil if there was none.
    @discardableResult
    public mutating func removeValue(forKey key: String) -> JSONValue? {
        storage.removeValue(forKey: ExactText(key))
    }

    /// The number of members.
    public var count: Int { storage.count }

    /// Whether the object has no members.
    public var isEmpty: Bool { storage.isEmpty }

    /// The keys, in no particular order.
    public var keys: some Swift.Collection<String> { storage.keys.lazy.map(\.text) }

    /// The values, in no particular order.
    public var values: some Swift.Collection<JSONValue> { storage.values }

    /// The members in the order of their keys' bytes.
    var sortedByBytes: [(key: String, value: JSONValue)] {
        var members = storage.map { (key: $0.key.text, value: $0.value) }
        // Sorted in place, since a sorted copy would count every reference once more.
        members.sort { $0.key.bytesPrecede($1.key) }
        return members
    }

    /// Returns an object with the same keys and transformed values.
    ///
    /// - Throws: The error that `transform` throws.
    public func mapValues(_ transform: (JSONValue) throws -> JSONValue) rethrows -> JSONObject {
        var object = JSONObject()
        object.storage = try storage.mapValues(transform)
        return object
    }

    /// Returns an object with the members for which the closure returns true.
    ///
    /// - Throws: The error that the closure throws.
    public func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> JSONObject {
        var object = self
        object.storage = try storage.filter { try isIncluded(($0.key.text, $0.value)) }
        return object
    }
}

extension JSONObject: Sequence {
    /// A member: a key and its value.
    public typealias Element = (key: String, value: JSONValue)

    /// Returns an iterator over the members, in no particular order.
    public func makeIterator() -> some IteratorProtocol<Element> {
        storage.lazy.map { Element(key: $0.key.text, value: $0.value) }.makeIterator()
    }

    /// The number of members, which is exact.
    public var underestimatedCount: Int { storage.count }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object from a literal. Of a key that occurs twice, the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(elements) { _, last in last }
    }
}

extension JSONObject: Codable {
    /// A key of any object.
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// Encodes the members with any encoder, as a container with their keys.
    ///
    /// - Throws: Errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        for (key, value) in self { try container.encode(value, forKey: Name(key)) }
    }

    /// Decodes the members with any decoder, from a container with keys.
    ///
    /// - Throws: Errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        self.init()
        for name in container.allKeys {
            self[name.stringValue] = try container.decode(JSONValue.self, forKey: name)
        }
    }
}
