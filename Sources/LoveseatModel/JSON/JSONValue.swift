/// A JSON value that can be built and changed.
///
/// Use it for properties that an app reads or writes one by one; for large documents that are only read,
/// ``JSONElement`` is faster. Swift literals make values: `["name": "Ana", "likes": [1, 2.5, nil]]`.
///
/// Strings and keys are equal if their bytes are, as for every peer: two Unicode forms of one letter differ. Numbers
/// are equal if their ``JSONNumber``s are, so the integer 1 differs from the double 1.0.
public enum JSONValue: Hashable, Sendable {
    /// The JSON value `null`, which differs from a missing property.
    case null
    /// A boolean, `true` or `false`.
    case bool(Bool)
    /// A number, kept without loss.
    case number(JSONNumber)
    /// A string, which may contain any Unicode scalar.
    case string(String)
    /// An array of values, which may differ in kind.
    case array([JSONValue])
    /// An object. JSON gives the order of its members no meaning.
    case object(JSONObject)

    /// Creates a value from JSON text. Of a key that occurs twice in an object, the last value counts.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the text is not JSON or exceeds a limit.
    public init(parsing text: String, limits: JSONLimits = .standard) throws(LoveseatError) {
        self = try JSONElement(parsing: Array(text.utf8), limits: limits).value
    }

    /// The string, or nil if this is not a string.
    @inlinable public var string: String? { if case .string(let value) = self { value } else { nil } }

    /// The boolean, or nil if this is not a boolean. Numbers are not booleans.
    @inlinable public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The number as an `Int`, or nil if this is not a number, has a fraction, or does not fit. The number 3.0 counts
    /// as 3.
    @inlinable public var int: Int? {
        guard case .number(let number) = self else { return nil }
        if case .integer(let value) = number { return Int(exactly: value) }
        return number.exactly(Int.self)
    }

    /// The nearest double, or nil if this is not a number.
    @inlinable public var double: Double? {
        if case .number(let number) = self { number.double } else { nil }
    }

    /// The items, or nil if this is not an array.
    @inlinable public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The members, or nil if this is not an object.
    @inlinable public var object: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// Whether this is `null`.
    @inlinable public var isNull: Bool { self == .null }

    /// The value of a key, or nil if this is not an object or has no such key.
    ///
    /// Setting replaces a value that is not an object by an object with this one member. Setting nil removes the key;
    /// set ``null`` for a JSON null.
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

    /// The item at a position from 0, or nil if this is not an array or is shorter.
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
    /// Creates a string from a literal.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an integer from a literal.
    public init(integerLiteral value: Int64) { self = .number(.integer(value)) }
    /// Creates a double from a literal.
    public init(floatLiteral value: Double) { self.init(value) }
    /// Creates a boolean from a literal.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates ``null`` from the literal `nil`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates an array from a literal.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// Creates an object from a literal. Of a key that occurs twice, the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements) { _, last in last })
    }

    /// Creates a number from an integer of any width, without loss.
    public init(_ value: some BinaryInteger) {
        if let small = Int64(exactly: value) {
            self = .number(.integer(small))
        } else if let large = UInt64(exactly: value) {
            self = .number(.unsigned(large))
        } else {
            self = .number(.text(String(value)))
        }
    }
    /// Creates a number from a double. JSON has neither infinities nor NaN: these become ``null``.
    public init(_ value: Double) { self = value.isFinite ? .number(.double(value)) : .null }
    /// Creates a string.
    public init(_ value: String) { self = .string(value) }
    /// Creates a boolean.
    public init(_ value: Bool) { self = .bool(value) }
}

extension JSONValue {
    /// Returns whether two values are equal, with strings and keys compared by their bytes.
    public static func == (one: JSONValue, other: JSONValue) -> Bool {
        switch (one, other) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.string(let one), .string(let other)): one.isExactly(other)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }

    /// Hashes the value in agreement with `==`.
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
    /// The value as canonical JSON text.
    public var description: String { JSONText(canonical: self).description }
}
