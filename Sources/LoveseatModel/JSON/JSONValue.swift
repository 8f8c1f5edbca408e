/// A JSON value that can be built and changed.
///
/// Two values are equal if their JSON text can be the same: strings and keys are compared by their bytes, so that two Unicode
/// forms of one letter differ, as they do for every peer.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object. JSON gives the order of its members no meaning.
    case object(JSONObject)

    /// Reads text, throwing where and why it is not JSON.
    public init(parsing text: String, limits: JSONLimits = .standard) throws(JSONError) {
        self = try JSONElement(parsing: Array(text.utf8), limits: limits).value
    }

    /// The string, if this is one.
    @inlinable public var string: String? { if case .string(let value) = self { value } else { nil } }

    /// The boolean, if this is one.
    @inlinable public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The integer, if this is a number that is integral and fits.
    @inlinable public var int: Int? {
        guard case .number(let number) = self else { return nil }
        if case .integer(let value) = number { return Int(exactly: value) }
        return number.exactly(Int.self)
    }

    /// The number as a double, if this is a number.
    @inlinable public var double: Double? {
        if case .number(let number) = self { number.double } else { nil }
    }

    /// The items, if this is an array.
    @inlinable public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The members, if this is an object.
    @inlinable public var object: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// Whether this is `null`.
    @inlinable public var isNull: Bool { self == .null }

    /// The value of a key. Setting turns anything but an object into one; setting nil removes the key.
    @inlinable
    public subscript(key: String) -> JSONValue? {
        get { object?[key] }
        set {
            var members = object ?? [:]
            // Letting go of the old storage first keeps the change in place.
            self = .null
            members[key] = newValue
            self = .object(members)
        }
    }

    /// The item at a position; nil outside an array's bounds.
    @inlinable
    public subscript(position: Int) -> JSONValue? {
        guard let array, array.indices.contains(position) else { return nil }
        return array[position]
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An integer.
    public init(integerLiteral value: Int64) { self = .number(.integer(value)) }
    /// A double.
    public init(floatLiteral value: Double) { self.init(value) }
    /// A boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object; of a repeated key the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements) { _, last in last })
    }

    /// An integer of any width.
    public init(_ value: some BinaryInteger) {
        if let small = Int64(exactly: value) {
            self = .number(.integer(small))
        } else if let large = UInt64(exactly: value) {
            self = .number(.unsigned(large))
        } else {
            self = .number(.text(String(value)))
        }
    }
    /// A double. JSON has no infinities and no NaN: these become `null`.
    public init(_ value: Double) { self = value.isFinite ? .number(.double(value)) : .null }
    /// A string.
    public init(_ value: String) { self = .string(value) }
    /// A boolean.
    public init(_ value: Bool) { self = .bool(value) }
}

extension JSONValue {
    /// Whether both are the same to the byte.
    public static func == (one: JSONValue, other: JSONValue) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.string(let one), .string(let other)): one.hasSameBytes(as: other)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }

    /// Hashes what is compared.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .number(let value): hasher.combine(value)
        case .string(let value): value.hashBytes(into: &hasher)
        case .array(let value): hasher.combine(value)
        case .object(let value): hasher.combine(value)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The canonical text.
    public var description: String { JSONText(canonical: self).description }
}
