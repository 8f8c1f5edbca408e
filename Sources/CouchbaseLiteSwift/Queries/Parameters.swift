public import Foundation
import LoveseatCore
import LoveseatModel

/// The values of a query's parameters, which are `$name` in its text.
///
/// ``Query/parameters`` keeps a copy that cannot be changed; changing that ends the program.
public class Parameters {
    private var values: [ExactText: _StoredValue]
    private let isReadOnly: Bool

    /// Creates parameters without values.
    public convenience init() { self.init(parameters: nil) }

    /// Creates a copy. Nil means parameters without values.
    public convenience init(parameters: Parameters?) { self.init(parameters, isReadOnly: false) }

    init(_ parameters: Parameters?, isReadOnly: Bool) {
        values = parameters?.values.mapValues(\.copy) ?? [:]
        self.isReadOnly = isReadOnly
    }

    var engine: QueryParameters {
        var parameters = QueryParameters()
        for (name, value) in values { parameters[name.text] = value.json }
        return parameters
    }

    /// The names of the parameters that have a value.
    var names: Set<ExactText> { Set(values.keys) }

    /// The value of a parameter; nil if it has none.
    public func value(forName name: String) -> Any? { values[ExactText(name)]?.any }

    private func set(_ value: _StoredValue, _ name: String) -> Parameters {
        if isReadOnly {
            programmerError("the parameters of a query cannot be changed: set a changed copy of them")
        }
        values[ExactText(name)] = value
        return self
    }

    /// Sets a value of one of the types that documents can contain.
    @discardableResult
    public func setValue(_ value: Any?, forName name: String) -> Parameters {
        set(_StoredValue(any: value), name)
    }

    /// Sets a string.
    @discardableResult
    public func setString(_ value: String?, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets an `Int`.
    @discardableResult
    public func setInt(_ value: Int, forName name: String) -> Parameters { set(_StoredValue(value), name) }

    /// Sets an `Int64`.
    @discardableResult
    public func setInt64(_ value: Int64, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a `Float`.
    @discardableResult
    public func setFloat(_ value: Float, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a `Double`.
    @discardableResult
    public func setDouble(_ value: Double, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a boolean.
    @discardableResult
    public func setBoolean(_ value: Bool, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a date, which is its ISO 8601 text.
    @discardableResult
    public func setDate(_ value: Date?, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a blob.
    @discardableResult
    public func setBlob(_ value: Blob?, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets an array.
    @discardableResult
    public func setArray(_ value: ArrayObject?, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }

    /// Sets a dictionary.
    @discardableResult
    public func setDictionary(_ value: DictionaryObject?, forName name: String) -> Parameters {
        set(_StoredValue(value), name)
    }
}
