public import Foundation

/// Read and write access to the items of an array by their positions.
public protocol MutableArrayProtocol: ArrayProtocol, MutableArrayFragment {
    /// The items, which all setters change. Apps have no use for it.
    var _items: _ArrayItems { get }
}

/// The items of an array. Apps have no use for it.
public struct _ArrayItems {
    let contents: ArrayContents
}

extension MutableArrayProtocol {
    /// Replaces all items.
    @discardableResult
    public func setData(_ data: [Any]) -> Self {
        _items.contents.replace(with: data)
        return self
    }

    /// Replaces all items by those of a JSON array.
    ///
    /// - Throws: `invalidJSON`.
    @discardableResult
    public func setJSON(_ json: String) throws -> Self {
        try _items.contents.replace(with: json)
        return self
    }

    /// Removes the item at a position.
    @discardableResult
    public func removeValue(at index: Int) -> Self {
        _items.contents.remove(at: index)
        return self
    }

    private func set(_ value: _StoredValue, _ index: Int) -> Self {
        _items.contents.set(value, at: index)
        return self
    }

    /// Replaces the item at a position; see ``MutableDictionaryProtocol/setValue(_:forKey:)``.
    @discardableResult
    public func setValue(_ value: Any?, at index: Int) -> Self { set(_StoredValue(any: value), index) }

    /// Replaces the item at a position by a string. Nil is null.
    @discardableResult
    public func setString(_ value: String?, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a number. Nil is null.
    @discardableResult
    public func setNumber(_ value: NSNumber?, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by an `Int`.
    @discardableResult
    public func setInt(_ value: Int, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by an `Int64`.
    @discardableResult
    public func setInt64(_ value: Int64, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a `Float`.
    @discardableResult
    public func setFloat(_ value: Float, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a `Double`.
    @discardableResult
    public func setDouble(_ value: Double, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a boolean.
    @discardableResult
    public func setBoolean(_ value: Bool, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a date. Nil is null.
    @discardableResult
    public func setDate(_ value: Date?, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a blob. Nil is null.
    @discardableResult
    public func setBlob(_ value: Blob?, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by an array. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func setArray(_ value: ArrayObject?, at index: Int) -> Self { set(_StoredValue(value), index) }

    /// Replaces the item at a position by a dictionary. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func setDictionary(_ value: DictionaryObject?, at index: Int) -> Self {
        set(_StoredValue(value), index)
    }

    /// The value at a position as an array that can be changed; nil if it is missing or not an array.
    public func array(at index: Int) -> MutableArrayObject? {
        _stored(at: index)?.array as? MutableArrayObject
    }

    /// The value at a position as a dictionary that can be changed; nil if it is missing or not a dictionary.
    public func dictionary(at index: Int) -> MutableDictionaryObject? {
        _stored(at: index)?.dictionary as? MutableDictionaryObject
    }

    /// The value at a position, for reading and writing it as one of several types.
    public subscript(index: Int) -> MutableFragment {
        MutableFragment(read: { _stored(at: index) }, write: { _items.contents.set($0, at: index) })
    }
}
