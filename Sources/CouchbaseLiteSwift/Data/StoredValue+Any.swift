import Foundation
import LoveseatCore
import LoveseatModel

/// Values that apps set.
extension _StoredValue {
    static var null: _StoredValue { _StoredValue(.scalar(.null)) }

    /// A value of one of the types that documents can contain; anything else is a programmer error. Nil is null.
    init(any value: consuming Any?) {
        guard let value = consume value else {
            self = .null
            return
        }
        if let scalar = Self.scalar(value) {
            self.init(.scalar(scalar))
        } else if let stored = Self.object(value) ?? Self.copied(value) {
            self = stored
        } else {
            programmerError("a document cannot contain a value of type \(type(of: value))")
        }
    }

    /// Strings, booleans, numbers, dates and null.
    private static func scalar(_ value: Any) -> JSONValue? { common(value) ?? converted(value) }

    /// The types that apps set most, found without a cast that makes an NSNumber.
    private static func common(_ value: Any) -> JSONValue? {
        let type = Swift.type(of: value)
        if type == String.self { return (value as? String).map { .string($0) } }
        if type == Int.self { return (value as? Int).map { .number(.integer(Int64($0))) } }
        if type == Double.self { return (value as? Double).map { JSONValue($0) } }
        if type == Bool.self { return (value as? Bool).map { .bool($0) } }
        return nil
    }

    private static func converted(_ value: Any) -> JSONValue? {
        switch value {
        case let text as String: .string(text)
        // Before Swift's own numbers, because an NSNumber also casts to these.
        case let number as NSNumber: JSONValue(number)
        case let value as Bool: .bool(value)
        case let value as Double: JSONValue(value)
        case let value as Float: JSONValue(Double(value))
        case let value as any BinaryInteger: JSONValue(integer: value)
        case let date as Date: JSONValue(date)
        case is NSNull: .null
        // An optional that is nil, within a value of type Any.
        case Optional<Any>.none: .null
        case let text as Substring: .string(String(text))
        case let text as NSString: .string(text as String)
        default: nil
        }
    }

    /// The objects of this module. Those that can change are kept by reference.
    private static func object(_ value: Any) -> _StoredValue? {
        switch value {
        case let dictionary as MutableDictionaryObject: _StoredValue(.dictionary(dictionary))
        case let array as MutableArrayObject: _StoredValue(.array(array))
        case let dictionary as DictionaryObject: _StoredValue(.dictionary(dictionary.toMutable()))
        case let array as ArrayObject: _StoredValue(.array(array.toMutable()))
        case let blob as Blob: _StoredValue(.blob(blob))
        case let fragment as Fragment: fragment._stored ?? .null
        default: nil
        }
    }

    /// Swift's and Foundation's collections, which are copied.
    private static func copied(_ value: Any) -> _StoredValue? {
        switch value {
        case let members as [String: Any]:
            if Blob.isBlob(properties: members), let blob = Blob(properties: members) {
                _StoredValue(.blob(blob))
            } else {
                _StoredValue(.dictionary(MutableDictionaryObject(data: members)))
            }
        case let items as [Any]: _StoredValue(.array(MutableArrayObject(data: items)))
        case let items as NSArray: _StoredValue(.array(MutableArrayObject(data: items.map { $0 })))
        case let members as NSDictionary:
            copied(
                Dictionary(
                    members.compactMap { key, value in (key as? String).map { ($0, value) } },
                    uniquingKeysWith: { _, last in last }
                )
            )
        case let data as Data:
            _StoredValue(.blob(Blob(contentType: "application/octet-stream", data: data)))
        default: nil
        }
    }
}

extension JSONValue {
    /// A boolean or a number, as it was boxed.
    init(_ number: NSNumber) {
        switch number.objCType.pointee {
        // `c` is the type of a boolean, and of Int8.
        case 0x63 where number.int64Value & 1 == number.int64Value: self = .bool(number.boolValue)
        case 0x42: self = .bool(number.boolValue)
        case 0x64, 0x66: self.init(number.doubleValue)
        case 0x51: self.init(number.uint64Value)
        default: self.init(number.int64Value)
        }
    }

    fileprivate init(integer value: some BinaryInteger) { self.init(value) }

    /// The date as ISO 8601 text in UTC.
    init(_ date: Date) {
        guard let text = try? date.iso8601Text() else {
            programmerError("a document cannot contain a date outside of the years 0 to 9999")
        }
        self = .string(text)
    }
}
