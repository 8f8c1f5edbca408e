public import LoveseatModel
import LoveseatStorage

/// Documents as models; see the calls of the same names of ``Collection``.
extension WriteTransaction {
    /// Saves a value as a document, replacing all properties of a document that exists; of a ``RevisionTracking`` value that was read, those
    /// that it knows.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and the document was changed since a ``RevisionTracking`` value was
    ///   read, or exists for another value; true otherwise.
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded, or not as a JSON object; otherwise as
    ///   ``Collection/save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func save<T: Encodable & Identifiable>(
        _ value: T,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        try saved(value, in: collection, concurrencyControl) != nil
    }

    /// Saves a value as a document, and updates its ``RevisionTracking/revisionID``.
    ///
    /// - Returns: False if the document was changed since the value was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``Collection/save(_:concurrencyControl:)-t2kq``, and `encodingError` if the value cannot be encoded.
    @discardableResult
    public func save<T: Encodable & Identifiable & RevisionTracking>(
        _ value: inout T,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        guard let document = try saved(value, in: collection, concurrencyControl) else { return false }
        value.revisionID = document.revisionID
        return true
    }

    /// The document that a value was saved as; nil after a conflict.
    private func saved<T: Encodable & Identifiable>(
        _ value: T,
        in collection: Collection,
        _ concurrencyControl: ConcurrencyControl
    ) throws(LoveseatError) -> Document? where T.ID: DocumentKey {
        var draft = try ModelDraft(value, concurrencyControl) { id throws(LoveseatError) in
            try document(id: id, in: collection)
        }
        if draft.isUnchanged { return draft.document }
        let isSaved = try save(&draft.document, in: collection, concurrencyControl: draft.concurrencyControl)
        return isSaved ? draft.document : nil
    }

    /// Saves values as documents.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and one of the documents was changed since its value was read. The
    ///   others were saved: throw from the closure to undo that.
    /// - Throws: As ``Collection/save(_:concurrencyControl:)-t2kq``, and `encodingError` if a value cannot be encoded.
    @discardableResult
    public func save<T: Encodable & Identifiable>(
        _ values: [T],
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        var isSaved = true
        for value in values {
            let isThis = try save(value, in: collection, concurrencyControl: concurrencyControl)
            isSaved = isThis && isSaved
        }
        return isSaved
    }

    /// Changes a document. If the closure changes nothing, nothing is saved, and there is no new revision.
    ///
    /// - Returns: The document as it was saved.
    /// - Throws: The error that `change` throws, and then the document is not saved; ``LoveseatError``: `notFound` if the document does not
    ///   exist; otherwise as ``Collection/save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func update(
        id: some DocumentKey,
        in collection: Collection,
        _ change: (inout Document) throws -> Void
    ) throws -> Document {
        guard let stored = try document(id: id.documentID, in: collection) else {
            throw LoveseatError.noDocument(id.documentID, in: collection)
        }
        var document = stored
        try change(&document)
        if document.hasSameContent(as: stored) { return stored }
        try save(&document, in: collection)
        return document
    }

    /// Changes a document as a value of a type. Only what the closure changes is written: properties that the type does not know stay; see
    /// ``Collection/update(id:as:_:)``.
    ///
    /// - Returns: The value as it was saved.
    /// - Throws: The error that `change` throws, and then the document is not saved; ``LoveseatError``: `notFound` if the document does not
    ///   exist; `decodingError` if it does not fit the type; otherwise as ``Collection/save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func update<T: Codable>(
        id: some DocumentKey,
        in collection: Collection,
        as type: T.Type,
        _ change: (inout T) throws -> Void
    ) throws -> T {
        var changed: T?
        let document = try update(id: id, in: collection) { changed = try $0.change(as: type, change) }
        guard let changed else { throw LoveseatError.noDocument(id.documentID, in: collection) }
        return changed.tracking(document.revisionID)
    }

    /// Deletes a document. It is replaced by a tombstone, which replicates.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged.
    public func delete(id: some DocumentKey, in collection: Collection) throws(LoveseatError) {
        try require(collection)
        try edit(collection) { try $0.delete(id.documentID) }
    }

    /// Deletes the document of a value. It is replaced by a tombstone, which replicates.
    ///
    /// - Returns: False if the value is ``RevisionTracking``, `concurrencyControl` is `failOnConflict`, and the document was changed since
    ///   the value was read; true otherwise.
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged.
    @discardableResult
    public func delete<T: Identifiable>(
        _ value: T,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        guard concurrencyControl == .failOnConflict, let document = Document(tracking: value) else {
            try delete(id: value.id, in: collection)
            return true
        }
        return try delete(document, in: collection, concurrencyControl: concurrencyControl)
    }

    /// Removes the document of a value from this database, with all its versions; see ``Collection/purge(_:)-(Document)``.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func purge<T: Identifiable>(_ value: T, in collection: Collection) throws(LoveseatError)
    where T.ID: DocumentKey { try purge(id: value.id.documentID, in: collection) }
}
