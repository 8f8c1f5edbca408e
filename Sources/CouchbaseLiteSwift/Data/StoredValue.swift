import Foundation
import LoveseatCore
import LoveseatModel

/// A value as a document, dictionary, array or row holds it.
///
/// The getters of all of them are written over this type. Apps have no use for it.
public struct _StoredValue {
    enum Kind {
        /// A value in JSON text that is not decoded yet.
        case element(JSONElement)
        /// Null, a boolean, a number or a string that the app set.
        case scalar(JSONValue)
        case dictionary(DictionaryObject)
        case array(ArrayObject)
        case blob(Blob)
    }

    let kind: Kind

    init(_ kind: Kind) { self.kind = kind }
}

// MARK: Reading

extension _StoredValue {
    /// The value as apps get it: an `NSNumber`, a `String`, an `NSNull`, or an object of this module.
    var any: Any {
        switch kind {
        case .element(let element): Self.any(element)
        case .scalar(let value): Self.any(value)
        case .dictionary(let dictionary): dictionary
        case .array(let array): array
        case .blob(let blob): blob
        }
    }

    /// The value without this module's objects, except for blobs.
    var plain: Any {
        switch kind {
        case .element, .scalar, .blob: any
        case .dictionary(let dictionary): dictionary.contents.plain
        case .array(let array): array.contents.plain
        }
    }

    private static func any(_ element: JSONElement) -> Any {
        switch element.kind {
        case .null: NSNull()
        case .boolean: NSNumber(value: element.bool ?? false)
        case .number: NSNumber(json: element.number ?? .integer(0))
        case .string: element.string ?? ""
        // Containers wrap these before they hand them out.
        case .array, .object: any(element.value)
        }
    }

    static func any(_ value: JSONValue) -> Any {
        switch value {
        case .null: NSNull()
        case .bool(let value): NSNumber(value: value)
        case .number(let number): NSNumber(json: number)
        case .string(let text): text
        case .array(let items): items.map { any($0) }
        case .object(let members):
            Dictionary(members.map { ($0.key, any($0.value)) }, uniquingKeysWith: { _, last in last })
        }
    }

    var string: String? {
        switch kind {
        case .element(let element): element.string
        case .scalar(let value): value.string
        case .dictionary, .array, .blob: nil
        }
    }

    private var jsonNumber: JSONNumber? {
        switch kind {
        case .element(let element): element.number
        case .scalar(.number(let number)): number
        case .scalar, .dictionary, .array, .blob: nil
        }
    }

    private var bool: Bool? {
        switch kind {
        case .element(let element): element.bool
        case .scalar(let value): value.bool
        case .dictionary, .array, .blob: nil
        }
    }

    var isNull: Bool {
        switch kind {
        case .element(let element): element.isNull
        case .scalar(let value): value.isNull
        case .dictionary, .array, .blob: false
        }
    }

    /// The number; of a boolean, 1 or 0.
    var number: NSNumber? { jsonNumber.map { NSNumber(json: $0) } ?? bool.map { NSNumber(value: $0) } }

    /// The number without its fraction, or the nearest one that fits.
    var int64: Int64 {
        if case .element(let element) = kind, let int = element.int { return Int64(clamping: int) }
        switch jsonNumber {
        case .integer(let value): return value
        case .unsigned: return .max
        case .double(let value): return Int64(truncating: value)
        case .text(let text): return Int64(truncating: Double(text) ?? 0)
        case nil: return bool == true ? 1 : 0
        }
    }

    var double: Double { jsonNumber?.double ?? (bool == true ? 1 : 0) }

    /// True for everything but null, false and zero.
    var boolean: Bool {
        if let bool { return bool }
        if let jsonNumber { return jsonNumber.double != 0 }
        return !isNull
    }

    var date: Date? { string.flatMap { Date(iso8601: $0) } }

    var dictionary: DictionaryObject? {
        if case .dictionary(let dictionary) = kind { dictionary } else { nil }
    }
    var array: ArrayObject? { if case .array(let array) = kind { array } else { nil } }
    var blob: Blob? { if case .blob(let blob) = kind { blob } else { nil } }
}

