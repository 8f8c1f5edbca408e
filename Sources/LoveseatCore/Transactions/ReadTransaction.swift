public import Foundation
public import LoveseatModel
import LoveseatStorage

/// A view of the database as of one moment, which ``Database/read(_:)-8zqyx`` gives to its closure.
///
/// It knows the documents and the collections of that moment, also while others save, delete and create. Pass it to functions
/// that read for you. After the closure every call throws `notInTransaction`.
///
/// Every call that names a collection throws `notOpen` if the collection did not exist at that moment, and
/// `invalidParameter` if it is in another database. A collection that came from another ``Database`` object is as good as one
/// that came from this one if both objects have the same folder open for writing, or both for reading only.
public class ReadTransaction {
    /// The database that is read.
    public let database: Database
    private let opened: OpenDatabase
    private var view: StoreReadTransaction?

    init(_ view: StoreReadTransaction, of database: Database, _ opened: OpenDatabase) {
        self.view = view
        self.database = database
        self.opened = opened
    }

    func end() { view = nil }

    // MARK: Documents

    /// A document; nil if there is none, or it was deleted.
    ///
    /// - Throws: `badDocID` for an empty ID.
    public func document(id: String, in collection: Collection) throws(LoveseatError) -> Document? {
        guard !id.isEmpty else { throw LoveseatError(.badDocID, "a document ID cannot be empty") }
        let record = try read(collection) { try $0.record(id, in: collection.handle) }
        return record.flatMap { $0.isDeleted ? nil : Document($0, in: collection) }
    }

    /// Reads a document as a value; nil if there is none, or it was deleted.
    ///
    /// - Throws: `badDocID` for an empty ID, `decodingError` if the document does not fit the type.
    public func document<T: Decodable>(id: String, in collection: Collection, as type: T.Type = T.self)
        throws(LoveseatError) -> T?
    {
        guard let document: Document = try document(id: id, in: collection) else { return nil }
        return try document.decode(type)
    }

    /// The number of documents, deleted ones not counted.
    public func count(in collection: Collection) throws(LoveseatError) -> UInt64 {
        UInt64(try read(collection) { try $0.count(collection.handle) })
    }

    /// When a document purges itself; nil if never, or if there is none.
    public func getDocumentExpiration(id: String, in collection: Collection) throws(LoveseatError) -> Date? {
        try read(collection) { try $0.record(id, in: collection.handle) }?.expires
            .map(Date.init(expirationTime:))
    }

    // MARK: Collections

    /// A collection; nil if there is none of this name.
    ///
    /// - Throws: `invalidParameter` if a name breaks the rules.
    public func collection(name: String, scope: String? = Database.defaultScopeName) throws(LoveseatError)
        -> Collection?
    {
        try active.collection(try Database.checked(name, scope)).map {
            Collection(database: database, handle: $0)
        }
    }

    /// The collections of a scope, in order of their names; none if there is no such scope.
    public func collections(scope: String? = Database.defaultScopeName) throws(LoveseatError) -> [Collection]
    {
        let scope = scope ?? Database.defaultScopeName
        return try active.collections.filter { $0.name.scope == scope }.sorted { $0.name.name < $1.name.name }
            .map { Collection(database: database, handle: $0) }
    }

    /// The default collection, which always exists.
    public func defaultCollection() throws(LoveseatError) -> Collection {
        guard let collection = try collection(name: Database.defaultCollectionName) else {
            throw LoveseatError(.corruptData, "the default collection is missing")
        }
        return collection
    }

    // MARK: Checks

    private var active: StoreReadTransaction {
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

    private func read<T>(_ collection: Collection, _ body: (StoreReadTransaction) throws -> T)
        throws(LoveseatError) -> T
    {
        try require(collection)
        let view = try active
        return try DocumentStore.wrapping { try view.step { try body(view) } }
    }

    /// Throws unless the collection is in this database, and was there when the transaction began.
    func require(_ collection: Collection) throws(LoveseatError) {
        let view = try active
        guard collection.database === database || (try? collection.database.opened) === opened else {
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
