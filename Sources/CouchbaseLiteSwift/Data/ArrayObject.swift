/// An array in a document that cannot be changed.
public class ArrayObject: ArrayProtocol, Equatable, Hashable, Sequence {
    let contents: ArrayContents

    init(_ contents: ArrayContents) { self.contents = contents }

    /// The number of items.
    public var count: Int { contents.count }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(at index: Int) -> _StoredValue? { contents.stored(index) }

    /// The items as values of Swift and Foundation, blobs excepted.
    public func toArray() -> [Any] { contents.plain }

    /// The array as JSON text. One that can be changed has none, which ends the program.
    public func toJSON() -> String { contents.text }

    /// A copy that can be changed.
    public func toMutable() -> MutableArrayObject { MutableArrayObject(contents.copy()) }

    /// Returns an iterator over the values of the items.
    public func makeIterator() -> AnyIterator<Any> {
        var index = 0
        return AnyIterator {
            defer { index += 1 }
            return self.value(at: index)
        }
    }

    /// Returns whether both have equal items in the same order.
    public static func == (lhs: ArrayObject, rhs: ArrayObject) -> Bool {
        lhs.contents.isEqual(to: rhs.contents)
    }

    /// Hashes the number of items, since two numbers of different types may be equal.
    public func hash(into hasher: inout Hasher) { hasher.combine(count) }
}

/// An array that can be changed, to be set in a document.
public final class MutableArrayObject: ArrayObject, MutableArrayProtocol {
    override init(_ contents: ArrayContents) { super.init(contents) }

    /// Creates an empty array.
    public convenience init() { self.init(ArrayContents(nil, isMutable: true, nil)) }

    /// Creates an array with a copy of the items.
    public convenience init(data: [Any]) {
        self.init()
        contents.replace(with: data)
    }

    /// Creates an array from the text of a JSON array.
    ///
    /// - Throws: `invalidJSON`.
    public convenience init(json: String) throws {
        self.init()
        try contents.replace(with: json)
    }

    /// The items, which all setters change. Apps have no use for it.
    public var _items: _ArrayItems { _ArrayItems(contents: contents) }
}
