public import LoveseatModel

/// Documents as models: values of `Codable` types that are `Identifiable` by a ``DocumentKey``, such as a `String`, a `UUID` or an `Int`.
extension Collection {
    /// Returns a document as a value of a type, or nil if the document does not exist or was deleted.
    ///
    /// A property `id` of the type gets the document's ID. Dates are read from ISO 8601 strings, with or without a fraction. A `Decimal`
    /// is read from a number, and keeps 38 digits.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if the document does not fit the type, `badDocID` for an empty ID, `notOpen`.
    public func document<T: Decodable>(id: some DocumentKey, as type: T.Type = T.self) throws(LoveseatError)
        -> T?
    {
        guard let document = try document(id: id.documentID) else { return nil }
        return try document.decode(type)
    }

    // MARK: Saving

    /// Saves a value as a document, replacing all properties of a document that exists.
    ///
    /// A ``RevisionTracking`` value that was read replaces only the properties that it knows, as ``update(id:as:_:)`` does. If the document
    /// is stored like that already, nothing is saved, and there is no new revision.
    ///
    /// The value's `id` becomes the document's ID and is left out of the properties. Dates are stored as ISO 8601 strings in UTC,
    /// rounded to milliseconds, and have years from 0 to 9999; a `Decimal` as a number, with all its digits. `Data` is refused; use a blob.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and the document was changed since the value was read. Only a
    ///   ``RevisionTracking`` value knows what it was read from; for others, the document must not exist.
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded, or not as a JSON object; otherwise as
    ///   ``save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func save<T: Encodable & Identifiable>(
        _ value: T,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        try ModelWriter(self).save(value, concurrencyControl) != nil
    }

    /// Saves a value as a document, and updates its ``RevisionTracking/revisionID``.
    ///
    /// - Returns: False if the document was changed since the value was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``save(_:concurrencyControl:)-t2kq``, and `encodingError` if the value cannot be encoded.
    @discardableResult
    public func save<T: Encodable & Identifiable & RevisionTracking>(
        _ value: inout T,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        guard let document = try ModelWriter(self).save(value, concurrencyControl) else { return false }
        value.revisionID = document.revisionID
        return true
    }

    /// Saves a value as a document, and asks a handler what to do if the document was changed since the value was read.
    ///
    /// A value that is not ``RevisionTracking`` does not know what it was read from, so the handler is asked whenever the document
    /// exists.
    ///
    /// - Parameters:
    ///   - value: The value to save.
    ///   - conflictHandler: Gets the value and the stored one, which is nil if the document was deleted. It changes the first, but not
    ///     its ID, and returns true to save it, or returns false to give up. It runs on the calling thread, outside any transaction, and
    ///     again if the document changes meanwhile.
    /// - Returns: False if the handler gave up; true otherwise.
    /// - Throws: The error that the handler throws; ``LoveseatError``: `decodingError` if the stored document does not fit the type;
    ///   otherwise as ``save(_:conflictHandler:)-(Document,_)``.
    @discardableResult
    public func save<T: Codable & Identifiable>(
        _ value: inout T,
        conflictHandler: (inout T, T?) throws -> Bool
    ) throws -> Bool where T.ID: DocumentKey {
        try ModelWriter(self).save(&value, conflictHandler)
    }

    /// Saves values as documents in one transaction, which is much faster than one by one: all of them, or none if one cannot be saved.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and one of the documents was changed since its value was read;
    ///   then nothing was saved.
    /// - Throws: As ``save(_:concurrencyControl:)-t2kq``, and `encodingError` if a value cannot be encoded.
    @discardableResult
    public func save<T: Encodable & Identifiable>(
        _ values: [T],
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        try ModelWriter(self).save(values, concurrencyControl)
    }

    /// Saves documents in one transaction without updating the caller's copies: all of them, or none if one cannot be saved.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and one of the documents was changed since it was read; then nothing
    ///   was saved.
    /// - Throws: As ``save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func save(_ documents: [Document], concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        try ModelWriter(self).save(documents.map { ModelDraft($0, concurrencyControl) })
    }

    // MARK: Changing

    /// Changes a document, without losing what others change at the same time.
    ///
    /// ```swift
    /// try sights.update(id: "tower") { $0["likes"] = ($0["likes"]?.int ?? 0) + 1 }
    /// ```
    ///
    /// If the closure changes nothing, nothing is saved, and there is no new revision.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - change: Changes the document. It runs on the calling thread, outside any transaction, and again on the new content if the
    ///     document was changed meanwhile.
    /// - Returns: The document as it was saved.
    /// - Throws: The error that `change` throws, and then nothing is saved; ``LoveseatError``: `notFound` if the document does not exist or
    ///   is deleted meanwhile; otherwise as ``save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func update(id: some DocumentKey, _ change: (inout Document) throws -> Void) throws -> Document {
        try ModelWriter(self).update(id.documentID, change)
    }

    /// Changes a document as a value of a type, without losing what others change at the same time.
    ///
    /// ```swift
    /// try sights.update(id: "tower", as: Sight.self) { $0.likes += 1 }
    /// ```
    ///
    /// Only what the closure changes is written. Properties that the type does not know stay, also those within objects and arrays; see
    /// <doc:Documents> for how the elements of an array are matched. If the closure changes nothing, nothing is saved, and there is no new
    /// revision.
    ///
    /// - Parameters:
    ///   - id: The document's ID.
    ///   - type: The type.
    ///   - change: Changes the value. It runs on the calling thread, outside any transaction, and again on the new content if the
    ///     document was changed meanwhile.
    /// - Returns: The value as it was saved.
    /// - Throws: The error that `change` throws, and then nothing is saved; ``LoveseatError``: `notFound` if the document does not exist or
    ///   is deleted meanwhile; `decodingError` if it does not fit the type; otherwise as ``save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func update<T: Codable>(
        id: some DocumentKey,
        as type: T.Type,
        _ change: (inout T) throws -> Void
    ) throws -> T {
        var changed: T?
        let document = try update(id: id) { changed = try $0.change(as: type, change) }
        guard let changed else { throw LoveseatError.noDocument(id.documentID, in: self) }
        return changed.tracking(document.revisionID)
    }

    // MARK: Deleting

    /// Deletes a document. It is replaced by a tombstone, which replicates.
    ///
    /// Deleting a document that is deleted already succeeds and changes nothing.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged.
    public func delete(id: some DocumentKey) throws(LoveseatError) {
        try edit(in: openStore()) { try $0.delete(id.documentID) }
    }

    /// Deletes the document of a value. It is replaced by a tombstone, which replicates.
    ///
    /// - Returns: False if the value is ``RevisionTracking``, `concurrencyControl` is `failOnConflict`, and the document was changed since
    ///   the value was read; true otherwise.
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged.
    @discardableResult
    public func delete<T: Identifiable>(
        _ value: T,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        guard concurrencyControl == .failOnConflict, let document = Document(tracking: value) else {
            try delete(id: value.id)
            return true
        }
        return try delete(document, concurrencyControl: concurrencyControl)
    }

    /// Removes the document of a value from this database, with all its versions; see ``purge(_:)-(Document)``.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func purge<T: Identifiable>(_ value: T) throws(LoveseatError) where T.ID: DocumentKey {
        try purge(id: value.id.documentID)
    }
}

