import LoveseatModel

/// A document as it was read. It cannot be changed; ``toMutable()`` makes a copy that can.
///
/// Several threads may read it at a time.
public class Document: DictionaryProtocol, Equatable, Hashable, Sequence {
    /// The document's ID, unique in its collection.
    public let id: String
    /// The collection that the document was read from or saved in; nil until it is saved.
    public internal(set) var collection: Collection?
    let contents: DictionaryContents
    /// The revision that it was read as or saved as; nil until it is saved.
    var revision: RevisionID? { didSet { if revision != oldValue { version = nil } } }
    /// The version of that revision; nil if it has none.
    private(set) var version: Version?

    /// The ID of the revision; nil until the document is saved.
    ///
    /// It is a version, such as `18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw`, if the revision has one, as in databases that replicate with Couchbase
    /// Lite 4. Own versions name their database, too, where Couchbase Lite writes `*`.
    public var revisionID: String? { version?.text ?? revision?.text }
    /// The sequence of the revision in its collection; 0 until the document is saved.
    public internal(set) var sequence: UInt64 = 0
    /// A number that is greater for later revisions of a document, whichever database they were made in; 0 until the document is saved.
    ///
    /// It is a time in nanoseconds since 1970 if the revision has a version, as in databases that replicate with Couchbase Lite 4, and the number
    /// of edits that made the revision otherwise, as with Couchbase Lite for documents of its versions before 4. The two cannot be compared: an edit
    /// that a database without versions makes has a smaller number than the version before it.
    public var timestamp: UInt64 { version?.time ?? revision.map { UInt64($0.generation) } ?? 0 }

    init(_ id: String, _ contents: DictionaryContents) {
        self.id = id
        self.contents = contents
    }

    /// A document as it is stored.
    convenience init(_ document: EngineDocument, in collection: Collection) {
        let contents = DictionaryContents(
            document.element,
            isMutable: false,
            collection.database.engine,
            storedText: document.json
        )
        self.init(document.id, contents)
        note(document, in: collection)
    }

    /// Notes where and as what the document is stored now.
    func note(_ document: EngineDocument, in collection: Collection) {
        revision = document.revisionID
        version = document.version
        sequence = document.sequence
        self.collection = collection
    }

    /// The number of properties.
    public var count: Int { contents.count }

    /// The names of the properties, in no particular order.
    public var keys: [String] { contents.keys }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(forKey key: String) -> _StoredValue? { contents.stored(key) }

    /// The properties as values of Swift and Foundation, blobs excepted.
    public func toDictionary() -> [String: Any] { contents.plain }

    /// The properties as JSON text. A document that can be changed has none, which ends the program.
    public func toJSON() -> String { contents.text }

    /// A copy that can be changed and saved. A ``MutableDocument`` returns itself.
    public func toMutable() -> MutableDocument {
        let copy = MutableDocument(id, contents.copy())
        copy.revision = revision
        copy.version = version
        copy.sequence = sequence
        copy.collection = collection
        return copy
    }

    /// The IDs of the stored revision and its ancestors, the newest first, with commas; nil until the document is saved. For tests.
    ///
    /// If the revision has a version, this is its version vector, and behind it the revisions from before the first version.
    public func _getRevisionHistory() -> String? {
        guard revision != nil, let collection else { return nil }
        // A property of tests has no way to report an error.
        guard let state = try? collection.state(of: id), let name = state.rev else { return nil }
        if state.vector.isEmpty { return state.revisions.map(\.text).joined(separator: ",") }
        guard let older = state.history else { return name }
        return "\(name)\(older.contains(";") ? ", " : "; ")\(older)"
    }

    /// Returns an iterator over the names of the properties.
    public func makeIterator() -> IndexingIterator<[String]> { keys.makeIterator() }

    /// Returns whether both have the same ID in the same collection, and equal properties. The revision does not matter.
    public static func == (lhs: Document, rhs: Document) -> Bool {
        if lhs === rhs { return true }
        return lhs.id.isExactly(rhs.id) && lhs.hasSamePlace(as: rhs) && lhs.contents.isEqual(to: rhs.contents)
    }

    private func hasSamePlace(as other: Document) -> Bool {
        guard let collection, let others = other.collection else {
            return collection == nil && other.collection == nil
        }
        return collection.hasSameName(as: others)
    }

    /// Hashes the ID.
    public func hash(into hasher: inout Hasher) { hasher.combine(ExactText(id)) }
}
