import Foundation

/// A document that can be changed and saved.
///
/// One thread at a time may use it.
public final class MutableDocument: Document, MutableDictionaryProtocol {
    override init(_ id: String, _ contents: DictionaryContents) { super.init(id, contents) }

    /// Creates an empty document with a new ID.
    public convenience init() { self.init(id: nil) }

    /// Creates an empty document. Nil is a new ID, a UUID.
    public convenience init(id: String?) {
        self.init(id ?? UUID().uuidString, DictionaryContents(nil, isMutable: true, nil))
    }

    /// Creates a document with a new ID and a copy of the properties.
    public convenience init(data: [String: Any]) { self.init(id: nil, data: data) }

    /// Creates a document with a copy of the properties. Nil is a new ID.
    public convenience init(id: String?, data: [String: Any]) {
        self.init(id: id)
        contents.replace(with: data)
    }

    /// Creates a document with a new ID from the text of a JSON object.
    ///
    /// - Throws: `invalidJSON`.
    public convenience init(json: String) throws { try self.init(id: nil, json: json) }

    /// Creates a document from the text of a JSON object. Nil is a new ID.
    ///
    /// - Throws: `invalidJSON`.
    public convenience init(id: String?, json: String) throws {
        self.init(id: id)
        try contents.replace(with: json)
    }

    /// The document itself.
    public override func toMutable() -> MutableDocument { self }

    /// The members, which all setters change. Apps have no use for it.
    public var _members: _DictionaryMembers { _DictionaryMembers(contents: contents) }

    /// Changes a member. Apps have no use for it.
    public func _set(_ value: consuming _StoredValue, forKey key: String) { contents.set(value, key) }
}
