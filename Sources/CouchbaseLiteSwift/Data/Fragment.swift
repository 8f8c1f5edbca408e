public import Foundation
import Logging
import LoveseatCore

/// Access to the members of an object by their keys.
public protocol DictionaryFragment {
    /// The value of a key.
    subscript(key: String) -> Fragment { get }
}

/// Access to the items of an array by their positions.
public protocol ArrayFragment {
    /// The value at a position.
    subscript(index: Int) -> Fragment { get }
}

/// A value that can be read as one of several types.
public protocol FragmentProtocol: AnyObject {
    /// The value from which all properties are made; nil if there is none. Apps have no use for it.
    var _stored: _StoredValue? { get }
}

extension FragmentProtocol {
    /// The value: an `NSNumber`, a `String`, an `NSNull`, a ``Blob``, ``ArrayObject`` or ``DictionaryObject``; nil if it is missing.
    public var value: Any? { _stored?.any }

    /// The value as a string; nil if it is missing or not a string.
    public var string: String? { _stored?.string }

    /// The value as a number; nil if it is missing or not a number; a boolean counts as 1 or 0.
    public var number: NSNumber? { _stored?.number }

    /// The value as an `Int`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public var int: Int { Int(truncatingIfNeeded: _stored?.int64 ?? 0) }

    /// The value as an `Int64`; 0 if it is missing or not a number. A fraction is cut off; a boolean counts as 1 or 0.
    public var int64: Int64 { _stored?.int64 ?? 0 }

    /// The value as a `Float`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public var float: Float { Float(_stored?.double ?? 0) }

    /// The value as a `Double`; 0 if it is missing or not a number; a boolean counts as 1 or 0.
    public var double: Double { _stored?.double ?? 0 }

    /// The value as a boolean; false if it is missing, null, false or 0, and true for anything else.
    public var boolean: Bool { _stored?.boolean ?? false }

    /// The value as a date; nil if it is missing or not a string in ISO 8601.
    public var date: Date? { _stored?.date }

    /// The value as a blob; nil if it is missing or not a blob.
    public var blob: Blob? { _stored?.blob }

    /// The value as an array; nil if it is missing or not an array.
    public var array: ArrayObject? { _stored?.array }

    /// The value as a dictionary; nil if it is missing or not a dictionary.
    public var dictionary: DictionaryObject? { _stored?.dictionary }

    /// Whether there is a value, which may be null.
    public var exists: Bool { _stored != nil }
}

/// A value in a document or below, found by a subscript. It need not exist.
public class Fragment: FragmentProtocol, DictionaryFragment, ArrayFragment {
    private let read: () -> _StoredValue?

    init(_ stored: _StoredValue?) { read = { stored } }

    fileprivate init(read: @escaping () -> _StoredValue?) { self.read = read }

    /// The value from which all properties are made; nil if there is none. Apps have no use for it.
    public var _stored: _StoredValue? { read() }

    /// The value of a key, if this is a dictionary.
    public subscript(key: String) -> Fragment { Fragment(_stored?.dictionary?._stored(forKey: key)) }

    /// The item at a position, if this is an array.
    public subscript(index: Int) -> Fragment { Fragment(_stored?.array?._stored(at: index)) }
}

/// A value in a document or below that can be replaced.
public final class MutableFragment: Fragment, MutableFragmentProtocol, MutableDictionaryFragment,
    MutableArrayFragment
{
    /// Nil if the path to the value does not exist.
    private let write: ((_StoredValue) -> Void)?

    init(read: @escaping () -> _StoredValue?, write: ((_StoredValue) -> Void)?) {
        self.write = write
        super.init(read: read)
    }

    /// Sets the value, for all properties. Apps have no use for it.
    public func _set(_ value: _StoredValue) {
        guard let write else {
            LogDomain.database.log(
                .error,
                "a value was set that is in no dictionary or array: set the dictionary or array first"
            )
            return
        }
        write(value)
    }

    /// The value of a key, if this is a dictionary. Setting it otherwise does nothing.
    public override subscript(key: String) -> MutableFragment {
        guard let dictionary = _stored?.dictionary as? MutableDictionaryObject else {
            return MutableFragment(read: { nil }, write: nil)
        }
        return dictionary[key]
    }

    /// The item at a position, if this is an array that has it. Setting it otherwise does nothing.
    public override subscript(index: Int) -> MutableFragment {
        guard let array = _stored?.array as? MutableArrayObject, index >= 0, index < array.count else {
            return MutableFragment(read: { nil }, write: nil)
        }
        return array[index]
    }

    /// The value as an array. One that cannot change is copied when it is set.
    @_disfavoredOverload
    public var array: ArrayObject? {
        get { _stored?.array }
        set { _set(_StoredValue(newValue)) }
    }

    /// The value as a dictionary. One that cannot change is copied when it is set.
    @_disfavoredOverload
    public var dictionary: DictionaryObject? {
        get { _stored?.dictionary }
        set { _set(_StoredValue(newValue)) }
    }
}
