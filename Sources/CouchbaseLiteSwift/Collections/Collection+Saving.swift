import LoveseatCore
import LoveseatModel

/// Saving, deleting and purging documents.
///
/// A document that belongs to another collection, or to another `Database`, is refused with `invalidParameter`.
extension Collection {
    /// Saves a document, whatever happened to it since it was read.
    ///
    /// - Throws: `badDocID` for an ID that is not allowed; `unexpectedError` if a blob is in another database.
    public func save(document: MutableDocument) throws {
        _ = try save(document: document, concurrencyControl: .lastWriteWins)
    }

    /// Saves a document.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``save(document:)``.
    @discardableResult
    public func save(document: MutableDocument, concurrencyControl: ConcurrencyControl) throws -> Bool {
        try store(document, over: document.revision, concurrencyControl)
    }

    /// Saves a document, and asks a handler what to do if it was changed since it was read.
    ///
    /// - Parameters:
    ///   - document: The document to save.
    ///   - conflictHandler: Gets the document and the stored one, which is nil if it was deleted. It changes the first and returns true to
    ///     save it, or returns false to give up. It is called outside of any transaction, and again if the document changes meanwhile.
    /// - Returns: False if the handler gave up; true otherwise.
    /// - Throws: `notFound` if the document was purged meanwhile; otherwise as ``save(document:)``.
    @discardableResult
    public func save(
        document: MutableDocument,
        conflictHandler: @escaping (MutableDocument, Document?) -> Bool
    ) throws -> Bool {
        var base = document.revision
        while !(try store(document, over: base, .failOnConflict)) {
            guard let current = try current(id: document.id) else { throw notFound(document.id) }
            let stored = current.document.map { Document($0, in: self) }
            guard conflictHandler(document, stored) else { return false }
            base = current.revision
        }
        return true
    }

    private func store(
        _ document: MutableDocument,
        over base: RevisionID?,
        _ concurrencyControl: ConcurrencyControl
    ) throws -> Bool {
        try requireOwn(document)
        // Outside of the transaction, because files take long.
        try document.contents.install(into: database.engine)
        let content = try engineDocument(document)
        let saved = try database.write { transaction -> EngineDocument? in
            var content = content.belonging(to: engine, at: base, document.sequence)
            let isSaved = try transaction.save(
                &content,
                in: engine,
                concurrencyControl: concurrencyControl.engine
            )
            return isSaved ? content : nil
        }
        guard let saved else { return false }
        document.note(saved, in: self)
        return true
    }

    private func engineDocument(_ document: Document) throws -> EngineDocument {
        guard let source = document.contents.unchangedSource else {
            return EngineDocument(id: document.id, document.contents.json)
        }
        return try CBLError.converting { try EngineDocument(id: document.id, element: source) }
    }

    /// Deletes a document, whatever happened to it since it was read. A tombstone replaces it, which replicates.
    ///
    /// - Throws: `notFound` if the document was never saved, or was purged.
    public func delete(document: Document) throws {
        _ = try delete(document: document, concurrencyControl: .lastWriteWins)
    }

    /// Deletes a document. A tombstone replaces it, which replicates.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``delete(document:)``.
    @discardableResult
    public func delete(document: Document, concurrencyControl: ConcurrencyControl) throws -> Bool {
        try requireOwn(document)
        let content = EngineDocument(id: document.id)
            .belonging(to: engine, at: document.revision, document.sequence)
        let deleted = try database.write {
            try $0.deleting(content, in: engine, concurrencyControl: concurrencyControl.engine)
        }
        guard let deleted else { return false }
        document.note(deleted, in: self)
        return true
    }

    /// Removes a document from this database, with all its versions. Other databases keep it.
    ///
    /// - Throws: `notFound` if the document is not in the collection.
    public func purge(document: Document) throws {
        try requireOwn(document)
        // A document that was never saved may have the ID of one that was.
        try database.write {
            guard document.revision != nil else { throw notFound(document.id) }
            try $0.purge(id: document.id, in: engine)
        }
        document.revision = nil
        document.sequence = 0
    }

    /// Removes a document or a tombstone from this database, with all its versions. Other databases keep it.
    ///
    /// - Throws: `notFound` if the document is not in the collection.
    public func purge(id: String) throws { try database.write { try $0.purge(id: id, in: engine) } }

    private func requireOwn(_ document: Document) throws {
        guard let other = document.collection else { return }  // It was never saved.
        guard other.database === database, other.engine.handle == engine.handle else {
            throw CBLError.make(
                CBLError.invalidParameter,
                "document \"\(document.id)\" belongs to another collection or database: save a new document with its properties"
            )
        }
    }

    func notFound(_ id: String) -> any Error {
        CBLError.make(CBLError.notFound, "there is no document \"\(id)\" in collection \(fullName)")
    }
}
