public import Foundation

/// Read access to the items of an array or a row by their positions.
public protocol ArrayProtocol: ArrayFragment {
    /// The number of items.
    var count: Int { get }
    /// The value at a position: an `NSNumber`, a `String`, an `NSNull`, a ``Blob``, ``ArrayObject`` or ``DictionaryObject``; nil beyond the end.
    func value(at index: Int) -> Any?
    /// The items as values of Swift and Foundation, blobs excepted.
    func toArray() -> [Any]
    /// The items as JSON text.
    func toJSON() -> String
    /// The value from which all getters are made. Apps have no use for it.
    func _stored(at index: Int) -> _StoredValue?
}

extension ArrayProtocol {
    /// The value at a position: an `NSNumber`, a `String`, an `NSNull`, a ``Blob``, ``ArrayObject`` or ``DictionaryObject``; nil beyond the end.
    public func value(at index: Int) -> Any? { _stored(at: index)?.any }

    /// The value at a position as a string; nil if it is missing or not a string.
    public func string(at index: Int) -> String? { _stored(at: index)?.string }

    /// The value at a position as a number; nil if it is missing or not a number; a boolean counts as 1 or 0.
    public func number(at index: Int) -> NSNumber? { _stored(at: index)?.number }

    /// The value at a position as an `Int`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public func int(at index: Int) -> Int { Int(truncatingIfNeeded: _stored(at: index)?.int64 ?? 0) }

    /// The value at a position as an `Int64`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public func int64(at index: Int) -> Int64 { _stored(at: index)?.int64 ?? 0 }

    /// The value at a position as a `Float`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public func float(at index: Int) -> Float { Float(_stored(at: index)?.double ?? 0) }

    /// The value at a position as a `Double`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public func double(at index: Int) -> Double { _stored(at: index)?.double ?? 0 }

    /// The value at a position as a boolean; false if it is missing, null, false or 0, and true for anything else.
    public func boolean(at index: Int) -> Bool { _stored(at: index)?.boolean ?? false }

    /// The value at a position as a date; nil if it is missing or not a string in ISO 8601.
    public func date(at index: Int) -> Date? { _stored(at: index)?.date }

    /// The value at a position as a blob; nil if it is missing or not a blob.
    public func blob(at index: Int) -> Blob? { _stored(at: index)?.blob }

    /// The value at a position as an array; nil if it is missing or not an array.
    public func array(at index: Int) -> ArrayObject? { _stored(at: index)?.array }

    /// The value at a position as a dictionary; nil if it is missing or not a dictionary.
    public func dictionary(at index: Int) -> DictionaryObject? { _stored(at: index)?.dictionary }

    /// The value at a position, for reading it as one of several types.
    public subscript(index: Int) -> Fragment { Fragment(_stored(at: index)) }
}
