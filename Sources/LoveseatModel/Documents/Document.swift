private import Synchronization

/// A document: an ID, a revision, and JSON properties. A value that you read, change and save.
///
/// Reading a property decodes that property only.
///
/// ```swift
/// var document = try sights.document(id: "tower")!
/// document["likes"] = 4
/// try sights.save(&document)
/// ```
public struct Document: Sendable {
    /// The ID, unique in its collection.
    public let id: String
    /// The revision that this value was read from or last saved as; nil if it was never saved.
    public package(set) var revisionID: RevisionID?
    /// The collection's sequence at which that revision was saved; 0 if never.
    public package(set) var sequence: UInt64
    /// Where it was read from or last saved to; nil if it was never saved.
    package var origin: DocumentOrigin?
    private var content: Content

    private enum Content: Sendable {
        case stored(LazyElement)
        case edited(JSONObject)
    }

    /// A document to be saved for the first time.
    public init(id: String, _ properties: JSONObject = [:]) {
        self.id = id
        sequence = 0
        content = .edited(properties)
    }

    /// A document to be saved for the first time, from JSON text that must be an object.
    ///
    /// - Throws: ``JSONError`` where the text is not JSON, repeats a key in an object, or is not an object (at offset 0).
    public init(id: String, json: String) throws(JSONError) { try self.init(id: id, json: Array(json.utf8)) }

    /// A document to be saved for the first time, from JSON text in UTF-8 that must be an object.
    ///
    /// - Throws: ``JSONError`` where the text is not JSON, repeats a key in an object, or is not an object (at offset 0).
    public init(id: String, json: [UInt8]) throws(JSONError) {
        let element = try JSONElement(parsing: json, limits: JSONLimits(refusesDuplicateKeys: true))
        guard element.kind == .object else { throw JSONError(.unexpectedByte, at: 0) }
        self.init(id: id, revisionID: nil, sequence: 0, body: JSONText(trusted: json))
    }

    /// A document as it was read.
    package init(id: String, revisionID: RevisionID?, sequence: UInt64, body: JSONText) {
        self.id = id
        self.revisionID = revisionID
        self.sequence = sequence
        content = .stored(LazyElement(body))
    }

    /// The value of a property; nil if there is none. Setting nil removes it; set ``JSONValue/null`` to keep a null.
    public subscript(key: String) -> JSONValue? {
        get {
            switch content {
            case .stored(let text): text.element[key]?.value
            case .edited(let properties): properties[key]
            }
        }
        set {
            var changed = properties
            content = .edited([:])
            changed[key] = newValue
            content = .edited(changed)
        }
    }

    /// The blob in a property; nil if the property is none.
    public func blob(_ key: String) -> BlobReference? { BlobReference(self[key]) }

    /// All properties.
    public var properties: JSONObject {
        get {
            switch content {
            case .stored(let text): text.element.value.object ?? [:]
            case .edited(let properties): properties
            }
        }
        set { content = .edited(newValue) }
    }

    /// The properties as JSON text: as stored, or canonical after a change.
    public var json: JSONText {
        switch content {
        case .stored(let text): text.text
        case .edited(let properties): JSONText(canonical: .object(properties))
        }
    }

    /// The properties, decoded as far as they are looked at.
    public var element: JSONElement {
        switch content {
        case .stored(let text): text.element
        case .edited(let properties): JSONElement(JSONText(canonical: .object(properties)))
        }
    }

    /// What is stored when this is saved: canonical JSON.
    ///
    /// - Throws: ``JSONError`` if a value is one that JSON cannot hold.
    package func canonicalBody() throws(JSONError) -> JSONText {
        switch content {
        case .stored(let text): try JSONText(validating: text.element)
        case .edited(let properties): try JSONText(validating: .object(properties))
        }
    }
}

/// The collection of an open database that a document belongs to.
package struct DocumentOrigin: Hashable, Sendable {
    /// The number of the open database within this process, never used twice.
    package let database: UInt64
    package let collection: Int64

    package init(database: UInt64, collection: Int64) {
        self.database = database
        self.collection = collection
    }
}

/// Text that is indexed when it is first looked at.
private final class LazyElement: Sendable {
    let text: JSONText
    private let indexed = Mutex<JSONElement?>(nil)

    init(_ text: JSONText) { self.text = text }

    var element: JSONElement {
        indexed.withLock { indexed in
            if let indexed { return indexed }
            let element = JSONElement(text)
            indexed = element
            return element
        }
    }
}
