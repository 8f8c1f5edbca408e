public import Foundation

/// Read access to the members of a document, a dictionary or a row by their keys.
public protocol DictionaryProtocol: DictionaryFragment {
    /// The number of members.
    var count: Int { get }
    /// The keys, in no particular order.
    var keys: [String] { get }
    /// The value of a key: an `NSNumber`, a `String`, an `NSNull`, a ``Blob``, ``ArrayObject`` or ``DictionaryObject``; nil if it is missing.
    func value(forKey key: String) -> Any?
    /// Whether there is a member with this key.
    func contains(key: String) -> Bool
    /// The members as values of Swift and Foundation, blobs excepted.
    func toDictionary() -> [String: Any]
    /// The value from which all getters are made. Apps have no use for it.
    func _stored(forKey key: String) -> _StoredValue?
}

extension DictionaryProtocol {
    /// The value of a key: an `NSNumber`, a `String`, an `NSNull`, a ``Blob``, ``ArrayObject`` or ``DictionaryObject``; nil if it is missing.
    public func value(forKey key: String) -> Any? { _stored(forKey: key)?.any }

    /// The value of a key as a string; nil if it is missing or not a string.
    public func string(forKey key: String) -> String? { _stored(forKey: key)?.string }

    /// The value of a key as a number; nil if it is missing or not a number; a boolean counts as 1 or 0.
    public func number(forKey key: String) -> NSNumber? { _stored(forKey: key)?.number }

    /// The value of a key as an `Int`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public func int(forKey key: String) -> Int { Int(truncatingIfNeeded: _stored(forKey: key)?.int64 ?? 0) }

    /// The value of a key as an `Int64`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public func int64(forKey key: String) -> Int64 { _stored(forKey: key)?.int64 ?? 0 }

    /// The value of a key as a `Float`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public func float(forKey key: String) -> Float { Float(_stored(forKey: key)?.double ?? 0) }

    /// The value of a key as a `Double`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public func double(forKey key: String) -> Double { _stored(forKey: key)?.double ?? 0 }

    /// The value of a key as a boolean; false if it is missing, null, false or 0, and true for anything else.
    public func boolean(forKey key: String) -> Bool { _stored(forKey: key)?.boolean ?? false }

    /// The value of a key as a date; nil if it is missing or not a string in ISO 8601.
    public func date(forKey key: String) -> Date? { _stored(forKey: key)?.date }

    /// The value of a key as a blob; nil if it is missing or not a blob.
    public func blob(forKey key: String) -> Blob? { _stored(forKey: key)?.blob }

    /// The value of a key as an array; nil if it is missing or not an array.
    public func array(forKey key: String) -> ArrayObject? { _stored(forKey: key)?.array }

    /// The value of a key as a dictionary; nil if it is missing or not a dictionary.
    public func dictionary(forKey key: String) -> DictionaryObject? { _stored(forKey: key)?.dictionary }

    /// Whether there is a member with this key.
    public func contains(key: String) -> Bool { _stored(forKey: key) != nil }

    /// The value of a key, for reading it as one of several types.
    public subscript(key: String) -> Fragment { Fragment(_stored(forKey: key)) }
}
