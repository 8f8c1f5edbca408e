/// The members of a JSON object. JSON gives their order no meaning.
///
/// Keys are compared by their bytes: two Unicode forms of one letter are two keys, as they are for every peer. Used like a
/// dictionary.
public struct JSONObject: Hashable, Sendable {
    /// A key.
    public typealias Key = String
    /// The value of a key.
    public typealias Value = JSONValue

    /// A key that equals no other with different bytes.
    private struct ByteKey: Hashable {
        let text: String

        static func == (one: ByteKey, other: ByteKey) -> Bool { one.text.hasSameBytes(as: other.text) }
        func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
    }

    private var storage: [ByteKey: JSONValue]

    /// An object without members.
    public init() { storage = [:] }

    /// An object with room for so many members.
    init(minimumCapacity: Int) { storage = Dictionary(minimumCapacity: minimumCapacity) }

    /// An object with the members of a dictionary.
    public init(_ members: [String: JSONValue]) { self.init(members) { _, last in last } }

    /// An object with these members. `combine` decides between two values of one key.
    public init(
        _ members: some Sequence<(key: String, value: JSONValue)>,
        uniquingKeysWith combine: (JSONValue, JSONValue) throws -> JSONValue
    ) rethrows {
        storage = try Dictionary(
            members.lazy.map { (ByteKey(text: $0.key), $0.value) },
            uniquingKeysWith: combine
        )
    }

    /// An object with these members. `combine` decides between two values of one key.
    public init(
        _ members: some Sequence<(String, JSONValue)>,
        uniquingKeysWith combine: (JSONValue, JSONValue) throws -> JSONValue
    ) rethrows {
        storage = try Dictionary(members.lazy.map { (ByteKey(text: $0.0), $0.1) }, uniquingKeysWith: combine)
    }

    /// The value of a key; nil if there is none. Setting nil removes the member.
    public subscript(key: String) -> JSONValue? {
        get { storage[ByteKey(text: key)] }
        set { storage[ByteKey(text: key)] = newValue }
    }

    /// Removes a member, and returns its value; nil if there was none.
    @discardableResult
    public mutating func removeValue(forKey key: String) -> JSONValue? {
        storage.removeValue(forKey: ByteKey(text: key))
    }

    /// The number of members.
    public var count: Int { storage.count }

    /// Whether there are no members.
    public var isEmpty: Bool { storage.isEmpty }

    /// The keys, in no particular order.
    public var keys: some Swift.Collection<String> { storage.keys.lazy.map(\.text) }

    /// The values, in no particular order.
    public var values: some Swift.Collection<JSONValue> { storage.values }

    /// The members in the order of their keys' bytes.
    var sortedByBytes: [(key: String, value: JSONValue)] {
        var members = storage.map { (key: $0.key.text, value: $0.value) }
        // In place: a sorted copy would count every reference once more.
        members.sort { $0.key.bytesPrecede($1.key) }
        return members
    }

    /// The same keys with other values.
    public func mapValues(_ transform: (JSONValue) throws -> JSONValue) rethrows -> JSONObject {
        var object = JSONObject()
        object.storage = try storage.mapValues(transform)
        return object
    }

    /// The members for which a condition holds.
    public func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> JSONObject {
        var object = self
        object.storage = try storage.filter { try isIncluded(($0.key.text, $0.value)) }
        return object
    }
}

extension JSONObject: Sequence {
    /// A member.
    public typealias Element = (key: String, value: JSONValue)

    /// Goes through the members, in no particular order.
    public func makeIterator() -> some IteratorProtocol<Element> {
        storage.lazy.map { Element(key: $0.key.text, value: $0.value) }.makeIterator()
    }

    /// The number of members.
    public var underestimatedCount: Int { storage.count }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// An object; of a repeated key the last value counts.
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

    /// Encodes the members with any encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        for (key, value) in self { try container.encode(value, forKey: Name(key)) }
    }

    /// Decodes the members with any decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        self.init()
        for name in container.allKeys {
            self[name.stringValue] = try container.decode(JSONValue.self, forKey: name)
        }
    }
}

extension String {
    /// Whether both are the same bytes. Swift's own `==` also equates what only looks the same.
    package func hasSameBytes(as other: String) -> Bool {
        var (one, other) = (self, other)
        return one.withUTF8 { one in
            other.withUTF8 { other in
                guard one.count == other.count else { return false }
                for index in one.indices where one[index] != other[index] { return false }
                return true
            }
        }
    }

    /// Whether these bytes come before the other's.
    func bytesPrecede(_ other: String) -> Bool {
        var (one, other) = (self, other)
        return one.withUTF8 { one in
            other.withUTF8 { other in
                for index in 0..<min(one.count, other.count) where one[index] != other[index] {
                    return one[index] < other[index]
                }
                return one.count < other.count
            }
        }
    }

    func hashBytes(into hasher: inout Hasher) {
        var text = self
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
