public import Foundation
public import LoveseatModel
import LoveseatStorage

/// Changes that are stored together or not at all, which ``Database/write(_:)-8w0u2`` passes to its closure.
///
/// It reads its own changes, as a ``ReadTransaction``. Its calls have the names, results and errors of the calls of
/// ``Collection`` and ``Database`` that change one thing. A closure may catch their errors and go on, unless the disk failed:
/// then the whole transaction fails with that error.
public final class WriteTransaction: ReadTransaction {
    private var edit: StoreWriteTransaction?
    /// The earliest expiration that was set, in milliseconds since 1970.
    private(set) var firstExpiration: Int64?

    init(_ edit: StoreWriteTransaction, of database: Database, _ opened: DatabaseInstance) {
        self.edit = edit
        super.init(edit, of: database, opened)
    }

    override func end() {
        edit = nil
        super.end()
    }

    // MARK: Documents

    /// Saves a document, and updates its ``Document/revisionID`` and ``Document/sequence``.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: As ``Collection/save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func save(
        _ document: inout Document,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool {
        try require(collection)
        let body = try DocumentValidator(collection).body(of: document)
        let saved = try edit(collection) { try $0.save(document, body, concurrencyControl) }
        guard let saved else { return false }
        document.apply(saved, in: collection)
        return true
    }

    /// Saves a document without updating the caller's copy; otherwise the same as ``save(_:in:concurrencyControl:)-6vn8v``.
    @discardableResult
    public func save(
        _ document: Document,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool {
        var document = document
        return try save(&document, in: collection, concurrencyControl: concurrencyControl)
    }

    /// Deletes a document. It is replaced by a tombstone, which replicates.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged; `invalidParameter` if it belongs to
    ///   another collection or `Database`.
    @discardableResult
    public func delete(
        _ document: Document,
        in collection: Collection,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool {
        try require(collection)
        try DocumentValidator(collection).requireOwn(document)
        return try edit(collection) { try $0.delete(document, concurrencyControl) }
    }

    /// Removes a document from this database, with all its versions; see ``Collection/purge(_:)-(Document)``. Other databases keep it.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist; `invalidParameter` if it belongs to another collection
    ///   or `Database`.
    public func purge(_ document: Document, in collection: Collection) throws(LoveseatError) {
        try require(collection)
        try DocumentValidator(collection).requireOwn(document)
        try purge(id: document.id, in: collection)
    }

    /// Removes a document or a tombstone from this database, with all its versions. Other databases keep it.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func purge(id: String, in collection: Collection) throws(LoveseatError) {
        try require(collection)
        try edit(collection) { try $0.purge(id) }
    }

    /// Sets when a document is purged, with a resolution of a millisecond. Nil means never.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func setDocumentExpiration(id: String, in collection: Collection, expiration: Date?)
        throws(LoveseatError)
    {
        try setExpiration(of: id, in: collection, at: expiration.map(\.expirationTime))
    }

    /// Sets an expiration in milliseconds since 1970.
    func setExpiration(of id: String, in collection: Collection, at time: Int64?) throws(LoveseatError) {
        try require(collection)
        try edit(collection) { try $0.setExpiration(of: id, at: time) }
        if let time { firstExpiration = min(firstExpiration ?? time, time) }
    }

    // MARK: Collections

    /// Creates a collection, or returns the existing one. If the transaction fails, the new collection does not exist.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if a name breaks the rules of ``Database/createCollection(name:scope:)``.
    @discardableResult
    public func createCollection(name: String, scope: String? = CollectionName.defaultPart)
        throws(LoveseatError) -> Collection
    {
        let name = try CollectionName(checking: name, scope)
        let handle = try write { try $0.createCollection(name) }
        return Collection(database: database, handle: handle)
    }

    /// Deletes a collection with its documents. Does nothing if the collection does not exist.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for the default collection.
    public func deleteCollection(name: String, scope: String? = CollectionName.defaultPart)
        throws(LoveseatError)
    {
        let name = try CollectionName(checking: name, scope)
        try name.requireDeletable()
        try write { try $0.deleteCollection(name) }
    }

    func edit<T>(_ collection: Collection, _ body: (DocumentEditor) throws -> T) throws(LoveseatError) -> T {
        try write { try body(DocumentEditor(collection, $0)) }
    }

    func write<T>(_ body: (StoreWriteTransaction) throws -> T) throws(LoveseatError) -> T {
        guard let edit else { throw Self.hasEnded }
        return try DocumentStore.wrapping { try edit.step { try body(edit) } }
    }
}
