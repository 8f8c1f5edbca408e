private import Synchronization

/// A document: an ID, a revision and JSON properties.
///
/// A document is a value: changing a copy changes nothing else, and nothing is stored until it is saved. Reading a property decodes
/// only that property.
///
/// ```swift
/// if var document = try sights.document(id: "tower") {
///     document["likes"] = 4
///     try sights.save(&document)
/// }
/// ```
public struct Document: Sendable {
    /// The document's ID, unique in its collection.
    public let id: String
    /// The revision that this value was read from or last saved as; nil if the document was never saved.
    public package(set) var revisionID: RevisionID? { didSet { if revisionID != oldValue { version = nil } } }
    /// The version of that revision; nil if it has none.
    package var version: Version?
    /// The sequence of that revision in its collection; 0 if the document was never saved.
    public package(set) var sequence: UInt64
    /// The time of that revision in nanoseconds since 1970 if it has a version, as in databases that replicate with Couchbase Lite 4, and the
    /// number of edits that made it otherwise; 0 if the document was never saved.
    public var timestamp: UInt64 { version?.time ?? revisionID.map { UInt64($0.generation) } ?? 0 }
    /// Where it was read from or last saved to; nil if it was never saved.
    package var origin: DocumentOrigin?
    private var content: Content

    private enum Content: Sendable {
        case stored(LazyElement)
        case edited(JSONObject)
    }

    /// Creates a document that was not saved yet.
    ///
    /// The ID is validated when the document is saved: 1 to 240 bytes, not beginning with `_`, no control characters.
    public init(id: String, _ properties: JSONObject = [:]) {
        self.id = id
        sequence = 0
        content = .edited(properties)
    }

    /// Creates a document that was not saved yet from JSON text, which has to be an object.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the text is not JSON, repeats a key in an object,
    ///   or is not an object (at offset 0).
    public init(id: String, json: String) throws(LoveseatError) {
        try self.init(id: id, json: Array(json.utf8))
    }

    /// Creates a document that was not saved yet from JSON text in UTF-8, which has to be an object.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the text is not JSON, repeats a key in an object,
    ///   or is not an object (at offset 0).
    public init(id: String, json: [UInt8]) throws(LoveseatError) {
        let element: JSONElement
        do throws(JSONError) {
            element = try JSONElement(scanning: json, limits: JSONLimits(refusesDuplicateKeys: true))
        } catch { throw LoveseatError(error, in: "the text of document \"\(id)\"") }
        try self.init(id: id, element: element)
    }

    /// Creates a document that was not saved yet from an object within JSON text that was parsed before. Of a key that occurs twice, the
    /// last value is saved.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the element is not an object (at offset 0).
    public init(id: String, element: JSONElement) throws(LoveseatError) {
        guard element.kind == .object else {
            throw LoveseatError(
                JSONError(.unexpectedByte, at: 0),
                in: "document \"\(id)\" must be a JSON object"
            )
        }
        self.id = id
        sequence = 0
        content = .stored(LazyElement(JSONText(trusted: Array(element.bytes)), indexed: element))
    }

    /// A document as it was read.
    ///
    /// `indexed`: the body's element, if it has been indexed already.
    package init(
        id: String,
        revisionID: RevisionID?,
        version: Version? = nil,
        sequence: UInt64,
        body: JSONText,
        indexed: JSONElement? = nil
    ) {
        self.id = id
        self.revisionID = revisionID
        self.version = version
        self.sequence = sequence
        content = .stored(LazyElement(body, indexed: indexed))
    }

    /// The value of a property, or nil if the property does not exist. Setting nil removes the property; set
    /// ``JSONValue/null`` for a JSON null.
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

    /// Returns the blob reference in a property, or nil if the property does not exist or does not refer to a blob.
    public func blob(_ key: String) -> BlobReference? { BlobReference(self[key]) }

    /// All properties of the document. Reading this decodes all of them, so read single properties with the subscript.
    public var properties: JSONObject {
        get {
            switch content {
            case .stored(let text): text.element.value.object ?? [:]
            case .edited(let properties): properties
            }
        }
        set { content = .edited(newValue) }
    }

    /// The properties as JSON text: as stored, or in canonical form after a change.
    public var json: JSONText {
        switch content {
        case .stored(let text): text.text
        case .edited(let properties): JSONText(canonical: .object(properties))
        }
    }

    /// The properties for reading only, each decoded when it is read. Use it for nested values of large documents.
    public var element: JSONElement {
        switch content {
        case .stored(let text): text.element
        case .edited(let properties): JSONElement(JSONText(canonical: .object(properties)))
        }
    }

    /// Whether both have the same ID and the same properties, and all of them can be saved.
    package func hasSameContent(as other: Document) -> Bool {
        guard id.isExactly(other.id) else { return false }
        if case .stored(let text) = content, case .stored(let otherText) = other.content, text === otherText {
            return true
        }
        // A document in which an app has set a number that JSON cannot hold cannot be saved.
        guard let body = try? canonicalBody() else { return false }
        return body == (try? other.canonicalBody())
    }

    /// The body to store: canonical JSON.
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
    private let indexed: Mutex<JSONElement?>

    init(_ text: JSONText, indexed: JSONElement? = nil) {
        self.text = text
        self.indexed = Mutex(indexed)
    }

    var element: JSONElement {
        indexed.withLock { indexed in
            if let indexed { return indexed }
            let element = JSONElement(text)
            indexed = element
            return element
        }
    }
}
