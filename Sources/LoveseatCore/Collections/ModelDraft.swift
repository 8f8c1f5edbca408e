import LoveseatModel

/// A document that is about to be saved, made from a model.
struct ModelDraft {
    var document: Document
    var concurrencyControl: ConcurrencyControl
    /// Whether the document is stored like this already.
    private(set) var isUnchanged = false

    init(_ document: Document, _ concurrencyControl: ConcurrencyControl) {
        self.document = document
        self.concurrencyControl = concurrencyControl
    }

    /// Creates a draft from a model that remembers its revision. It is written into the stored document, which must not change before it is
    /// saved.
    ///
    /// `read`: reads the stored document, outside of any transaction but the app's.
    init<T: Encodable & Identifiable>(
        _ value: T,
        _ concurrencyControl: ConcurrencyControl,
        _ read: (String) throws(LoveseatError) -> Document?
    ) throws(LoveseatError) where T.ID: DocumentKey {
        self.init(try Document(encoding: value), concurrencyControl)
        // A value that was never read, or whose document is gone, has changed or does not fit the type, is saved as it is.
        guard let base = document.revisionID, T.self is any Decodable.Type,
            let stored = try read(document.id),
            concurrencyControl == .lastWriteWins || stored.revisionID == base,
            let merged = try document.merged(into: stored, as: T.self)
        else { return }
        isUnchanged = merged.hasSameContent(as: stored)
        document = merged
        self.concurrencyControl = .failOnConflict
    }
}

extension Document {
    /// The stored document, in which the properties that a type knows are replaced by those of this one; nil if the stored one does not fit
    /// the type, so that it is unknown which properties the type knows.
    fileprivate func merged<T: Encodable & Identifiable>(into stored: Document, as type: T.Type)
        throws(LoveseatError) -> Document? where T.ID: DocumentKey
    {
        guard let known = T.self as? any Decodable.Type, let before = stored.value(known, as: T.self) else {
            return nil
        }
        let old = try Document(encoding: before).properties
        var merged = stored
        let named = stored.properties.renamed(for: type)
        if let changed = named.applying(changesFrom: old, to: properties) {
            merged.properties = changed
        }
        return merged
    }

    /// Nil for a document that does not fit the type.
    private func value<D: Decodable, T>(_ type: D.Type, as model: T.Type) -> T? { (try? decode(type)) as? T }

    /// The properties of this document, written into those of the stored one if the type remembers revisions.
    func keeping<T: Encodable & Identifiable>(what type: T.Type, doesNotKnowOf stored: Document?)
        throws(LoveseatError) -> Document where T.ID: DocumentKey
    {
        guard type is any RevisionTracking.Type, let stored else { return self }
        return try merged(into: stored, as: type) ?? self
    }
}
