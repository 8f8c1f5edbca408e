import LoveseatModel

/// A class whose objects can be saved as documents.
public typealias DocumentEncodable = Encodable & AnyObject
/// A class whose objects can be made from documents.
public typealias DocumentDecodable = Decodable & AnyObject
/// A class whose objects can be saved as documents and made from them.
public typealias DocumentCodable = Codable & AnyObject

/// The property of a model that is the ID of its document.
///
/// ```swift
/// final class Sight: Codable {
///     @DocumentID var id: String?
///     var city: String
/// }
/// ```
///
/// The ID is not a property of the document. Nil becomes a new ID at the first save. An object that was saved or loaded remembers the
/// revision, by which a later save finds conflicts.
@propertyWrapper
public final class DocumentID: Codable {
    /// A revision of a document.
    struct Link {
        let collection: Collection
        let revision: RevisionID
        let sequence: UInt64
    }

    private var id: String?
    /// The document that the object was loaded from, or last saved as; nil if there is none.
    private(set) var link: Link?

    /// The document's ID; nil until it is set, or the object is saved. Setting it after the object was saved or loaded ends the program.
    public var wrappedValue: String? {
        get { id }
        set {
            if link != nil {
                programmerError("the ID of a document that was saved or loaded cannot be changed")
            }
            id = newValue
        }
    }

    /// Creates an ID. Nil is a new one, at the first save.
    public init(wrappedValue: String?) { id = wrappedValue }

    /// Decodes an ID from text or null.
    ///
    /// - Throws: Errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        id = container.decodeNil() ? nil : try container.decode(String.self)
    }

    /// Encodes the ID as text or null.
    ///
    /// - Throws: Errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let id { try container.encode(id) } else { try container.encodeNil() }
    }

    /// Notes where and as what the object is stored now.
    func note(_ document: Document) {
        id = document.id
        guard let collection = document.collection, let revision = document.revision else {
            link = nil
            return
        }
        link = Link(collection: collection, revision: revision, sequence: document.sequence)
    }

    /// The ID of an object.
    ///
    /// - Throws: `invalidParameter` if its class has none.
    static func of(_ object: AnyObject) throws -> DocumentID {
        let mirrors = sequence(first: Mirror(reflecting: object), next: \.superclassMirror)
        for mirror in mirrors {
            for child in mirror.children {
                if let id = child.value as? DocumentID { return id }
            }
        }
        throw CBLError.make(
            CBLError.invalidParameter,
            "\(type(of: object)) has no ID: declare a property `@DocumentID var id: String?`"
        )
    }
}

extension DocumentID {
    /// The ID of the object that is being encoded as a document, which is left out.
    @TaskLocal private static var omitted: Omitted?

    /// Used only within the call that sets it, on its thread.
    private struct Omitted: @unchecked Sendable { let id: DocumentID }

    /// Runs a closure in which encoding leaves this ID out.
    func omitted<T>(_ body: () throws -> T) rethrows -> T {
        try Self.$omitted.withValue(Omitted(id: self), operation: body)
    }

    var isOmitted: Bool { Self.omitted?.id === self }

    /// Whether the row of a query is being decoded, which has to have a column for the ID.
    @TaskLocal fileprivate static var isRequired = false

    /// Runs a closure in which an ID has to be among what is decoded.
    static func requiring<T>(_ body: () throws -> T) rethrows -> T {
        try $isRequired.withValue(true, operation: body)
    }
}

extension KeyedEncodingContainer {
    /// Encodes the ID of a document, except in the document itself.
    ///
    /// - Throws: Errors of the encoder.
    public mutating func encode(_ value: DocumentID, forKey key: Key) throws {
        if value.isOmitted { return }
        // As a value of its own type it is generic code, which does not come back here.
        func encodeGenerically(_ value: some Encodable) throws { try encode(value, forKey: key) }
        try encodeGenerically(value)
    }
}

extension KeyedDecodingContainer {
    /// Decodes the ID of a document, which the document itself does not contain.
    ///
    /// - Throws: Errors of the decoder.
    public func decode(_ type: DocumentID.Type, forKey key: Key) throws -> DocumentID {
        if DocumentID.isRequired, codingPath.isEmpty, !contains(key) {
            let context = DecodingError.Context(codingPath: codingPath, debugDescription: "there is no ID")
            throw DecodingError.keyNotFound(key, context)
        }
        return try decodeIfPresent(type, forKey: key) ?? DocumentID(wrappedValue: nil)
    }
}
