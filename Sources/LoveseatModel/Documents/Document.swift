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
    private var content: Content

    private enum Content: Sendable {
        case stored(LazyElement)
        case edited([String: JSONValue])
    }

    /// A document to be saved for the first time.
    public init(id: String, _ properties: [String: JSONValue] = [:]) {
        self.id = id
        sequence = 0
        content = .edited(properties)
    }

    /// A document to be saved for the first time, from JSON text that must be an object.
    ///
    /// - Throws: ``JSONError`` where the text is not JSON, or is not an object (at offset 0).
    public init(id: String, json: String) throws(JSONError) {
        let element = try JSONElement(parsing: Array(json.utf8))
        guard element.kind == .object else { throw JSONError(.unexpectedByte, at: 0) }
        self.init(id: id, revisionID: nil, sequence: 0, body: JSONText(trusted: Array(json.utf8)))
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
    public var properties: [String: JSONValue] {
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
    package var canonicalBody: JSONText {
        switch content {
        case .stored(let text): JSONText(canonical: text.element)
        case .edited(let properties): JSONText(canonical: .object(properties))
        }
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
