/// A dictionary in a document that cannot be changed.
public class DictionaryObject: DictionaryProtocol, Equatable, Hashable, Sequence {
    let contents: DictionaryContents

    init(_ contents: DictionaryContents) { self.contents = contents }

    /// The number of members.
    public var count: Int { contents.count }

    /// The keys, in no particular order.
    public var keys: [String] { contents.keys }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(forKey key: String) -> _StoredValue? { contents.stored(key) }

    /// The members as values of Swift and Foundation, blobs excepted.
    public func toDictionary() -> [String: Any] { contents.plain }

    /// The dictionary as JSON text. One that can be changed has none, which ends the program.
    public func toJSON() -> String { contents.text }

    /// A copy that can be changed.
    public func toMutable() -> MutableDictionaryObject { MutableDictionaryObject(contents.copy()) }

    /// Returns an iterator over the keys.
    public func makeIterator() -> IndexingIterator<[String]> { keys.makeIterator() }

    /// Returns whether both have equal members.
    public static func == (lhs: DictionaryObject, rhs: DictionaryObject) -> Bool {
        lhs.contents.isEqual(to: rhs.contents)
    }

    /// Hashes the number of members, since two numbers of different types may be equal.
    public func hash(into hasher: inout Hasher) { hasher.combine(count) }
}

/// A dictionary that can be changed, to be set in a document.
public final class MutableDictionaryObject: DictionaryObject, MutableDictionaryProtocol {
    override init(_ contents: DictionaryContents) { super.init(contents) }

    /// Creates an empty dictionary.
    public convenience init() { self.init(DictionaryContents(nil, isMutable: true, nil)) }

    /// Creates a dictionary with a copy of the members.
    public convenience init(data: [String: Any]) {
        self.init()
        contents.replace(with: data)
    }

    /// Creates a dictionary from the text of a JSON object.
    ///
    /// - Throws: `invalidJSON`.
    public convenience init(json: String) throws {
        self.init()
        try contents.replace(with: json)
    }

    /// The members, which all setters change. Apps have no use for it.
    public var _members: _DictionaryMembers { _DictionaryMembers(contents: contents) }

    /// Changes a member. Apps have no use for it.
    public func _set(_ value: consuming _StoredValue, forKey key: String) { contents.set(value, key) }
}
