public import Foundation
public import LoveseatModel
import LoveseatStorage

/// A view of the database as of one moment, which ``Database/read(_:)-8zqyx`` passes to its closure.
///
/// It shows the documents and collections of that moment, while others save, delete and create. Pass it to functions that
/// read on its behalf. It belongs to the thread that runs the closure; after the closure has returned, every call throws
/// `notInTransaction`.
///
/// Every call that names a collection throws `notOpen` if the collection did not exist at that moment or its ``Database`` object is
/// closed, and `invalidParameter` if it is in another database. A collection that came from another ``Database`` object is as good as one
/// that came from this one if both objects have the same folder open for writing, or both for reading only.
public class ReadTransaction {
    /// The database to which the transaction belongs.
    public let database: Database
    let opened: DatabaseInstance
    private var view: StoreReadTransaction?

    init(_ view: StoreReadTransaction, of database: Database, _ opened: DatabaseInstance) {
        self.view = view
        self.database = database
        self.opened = opened
    }

    func end() { view = nil }

    // MARK: Documents

    /// Returns a document, or nil if it does not exist or was deleted.
    ///
    /// - Throws: ``LoveseatError``: `badDocID` for an empty ID; `corruptData` or `corruptRevisionData` if what is stored is damaged.
    public func document(id: String, in collection: Collection) throws(LoveseatError) -> Document? {
        guard !id.isEmpty else { throw LoveseatError(.badDocID, "a document ID cannot be empty") }
        let record = try read(collection) { try $0.record(id, in: collection.handle) }
        guard let record, !record.isDeleted else { return nil }
        return try Document(record, in: collection)
    }

    /// Returns a document as a value of a type, or nil if the document does not exist or was deleted.
    ///
    /// - Throws: ``LoveseatError``: `badDocID` for an empty ID, `decodingError` if the document does not fit the type.
    public func document<T: Decodable>(
        id: some DocumentKey,
        in collection: Collection,
        as type: T.Type = T.self
    ) throws(LoveseatError) -> T? {
        guard let document: Document = try document(id: id.documentID, in: collection) else { return nil }
        return try document.decode(type)
    }

    /// Returns the number of documents, without deleted ones. Counting takes time in proportion to that number.
    ///
    /// - Throws: ``LoveseatError``: `notInTransaction`, `notOpen`, `invalidParameter`, as for every call that names a collection.
    public func count(in collection: Collection) throws(LoveseatError) -> UInt64 {
        UInt64(try read(collection) { try $0.count(collection.handle) })
    }

    /// Returns when a document will be purged, or nil if it has no expiration or does not exist.
    ///
    /// - Throws: ``LoveseatError``: `notInTransaction`, `notOpen`, `invalidParameter`, as for every call that names a collection.
    public func getDocumentExpiration(id: String, in collection: Collection) throws(LoveseatError) -> Date? {
        try read(collection) { try $0.record(id, in: collection.handle) }?.expires
            .map(Date.init(expirationTime:))
    }

    // MARK: Collections

    /// Returns a collection, or nil if it does not exist.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if a name breaks the rules of ``Database/createCollection(name:scope:)``.
    public func collection(name: String, scope: String? = CollectionName.defaultPart) throws(LoveseatError)
        -> Collection?
    {
        try active.collection(try CollectionName(checking: name, scope)).map {
            Collection(database: database, handle: $0)
        }
    }

    /// Returns the collections of a scope, in order of their names. The result is empty if the scope does not exist.
    ///
    /// - Throws: ``LoveseatError``: `notInTransaction`.
    public func collections(scope: String? = CollectionName.defaultPart) throws(LoveseatError) -> [Collection]
    {
        let scope = scope ?? CollectionName.defaultPart
        return try active.collections.filter { $0.name.scope == scope }.sorted { $0.name.name < $1.name.name }
            .map { Collection(database: database, handle: $0) }
    }

    /// Returns the default collection, which always exists.
    ///
    /// - Throws: ``LoveseatError``: `notInTransaction`.
    public func defaultCollection() throws(LoveseatError) -> Collection {
        guard let collection = try collection(name: CollectionName.defaultPart) else {
            throw LoveseatError(.corruptData, "the default collection is missing")
        }
        return collection
    }

    // MARK: Checks

    var active: StoreReadTransaction {
        get throws(LoveseatError) {
            guard let view else { throw Self.hasEnded }
            return view
        }
    }

    static var hasEnded: LoveseatError {
        LoveseatError(
            .notInTransaction,
            "the transaction has ended: use it only inside the closure that it was given to"
        )
    }

    func read<T>(_ collection: Collection, _ body: (StoreReadTransaction) throws -> T)
        throws(LoveseatError) -> T
    {
        try require(collection)
        let view = try active
        return try DocumentStore.wrapping { try view.step { try body(view) } }
    }

    /// Whether a `Database` is the transaction's, or another one with the same folder.
    ///
    /// - Throws: `notOpen` if it is another one, and closed.
    func isOwn(_ other: Database) throws(LoveseatError) -> Bool {
        if other === database { return true }
        return try other.opened === opened
    }

    /// Throws unless the collection is in this database, and was there when the transaction began.
    func require(_ collection: Collection) throws(LoveseatError) {
        let view = try active
        guard try isOwn(collection.database) else {
            throw LoveseatError(
                .invalidParameter,
                "collection \(collection.fullName) is in another database than the transaction"
            )
        }
        guard view.contains(collection.handle) else {
            throw LoveseatError(
                .notOpen,
                "the transaction has no collection \(collection.fullName): it was deleted, or created later"
            )
        }
    }
}

/// A transaction belongs to the thread that runs its closure.
@available(*, unavailable)
extension ReadTransaction: Sendable {}
