public import Foundation

/// Read and write access to the members of a document or a dictionary by their keys.
public protocol MutableDictionaryProtocol: DictionaryProtocol, MutableDictionaryFragment {
    /// The members, which all setters change. Apps have no use for it.
    var _members: _DictionaryMembers { get }
    /// Changes a member, without the reference counting of `_members`. Apps have no use for it.
    func _set(_ value: consuming _StoredValue, forKey key: String)
}

/// The members of a document or a dictionary. Apps have no use for it.
public struct _DictionaryMembers {
    let contents: DictionaryContents
}

extension MutableDictionaryProtocol {
    /// Replaces all members.
    @discardableResult
    public func setData(_ data: [String: Any]) -> Self {
        _members.contents.replace(with: data)
        return self
    }

    /// Replaces all members by those of a JSON object.
    ///
    /// - Throws: `invalidJSON`.
    @discardableResult
    public func setJSON(_ json: String) throws -> Self {
        try _members.contents.replace(with: json)
        return self
    }

    /// Removes a member.
    @discardableResult
    public func removeValue(forKey key: String) -> Self {
        _members.contents.remove(key)
        return self
    }

    private func set(_ value: consuming _StoredValue, _ key: String) -> Self {
        _set(value, forKey: key)
        return self
    }

    /// Sets the value of a key: of the types of ``DictionaryProtocol/value(forKey:)``, of Swift's and Foundation's numbers, dictionaries and
    /// arrays, or a `Date`. Nil is null; any other type ends the program.
    @discardableResult
    public func setValue(_ value: consuming Any?, forKey key: String) -> Self {
        set(_StoredValue(any: value), key)
    }

    /// Sets the value of a key to a string. Nil is null.
    @discardableResult
    public func setString(_ value: String?, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a number. Nil is null.
    @discardableResult
    public func setNumber(_ value: NSNumber?, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to an `Int`.
    @discardableResult
    public func setInt(_ value: Int, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to an `Int64`.
    @discardableResult
    public func setInt64(_ value: Int64, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a `Float`.
    @discardableResult
    public func setFloat(_ value: Float, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a `Double`.
    @discardableResult
    public func setDouble(_ value: Double, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a boolean.
    @discardableResult
    public func setBoolean(_ value: Bool, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a date. Nil is null.
    @discardableResult
    public func setDate(_ value: Date?, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a blob. Nil is null.
    @discardableResult
    public func setBlob(_ value: Blob?, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to an array. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func setArray(_ value: ArrayObject?, forKey key: String) -> Self { set(_StoredValue(value), key) }

    /// Sets the value of a key to a dictionary. Nil is null. One that can be changed is kept by reference; any other is copied.
    @discardableResult
    public func setDictionary(_ value: DictionaryObject?, forKey key: String) -> Self {
        set(_StoredValue(value), key)
    }

    /// The value of a key as an array that can be changed; nil if it is missing or not an array.
    public func array(forKey key: String) -> MutableArrayObject? {
        _stored(forKey: key)?.array as? MutableArrayObject
    }

    /// The value of a key as a dictionary that can be changed; nil if it is missing or not a dictionary.
    public func dictionary(forKey key: String) -> MutableDictionaryObject? {
        _stored(forKey: key)?.dictionary as? MutableDictionaryObject
    }

    /// The value of a key, for reading and writing it as one of several types.
    public subscript(key: String) -> MutableFragment {
        MutableFragment(read: { _stored(forKey: key) }, write: { _set($0, forKey: key) })
    }
}
