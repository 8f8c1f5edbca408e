public import Foundation

extension MutableArrayProtocol {
    /// Adds an item at the end; see ``MutableDictionaryProtocol/setValue(_:forKey:)``.
    @discardableResult
    public func addValue(_ value: Any?) -> Self {
        _change(.append, _StoredValue(any: value))
        return self
    }

    /// Adds a string at the end. Nil is null.
    @discardableResult
    public func addString(_ value: String?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a number at the end. Nil is null.
    @discardableResult
    public func addNumber(_ value: NSNumber?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds an `Int` at the end.
    @discardableResult
    public func addInt(_ value: Int) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds an `Int64` at the end.
    @discardableResult
    public func addInt64(_ value: Int64) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a `Float` at the end.
    @discardableResult
    public func addFloat(_ value: Float) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a `Double` at the end.
    @discardableResult
    public func addDouble(_ value: Double) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a boolean at the end.
    @discardableResult
    public func addBoolean(_ value: Bool) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a date at the end. Nil is null.
    @discardableResult
    public func addDate(_ value: Date?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a blob at the end. Nil is null.
    @discardableResult
    public func addBlob(_ value: Blob?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds an array at the end. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func addArray(_ value: ArrayObject?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Adds a dictionary at the end. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func addDictionary(_ value: DictionaryObject?) -> Self {
        _change(.append, _StoredValue(value))
        return self
    }

    /// Inserts an item in front of a position; see ``MutableDictionaryProtocol/setValue(_:forKey:)``.
    @discardableResult
    public func insertValue(_ value: Any?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(any: value))
        return self
    }

    /// Inserts a string in front of a position. Nil is null.
    @discardableResult
    public func insertString(_ value: String?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a number in front of a position. Nil is null.
    @discardableResult
    public func insertNumber(_ value: NSNumber?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts an `Int` in front of a position.
    @discardableResult
    public func insertInt(_ value: Int, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts an `Int64` in front of a position.
    @discardableResult
    public func insertInt64(_ value: Int64, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a `Float` in front of a position.
    @discardableResult
    public func insertFloat(_ value: Float, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a `Double` in front of a position.
    @discardableResult
    public func insertDouble(_ value: Double, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a boolean in front of a position.
    @discardableResult
    public func insertBoolean(_ value: Bool, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a date in front of a position. Nil is null.
    @discardableResult
    public func insertDate(_ value: Date?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a blob in front of a position. Nil is null.
    @discardableResult
    public func insertBlob(_ value: Blob?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts an array in front of a position. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func insertArray(_ value: ArrayObject?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }

    /// Inserts a dictionary in front of a position. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func insertDictionary(_ value: DictionaryObject?, at index: Int) -> Self {
        _change(.insert(at: index), _StoredValue(value))
        return self
    }
}
