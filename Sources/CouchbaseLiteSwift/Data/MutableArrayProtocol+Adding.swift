public import Foundation

extension MutableArrayProtocol {
    /// Adds an item at the end; see ``MutableDictionaryProtocol/setValue(_:forKey:)``.
    @discardableResult
    public func addValue(_ value: Any?) -> Self { add(_StoredValue(any: value)) }

    /// Adds a string at the end. Nil is null.
    @discardableResult
    public func addString(_ value: String?) -> Self { add(_StoredValue(value)) }

    /// Adds a number at the end. Nil is null.
    @discardableResult
    public func addNumber(_ value: NSNumber?) -> Self { add(_StoredValue(value)) }

    /// Adds an `Int` at the end.
    @discardableResult
    public func addInt(_ value: Int) -> Self { add(_StoredValue(value)) }

    /// Adds an `Int64` at the end.
    @discardableResult
    public func addInt64(_ value: Int64) -> Self { add(_StoredValue(value)) }

    /// Adds a `Float` at the end.
    @discardableResult
    public func addFloat(_ value: Float) -> Self { add(_StoredValue(value)) }

    /// Adds a `Double` at the end.
    @discardableResult
    public func addDouble(_ value: Double) -> Self { add(_StoredValue(value)) }

    /// Adds a boolean at the end.
    @discardableResult
    public func addBoolean(_ value: Bool) -> Self { add(_StoredValue(value)) }

    /// Adds a date at the end. Nil is null.
    @discardableResult
    public func addDate(_ value: Date?) -> Self { add(_StoredValue(value)) }

    /// Adds a blob at the end. Nil is null.
    @discardableResult
    public func addBlob(_ value: Blob?) -> Self { add(_StoredValue(value)) }

    /// Adds an array at the end. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func addArray(_ value: ArrayObject?) -> Self { add(_StoredValue(value)) }

    /// Adds a dictionary at the end. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func addDictionary(_ value: DictionaryObject?) -> Self { add(_StoredValue(value)) }

    /// Inserts an item in front of a position; see ``MutableDictionaryProtocol/setValue(_:forKey:)``.
    @discardableResult
    public func insertValue(_ value: Any?, at index: Int) -> Self { insert(_StoredValue(any: value), index) }

    /// Inserts a string in front of a position. Nil is null.
    @discardableResult
    public func insertString(_ value: String?, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a number in front of a position. Nil is null.
    @discardableResult
    public func insertNumber(_ value: NSNumber?, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts an `Int` in front of a position.
    @discardableResult
    public func insertInt(_ value: Int, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts an `Int64` in front of a position.
    @discardableResult
    public func insertInt64(_ value: Int64, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a `Float` in front of a position.
    @discardableResult
    public func insertFloat(_ value: Float, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a `Double` in front of a position.
    @discardableResult
    public func insertDouble(_ value: Double, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a boolean in front of a position.
    @discardableResult
    public func insertBoolean(_ value: Bool, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a date in front of a position. Nil is null.
    @discardableResult
    public func insertDate(_ value: Date?, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts a blob in front of a position. Nil is null.
    @discardableResult
    public func insertBlob(_ value: Blob?, at index: Int) -> Self { insert(_StoredValue(value), index) }

    /// Inserts an array in front of a position. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func insertArray(_ value: ArrayObject?, at index: Int) -> Self {
        insert(_StoredValue(value), index)
    }

    /// Inserts a dictionary in front of a position. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func insertDictionary(_ value: DictionaryObject?, at index: Int) -> Self {
        insert(_StoredValue(value), index)
    }

    private func add(_ value: _StoredValue) -> Self {
        _items.contents.append(value)
        return self
    }

    private func insert(_ value: _StoredValue, _ index: Int) -> Self {
        _items.contents.insert(value, at: index)
        return self
    }
}