extension Decodable {
    /// The value with the revision that it has been saved as, if it remembers one.
    func tracking(_ revision: RevisionID?) -> Self {
        guard var tracking = self as? any RevisionTracking else { return self }
        tracking.revisionID = revision
        return tracking as? Self ?? self
    }
}

extension Document {
    /// A model as a document that is based on the revision that the model remembers. Its ID names the document and is not part of
    /// the body.
    init<T: Encodable & Identifiable>(encoding value: T) throws(LoveseatError) where T.ID: DocumentKey {
        let id = value.id.documentID
        var properties = try Self.properties(of: value) { error in
            "\(T.self) \"\(id)\" cannot be JSON: \(error)"
        }
        if let own = properties[ModelMembers.id], own == value.id.json || own == .string(id) {
            properties[ModelMembers.id] = nil
        }
        self.init(id: id, properties)
        revisionID = (value as? any RevisionTracking)?.revisionID
    }

    /// The properties of a value, without the revision that it remembers.
    private static func properties(of value: some Encodable, _ message: (any Error) -> String)
        throws(LoveseatError) -> JSONObject
    {
        let text: JSONText
        do { text = try JSONText(encoding: value, hooks: .foundation) } catch {
            throw LoveseatError(.encodingError, message(error))
        }
        guard var properties = JSONElement(text).value.object else {
            throw LoveseatError(.encodingError, "\(type(of: value)) does not encode as a JSON object")
        }
        if value is any RevisionTracking { properties[ModelMembers.revision] = nil }
        return properties
    }
}

extension Document {
    /// Returns the properties as a value of a type. A property `id` of the type gets the document's ID, and a ``RevisionTracking``
    /// value the document's revision.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if the properties do not fit the type.
    public func decode<T: Decodable>(_ type: T.Type = T.self) throws(LoveseatError) -> T {
        let element = element
        let added = ModelMembers.added(for: type, of: self, element)
        do { return try element.decode(type, hooks: .foundation, adding: added, listsAdded: false) } catch {
            throw LoveseatError(.decodingError, "document \"\(id)\" does not fit \(T.self): \(error)")
        }
    }

    /// Replaces all properties by those of a value. A property `id` is left out. The document keeps its ID and revision.
    ///
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded, or not as a JSON object.
    public mutating func encode(_ value: some Encodable) throws(LoveseatError) {
        properties = try ownProperties(of: value)
    }

    func ownProperties(of value: some Encodable) throws(LoveseatError) -> JSONObject {
        let id = id
        var properties = try Self.properties(of: value) { error in
            "the value for document \"\(id)\" cannot be JSON: \(error)"
        }
        properties[ModelMembers.id] = nil
        return properties
    }

    /// Changes the properties that a type knows, and returns the changed value.
    mutating func change<T: Codable>(as type: T.Type, _ change: (inout T) throws -> Void) throws -> T {
        var value = try decode(type)
        let before = try ownProperties(of: value)
        try change(&value)
        let after = try ownProperties(of: value)
        let stored = properties.renamed(for: type)
        if let changed = stored.applying(changesFrom: before, to: after) { properties = changed }
        return value
    }
}