extension Int64 {
    /// The number without its fraction, or the nearest one that fits.
    init(truncating value: Double) {
        self = Int64(exactly: value.rounded(.towardZero)) ?? (value > 0 ? .max : .min)
    }
}

extension NSNumber {
    /// A number that casts to every type that represents it exactly.
    convenience init(json number: JSONNumber) {
        switch number {
        case .integer(let value): self.init(value: value)
        case .unsigned(let value): self.init(value: value)
        case .double, .text: self.init(value: number.double)
        }
    }
}

// MARK: Containers

extension _StoredValue {
    /// An array or an object in JSON text as an object of this module.
    init(wrapping element: JSONElement, isMutable: Bool, _ database: EngineDatabase?) {
        if element.kind == .array {
            let contents = ArrayContents(element, isMutable: isMutable, database)
            self.init(.array(isMutable ? MutableArrayObject(contents) : ArrayObject(contents)))
        } else if let reference = Self.reference(element) {
            self.init(.blob(Blob(reference, database)))
        } else {
            let contents = DictionaryContents(element, isMutable: isMutable, database)
            self.init(
                .dictionary(isMutable ? MutableDictionaryObject(contents) : DictionaryObject(contents))
            )
        }
    }

    private static func reference(_ element: JSONElement) -> BlobReference? {
        element[Blob.typeProperty]?.string.isExactly(Blob.blobType) == true
            ? BlobReference(element.value) : nil
    }

    /// Whether it differs from what it was read from.
    var isChanged: Bool {
        switch kind {
        case .element, .scalar, .blob: false
        case .dictionary(let dictionary): dictionary.contents.isChanged
        case .array(let array): array.contents.isChanged
        }
    }

    /// The value as documents are stored.
    var json: JSONValue {
        switch kind {
        case .element(let element): element.value
        case .scalar(let value): value
        case .dictionary(let dictionary): .object(dictionary.contents.json)
        case .array(let array): .array(array.contents.json)
        case .blob(let blob): blob.json
        }
    }

    /// A copy that shares no object which can change.
    var copy: _StoredValue {
        switch kind {
        case .element, .scalar, .blob: self
        case .dictionary(let dictionary): _StoredValue(.dictionary(dictionary.toMutable()))
        case .array(let array): _StoredValue(.array(array.toMutable()))
        }
    }

    /// Stores the blobs in it.
    func install(into database: EngineDatabase) throws {
        switch kind {
        case .element, .scalar: break
        case .dictionary(let dictionary): try dictionary.contents.install(into: database)
        case .array(let array): try array.contents.install(into: database)
        case .blob(let blob): try blob.install(into: database)
        }
    }
}

// MARK: Equality

extension _StoredValue {
    /// Whether both are equal; numbers are equal if they have the same value.
    func isEqual(to other: _StoredValue) -> Bool {
        switch (kind, other.kind) {
        case (.dictionary(let one), .dictionary(let other)): one.contents.isEqual(to: other.contents)
        case (.array(let one), .array(let other)): one.contents.isEqual(to: other.contents)
        case (.blob(let one), .blob(let other)): one == other
        case (.dictionary, _), (.array, _), (.blob, _), (_, .dictionary), (_, .array), (_, .blob): false
        case (.element, _), (.scalar, _): Self.isEqual(scalar, other.scalar)
        }
    }

    private var scalar: JSONValue {
        switch kind {
        case .element(let element): element.value
        case .scalar(let value): value
        case .dictionary, .array, .blob: .null
        }
    }

    private static func isEqual(_ one: JSONValue, _ other: JSONValue) -> Bool {
        guard one != other, case .number(let one) = one, case .number(let other) = other else {
            return one == other
        }
        // Two integers that differ may have the same nearest double.
        switch (one, other) {
        case (.integer, .integer), (.unsigned, .unsigned): return false
        default: return one.double == other.double
        }
    }
}
