package import LoveseatModel
import LoveseatStorage

/// Revisions of documents whose base the caller keeps, for faces with documents that are objects.
extension ReadTransaction {
    /// The names of the scopes that contain collections, each once for every collection.
    package var scopeNames: [String] {
        get throws(LoveseatError) { try active.collections.map(\.name.scope) }
    }

    /// Returns the current revision of a document, or nil if it was never saved, or was purged.
    ///
    /// - Returns: `document`: nil if the document is deleted.
    package func current(id: String, in collection: Collection) throws(LoveseatError) -> (
        document: Document?, revision: RevisionID
    )? {
        guard let record = try read(collection, { try $0.record(id, in: collection.handle) }) else {
            return nil
        }
        return (record.isDeleted ? nil : try Document(record, in: collection), record.revision)
    }

    /// Returns the revision of a document and its ancestors, the newest first; empty if the document does not exist.
    package func history(id: String, in collection: Collection) throws(LoveseatError) -> [RevisionID] {
        guard let record = try read(collection, { try $0.record(id, in: collection.handle) }) else {
            return []
        }
        return try record.tree().line(record.revision)
    }

    /// Returns the state of a document as a peer with version vectors is told of it; empty if the document does not exist.
    package func state(id: String, in collection: Collection) throws(LoveseatError) -> StateHistory {
        guard let record = try read(collection, { try $0.record(id, in: collection.handle) }) else {
            return StateHistory(VersionVector())
        }
        return try record.tree().versions.state(of: record.revision)
    }
}

extension WriteTransaction {
    /// Deletes a document, and returns it with the tombstone's revision and sequence; nil if the document was changed since it was read and
    /// `concurrencyControl` is `failOnConflict`.
    ///
    /// A document whose revision is the tombstone gets another tombstone. Of a document that was deleted otherwise nothing changes.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged; `invalidParameter` if it belongs to another
    ///   collection or `Database`.
    package func deleting(
        _ document: Document,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Document? {
        try require(collection)
        try DocumentValidator(collection).requireOwn(document)
        return try edit(collection) { try $0.tombstone(of: document, concurrencyControl) }
    }
}

extension Document {
    /// The same document as one that was read from a collection as a revision, so that it can be saved back.
    package func belonging(to collection: Collection, at revision: RevisionID?, _ sequence: UInt64)
        -> Document
    {
        var document = self
        document.revisionID = revision
        document.sequence = sequence
        document.origin = DocumentOrigin(collection)
        return document
    }
}
