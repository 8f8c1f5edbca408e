import LoveseatModel

/// Documents as objects of `Codable` classes that have a ``DocumentID``. Every call throws `invalidParameter` for other classes.
extension Collection {
    /// Returns a document as an object, or nil if it does not exist or was deleted.
    ///
    /// - Throws: `decodingError` if the document does not fit the class; `badDocID` for an empty ID.
    public func document<T: DocumentDecodable>(id: String, as type: T.Type) throws -> T? {
        guard let document = try document(id: id) else { return nil }
        return try object(of: document, as: type)
    }

    private func object<T: DocumentDecodable>(of document: Document, as type: T.Type) throws -> T {
        let element = document.contents.unchangedSource ?? JSONElement(JSONText(canonical: .object([:])))
        let object = try ModelCoding.decode(type, element, in: database.engine)
        try DocumentID.of(object).note(document)
        return object
    }

    /// Saves an object, whatever happened to its document since it was read.
    ///
    /// - Throws: `encodingError` if the object cannot be encoded; otherwise as ``save(document:)``.
    public func save<T: DocumentEncodable>(from object: T) throws {
        _ = try save(from: object, concurrencyControl: .lastWriteWins)
    }

    /// Saves an object.
    ///
    /// - Returns: False if the document was changed since the object was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``save(from:)``.
    @discardableResult
    public func save<T: DocumentEncodable>(from object: T, concurrencyControl: ConcurrencyControl) throws
        -> Bool
    {
        let id = try DocumentID.of(object)
        let document = try draft(of: object, id)
        if try !save(document: document, concurrencyControl: concurrencyControl) {
            // An object whose document was purged is a new one.
            guard document.revision != nil, try current(id: document.id) == nil else { return false }
            document.revision = nil
            guard try save(document: document, concurrencyControl: concurrencyControl) else { return false }
        }
        id.note(document)
        return true
    }

    /// Saves an object, and asks a handler what to do if the document was changed since the object was read.
    ///
    /// - Parameters:
    ///   - object: The object to save.
    ///   - conflictHandler: Gets the object and the stored document as another one, which is nil if it was deleted. It changes the first and
    ///     returns true to save it, or returns false to give up. It is called again if the document changes meanwhile.
    /// - Returns: False if the handler gave up; true otherwise.
    /// - Throws: `notFound` if the document was purged meanwhile; otherwise as ``save(from:)``.
    @discardableResult
    public func save<T: DocumentCodable>(
        from object: T,
        conflictHandler: @escaping (T, T?) -> Bool
    ) throws -> Bool {
        let id = try DocumentID.of(object)
        var base = id.link?.revision
        while true {
            let document = try draft(of: object, id)
            document.revision = base
            if try save(document: document, concurrencyControl: .failOnConflict) {
                id.note(document)
                return true
            }
            guard let current = try current(id: document.id) else { throw notFound(document.id) }
            let stored = try current.document.map { try self.object(of: Document($0, in: self), as: T.self) }
            guard conflictHandler(object, stored) else { return false }
            base = current.revision
        }
    }

    /// Deletes the document of an object, whatever happened to it since it was read.
    ///
    /// - Throws: `notFound` if the object was never saved or loaded, or its document was purged.
    public func delete<T: DocumentEncodable>(for object: T) throws {
        _ = try delete(for: object, concurrencyControl: .lastWriteWins)
    }

    /// Deletes the document of an object.
    ///
    /// - Returns: False if the document was changed since the object was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``delete(for:)``.
    @discardableResult
    public func delete<T: DocumentEncodable>(for object: T, concurrencyControl: ConcurrencyControl) throws
        -> Bool
    {
        let id = try DocumentID.of(object)
        let document = linked(id, DictionaryContents(nil, isMutable: true, nil))
        guard try delete(document: document, concurrencyControl: concurrencyControl) else { return false }
        id.note(document)
        return true
    }

    /// Removes the document of an object from this database, with all its versions.
    ///
    /// - Throws: `notFound` if the object was never saved or loaded, or its document was purged.
    public func purge<T: DocumentEncodable>(for object: T) throws {
        let id = try DocumentID.of(object)
        let document = linked(id, DictionaryContents(nil, isMutable: true, nil))
        try purge(document: document)
        id.note(document)
    }

    /// The document to save for an object.
    private func draft(of object: some DocumentEncodable, _ id: DocumentID) throws -> MutableDocument {
        linked(id, try ModelCoding.contents(of: object, id, in: database.engine))
    }

    private func linked(_ id: DocumentID, _ contents: DictionaryContents) -> MutableDocument {
        let document = MutableDocument(id.wrappedValue ?? MutableDocument().id, contents)
        document.collection = id.link?.collection
        document.revision = id.link?.revision
        document.sequence = id.link?.sequence ?? 0
        return document
    }
}
