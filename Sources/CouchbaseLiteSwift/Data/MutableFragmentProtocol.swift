public import Foundation

/// Access to the members of an object by their keys, for writing.
public protocol MutableDictionaryFragment: DictionaryFragment {
    /// The value of a key.
    subscript(key: String) -> MutableFragment { get }
}

/// Access to the items of an array by their positions, for writing.
public protocol MutableArrayFragment: ArrayFragment {
    /// The value at a position.
    subscript(index: Int) -> MutableFragment { get }
}

/// A value that can be read and written as one of several types. Setting nil stores null.
public protocol MutableFragmentProtocol: FragmentProtocol {
    /// Sets the value, for all properties. Apps have no use for it.
    func _set(_ value: _StoredValue)
}

extension MutableFragmentProtocol {
    /// The value; see ``MutableDictionaryProtocol/setValue(_:forKey:)`` for the types that can be set.
    public var value: Any? {
        get { _stored?.any }
        set { _set(_StoredValue(any: newValue)) }
    }

    /// The value as a string; nil if it is missing or not a string.
    public var string: String? {
        get { _stored?.string }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a number; nil if it is missing or not a number; a boolean counts as 1 or 0.
    public var number: NSNumber? {
        get { _stored?.number }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as an `Int`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public var int: Int {
        get { Int(truncatingIfNeeded: _stored?.int64 ?? 0) }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as an `Int64`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public var int64: Int64 {
        get { _stored?.int64 ?? 0 }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a `Float`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public var float: Float {
        get { Float(_stored?.double ?? 0) }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a `Double`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public var double: Double {
        get { _stored?.double ?? 0 }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a boolean; false if it is missing, null, false or 0, and true for anything else.
    public var boolean: Bool {
        get { _stored?.boolean ?? false }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a date; nil if it is missing or not a string in ISO 8601.
    public var date: Date? {
        get { _stored?.date }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a blob; nil if it is missing or not a blob.
    public var blob: Blob? {
        get { _stored?.blob }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as an array; nil if it is missing or not an array.
    public var array: MutableArrayObject? {
        get { _stored?.array as? MutableArrayObject }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a dictionary; nil if it is missing or not a dictionary.
    public var dictionary: MutableDictionaryObject? {
        get { _stored?.dictionary as? MutableDictionaryObject }
        set { _set(_StoredValue(newValue)) }
    }
}
