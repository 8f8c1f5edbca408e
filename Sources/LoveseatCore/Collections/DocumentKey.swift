public import Foundation
public import LoveseatModel

/// A type of IDs that models may have: `String`, `UUID`, and integers.
///
/// The property `id` of a model names its document. A type of your own conforms if it is `Codable` as a string or a number:
///
/// ```swift
/// struct Isbn: DocumentKey {
///     var documentID: String
///     init?(documentID: String) { self.documentID = documentID }
///     init(from decoder: any Decoder) throws { documentID = try decoder.singleValueContainer().decode(String.self) }
///     func encode(to encoder: any Encoder) throws {
///         var container = encoder.singleValueContainer()
///         try container.encode(documentID)
///     }
/// }
/// ```
public protocol DocumentKey: Hashable, Sendable, Codable {
    /// The document's ID. Different keys have different IDs.
    var documentID: String { get }
    /// Creates the key of a document's ID, or returns nil if the ID is not one of a key.
    init?(documentID: String)
}

extension DocumentKey {
    /// The key as JSON, as the property `id` of a model has it.
    var json: JSONValue {
        if self is String || self is UUID { return .string(documentID) }
        // An app's own key may fail to encode: its document's ID then takes its place.
        guard let text = try? JSONText(encoding: self, hooks: .foundation) else { return .string(documentID) }
        return JSONElement(text).value
    }
}

extension String: DocumentKey {
    /// The string itself.
    public var documentID: String { self }
    /// Creates the string.
    public init?(documentID: String) { self = documentID }
}

extension UUID: DocumentKey {
    /// The UUID's text in capitals, as `uuidString` has it.
    public var documentID: String { uuidString }
    /// Creates a UUID from its text, or returns nil for anything else.
    public init?(documentID: String) { self.init(uuidString: documentID) }
}

extension Int: DocumentKey {}
extension Int64: DocumentKey {}
extension UInt64: DocumentKey {}
extension Int32: DocumentKey {}
extension UInt32: DocumentKey {}

extension DocumentKey where Self: FixedWidthInteger {
    /// The number in decimal digits.
    public var documentID: String { String(self) }
    /// Creates a number from decimal digits, or returns nil for anything else, such as a leading zero.
    public init?(documentID: String) {
        guard let number = Self(documentID), String(number) == documentID else { return nil }
        self = number
    }
}

/// A model that remembers the revision that it was read from, so that a save detects that the document was changed meanwhile.
///
/// ```swift
/// struct Note: Codable, Identifiable, RevisionTracking {
///     var id = UUID()
///     var revisionID: RevisionID?
///     var text: String
/// }
/// ```
///
/// Reading a document sets ``revisionID``. It is not stored among the document's properties. Saving a value that was read writes only what
/// differs from the stored document: properties that the type does not know stay.
public protocol RevisionTracking {
    /// The revision that the value was read from or last saved as; nil for a value that was never saved.
    var revisionID: RevisionID? { get set }
}

/// The members of models besides the properties of their documents.
enum ModelMembers {
    static let id = "id"
    static let revision = "revisionID"

    /// The members that are added to a document's JSON for a model that asks for them.
    static func added(for type: any Decodable.Type, of document: Document, _ element: JSONElement)
        -> [ExactText: JSONElement]
    {
        let missing = missing(for: type, in: element)
        let own = own(for: type, of: document, element)
        return missing.isEmpty ? own : missing.merging(own) { _, own in own }
    }

    /// The members of a model that are not properties of its document.
    static func own(for type: any Decodable.Type, of document: Document, _ element: JSONElement)
        -> [ExactText: JSONElement]
    {
        var added: [ExactText: JSONElement] = [:]
        if element[id] == nil {
            added[ExactText(id)] = json(ofID: document.id, for: type)
        }
        if type is any RevisionTracking.Type {
            let value = document.revisionID.map { JSONValue.string($0.text) } ?? .null
            added[ExactText(revision)] = JSONElement(JSONText(canonical: value))
        }
        return added
    }

    /// A document's ID in the form that a type decodes it from.
    static func json(ofID id: String, for type: any Decodable.Type) -> JSONElement {
        var value = JSONValue.string(id)
        if let model = type as? any Identifiable.Type { value = key(of: model, id) ?? value }
        return JSONElement(JSONText(canonical: value))
    }

    /// The ID in the form that the model's `id` is decoded from; nil if the ID is not one of the model's.
    private static func key<T: Identifiable>(of model: T.Type, _ id: String) -> JSONValue? {
        (T.ID.self as? any DocumentKey.Type)?.init(documentID: id)?.json
    }
}
