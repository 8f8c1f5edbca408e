public import LoveseatModel

/// The values of a query's parameters, which are `$name` in its text.
///
/// ```swift
/// query.parameters = ["city": "Paris", "likes": 5]
/// query.parameters["since"] = Date(timeIntervalSinceNow: -86_400)
/// ```
///
/// A parameter without a value, or with the value null, is MISSING: comparisons with it find nothing.
public struct QueryParameters: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// The values by their names, without `$`.
    public private(set) var values = JSONObject()

    /// Creates parameters without values.
    public init() {}

    /// Creates parameters from a literal. Of a name that occurs twice, the last value counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        values = JSONObject(elements) { _, last in last }
    }

    /// The value of a parameter, or nil if it has none. Setting nil removes the value.
    public subscript(name: String) -> JSONValue? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// The value of a parameter as a value of a type. Types are stored as in a document: a date is its ISO 8601 text.
    ///
    /// A value that cannot be encoded makes the query throw `encodingError`.
    @_disfavoredOverload
    public subscript<T: Codable>(name: String) -> T? {
        get {
            // A value that does not fit the type is nil.
            values[name].flatMap {
                try? JSONElement(JSONText(canonical: $0)).decode(T.self, hooks: .foundation)
            }
        }
        set { values[name] = newValue.map { JSONValue(orUnusable: $0) } }
    }
}
