public import Foundation
public import LoveseatModel
package import LoveseatStorage

/// What a save or delete does when somebody else changed the document since it was read.
public enum ConcurrencyControl: UInt8, Hashable, Sendable {
    /// The last one wins.
    case lastWriteWins
    /// Nothing is saved.
    case failOnConflict
}

/// Documents of one kind. A value that names a collection of an open database; safe to use from any thread.
///
/// Each call that saves, deletes or purges is a transaction of its own. To change several documents together, or to read
/// several as of one moment, use ``Database/write(_:)-8w0u2`` and ``Database/read(_:)-8zqyx``.
///
/// Every member that throws throws `notOpen` once the collection was deleted or its database closed, and
/// `transactionNotClosed` inside the closure of a transaction of the database, where the transaction has calls of the same
/// names. Those that write throw `busy` if other transactions last longer than ``DatabaseConfiguration/busyTimeout``.
public struct Collection: Sendable {
    /// `_default`.
    public static let defaultCollectionName = CollectionName.defaultPart
    /// The database it is in.
    public let database: Database
    package let handle: CollectionHandle

    package init(database: Database, handle: CollectionHandle) {
        self.database = database
        self.handle = handle
    }

    /// Its name within its scope.
    public var name: String { handle.name.name }
    /// `scope.collection`.
    public var fullName: String { handle.name.fullName }
    /// The scope it is in.
    public var scope: Scope { Scope(name: handle.name.scope, database: database) }

    /// The number of documents, deleted ones not counted; 0 once the collection is gone. Inside a transaction's closure it
    /// is the number before the transaction, see ``ReadTransaction/count(in:)``.
    public var count: UInt64 {
        guard let store = try? database.store else { return 0 }
        // Counting takes long enough to hold up the connection for single rows, so it takes another one where it can.
        let count =
            store.isInTransaction
            ? try? store.readRows { try $0.count(handle) } : try? store.read { try $0.count(handle) }
        return UInt64(count ?? 0)
    }

    /// The store, for calls that would not see what a transaction under way has changed.
    ///
    /// `call`: what the caller called, for messages.
    package func openStore(_ call: String = #function) throws(LoveseatError) -> DocumentStore {
        let store = try database.store
        try store.requireNoTransaction(call)
        guard store.contains(handle) else {
            throw LoveseatError(.notOpen, "collection \(fullName) was deleted")
        }
        return store
    }

    private func write<T>(
        in store: DocumentStore,
        call: String = #function,
        _ body: (StoreWriteTransaction) throws -> T
    ) throws(LoveseatError) -> T {
        try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout, call: call, body)
        }
    }

    // MARK: Reading

    /// A document; nil if there is none, or it was deleted.
    ///
    /// - Throws: `badDocID` for an empty ID.
    public func document(id: String) throws(LoveseatError) -> Document? {
        guard !id.isEmpty else { throw LoveseatError(.badDocID, "a document ID cannot be empty") }
        let store = try openStore()
        let record = try DocumentStore.wrapping { try store.readRows { try $0.record(id, in: handle) } }
        return record.flatMap { $0.isDeleted ? nil : Document($0, in: self) }
    }

    // MARK: Saving

    /// Saves a document, and brings its ``Document/revisionID`` and ``Document/sequence`` up to date.
    ///
    /// Attachments that a REST client or a 1.x app made (``Document/attachment(_:)``) stay unless the document names
    /// `_attachments`.
    ///
    /// - Returns: false if it was changed since it was read and `concurrencyControl` is `failOnConflict`.
    /// - Throws: `badDocID` if the ID is empty, longer than 240 bytes or begins with `_`; `encodingError` for a value that
    ///   JSON cannot hold (an infinity, a number beyond a double's range, more than 128 levels); `invalidParameter` for a
    ///   top-level name that begins with `_`, a document larger than ``DatabaseConfiguration/maximumDocumentBytes``, or one
    ///   of another collection or `Database`; `unexpectedError` if it refers to a blob that is not in the database; an error
    ///   of the disk.
    @discardableResult
    public func save(_ document: inout Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        let store = try openStore()
        let body = try checkedBody(of: document)
        let condition = SaveCondition(concurrencyControl, of: document)
        let saved = try write(in: store) {
            try $0.save(document.id, in: handle, body: body, isDeleted: false, condition: condition)
        }
        guard let saved else { return false }
        document.apply(saved, in: self)
        return true
    }

    /// Saves a document that is not needed afterwards; see ``save(_:concurrencyControl:)-(Document,_)``.
    @discardableResult
    public func save(_ document: Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        var document = document
        return try save(&document, concurrencyControl: concurrencyControl)
    }

    /// Saves a document, asking what to do if it was changed since it was read.
    ///
    /// The handler gets the document and what is stored (nil if it was deleted), changes the first and returns true to
    /// save it, or false to give up. It runs outside any transaction, and again if the document changes meanwhile.
    ///
    /// - Returns: false if the handler gave up.
    /// - Throws: what the handler throws; `notFound` if the document was purged meanwhile; as for other saves.
    @discardableResult
    public func save(
        _ document: inout Document,
        conflictHandler: (inout Document, Document?) throws -> Bool
    ) throws -> Bool {
        while !(try save(&document, concurrencyControl: .failOnConflict)) {
            let store = try openStore()
            let stored = try DocumentStore.wrapping {
                try store.readRows { try $0.record(document.id, in: handle) }
            }
            guard let stored else {
                throw LoveseatError(.notFound, "document \"\(document.id)\" was purged meanwhile")
            }
            guard try conflictHandler(&document, stored.isDeleted ? nil : Document(stored, in: self)) else {
                return false
            }
            document.revisionID = stored.isDeleted ? nil : stored.revision
        }
        return true
    }

    // MARK: Deleting

    /// Deletes a document. A tombstone stays, which replicates.
    ///
    /// - Returns: false if it was changed since it was read and `concurrencyControl` is `failOnConflict`.
    /// - Throws: `notFound` if the document was never saved, or was purged; `invalidParameter` if it is another
    ///   collection's.
    @discardableResult
    public func delete(_ document: Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        let store = try openStore()
        try requireOwn(document)
        return try write(in: store) { try delete(document, concurrencyControl, $0) }
    }

    /// Removes a document without trace. Other databases keep it.
    ///
    /// - Throws: `notFound` if it is not there; `invalidParameter` if it is another collection's.
    public func purge(_ document: Document) throws(LoveseatError) {
        let store = try openStore()
        try requireOwn(document)
        try purge(document.id, in: store)
    }

    /// Removes a document, or a tombstone, without trace. Other databases keep it.
    ///
    /// - Throws: `notFound` if it is not there.
    public func purge(id: String) throws(LoveseatError) { try purge(id, in: openStore()) }

    private func purge(_ id: String, in store: DocumentStore) throws(LoveseatError) {
        guard try write(in: store, { try $0.purge(id, in: handle) }) else { throw notFound(id) }
    }

    // MARK: Expiration

    /// Sets when a document purges itself, to the millisecond; nil for never. Changes no revision.
    ///
    /// - Throws: `notFound` if there is no such document.
    public func setDocumentExpiration(id: String, expiration: Date?) throws(LoveseatError) {
        let time = expiration.map(\.expirationTime)
        let isSet = try write(in: openStore()) { try $0.setExpiration(id, in: handle, at: time) }
        guard isSet else { throw notFound(id) }
        if let time { try database.opened.expiration.expires(at: time) }
    }

    /// When a document purges itself; nil if never, or if there is none.
    public func getDocumentExpiration(id: String) throws(LoveseatError) -> Date? {
        let store = try openStore()
        let record = try DocumentStore.wrapping { try store.readRows { try $0.record(id, in: handle) } }
        return record?.expires.map(Date.init(expirationTime:))
    }
}

extension Collection: Hashable {
    /// Whether both name the same collection of the same database.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.handle == rhs.handle && lhs.database.path != nil && lhs.database.path == rhs.database.path
    }

    /// Hashes the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(handle.name) }
}
