public import Foundation
import Logging
public import LoveseatModel
package import LoveseatStorage

/// The behaviour of a save or delete if the document was changed since it was read.
public enum ConcurrencyControl: UInt8, Hashable, Sendable {
    /// The last save wins. This is the default.
    case lastWriteWins
    /// Nothing is saved, and the call returns false.
    case failOnConflict
}

/// A collection of documents in a database.
///
/// A collection is a value that names a collection of an open database. It is safe to use from any thread. Its calls block the
/// calling thread, for microseconds unless other transactions are in progress.
///
/// Each call that saves, deletes or purges is a transaction of its own. To change several documents together, or to read
/// several as of one moment, use ``Database/write(_:)-8w0u2`` and ``Database/read(_:)-8zqyx``.
///
/// Every call that can throw throws `notOpen` after the collection was deleted or its database closed, and
/// `transactionNotClosed` inside the closure of a transaction of the database, where the transaction has calls of the same
/// names. Calls that write throw `busy` if other transactions last longer than ``DatabaseConfiguration/busyTimeout``, and
/// `notWriteable` if the database is read-only.
public struct Collection: Sendable {
    /// The database that contains the collection.
    public let database: Database
    package let handle: CollectionHandle

    package init(database: Database, handle: CollectionHandle) {
        self.database = database
        self.handle = handle
    }

    /// The collection's name within its scope.
    public var name: String { handle.name.name }
    /// The collection's name with its scope, `scope.collection`.
    public var fullName: String { handle.name.fullName }
    /// The scope that contains the collection.
    public var scope: Scope { Scope(name: handle.name.scope, database: database) }

    /// The number of documents, without deleted ones. 0 after the collection was deleted or its database closed, and if the
    /// disk fails, which is logged.
    ///
    /// Inside the closure of a write transaction this is the number before the transaction; use ``ReadTransaction/count(in:)``
    /// there. Counting takes time in proportion to the number of documents.
    public var count: UInt64 {
        guard let store = try? database.store else { return 0 }
        do throws(LoveseatError) {
            let count = try DocumentStore.wrapping {
                // Counting would block the connection for single rows for too long, so it uses another one if possible.
                store.isInTransaction
                    ? try store.readRows { try $0.count(handle) } : try store.read { try $0.count(handle) }
            }
            return UInt64(count)
        } catch {
            // A property cannot throw. That the collection was deleted, or the database closed meanwhile, is not a failure.
            guard store.contains(handle), database.path != nil else { return 0 }
            LogDomain.database.log(
                .error,
                "\(database.name): the documents of \(fullName) cannot be counted, 0 is returned: \(error.message) (\(error.code))"
            )
            return 0
        }
    }

    /// The store, for calls that would not see the changes of an open transaction.
    ///
    /// `call`: the name of the called function, for messages.
    package func openStore(_ call: String = #function) throws(LoveseatError) -> DocumentStore {
        let store = try database.store
        try store.requireNoTransaction(call)
        guard store.contains(handle) else {
            throw LoveseatError(.notOpen, "collection \(fullName) was deleted")
        }
        return store
    }

    /// Changes documents in a transaction of its own.
    ///
    /// `call`: the name of the called function, for messages.
    func edit<T>(
        in store: DocumentStore,
        call: String = #function,
        _ body: (DocumentEditor) throws -> T
    ) throws(LoveseatError) -> T {
        try DocumentStore.wrapping {
            try store.write(within: database.config.busyTimeout, call: call) {
                try body(DocumentEditor(self, $0))
            }
        }
    }

    // MARK: Reading

    /// Returns a document, or nil if it does not exist or was deleted.
    ///
    /// - Throws: ``LoveseatError``: `badDocID` for an empty ID; `corruptData` or `corruptRevisionData` if what is stored is damaged;
    ///   `notOpen`.
    public func document(id: String) throws(LoveseatError) -> Document? {
        guard !id.isEmpty else { throw LoveseatError(.badDocID, "a document ID cannot be empty") }
        let store = try openStore()
        let record = try DocumentStore.wrapping { try store.readRows { try $0.record(id, in: handle) } }
        guard let record, !record.isDeleted else { return nil }
        return try Document(record, in: self)
    }

    // MARK: Saving

    /// Saves a document, and updates its ``Document/revisionID`` and ``Document/sequence``.
    ///
    /// Attachments that a REST client or a 1.x app made (``Document/attachment(_:)``) stay, unless the document has a property
    /// `_attachments`.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: ``LoveseatError``: `badDocID` if the ID is empty, longer than 240 bytes, begins with `_` or has a control character;
    ///   `encodingError` for a value that JSON cannot hold (an infinity, a number beyond a double's range, more than 128 levels);
    ///   `invalidParameter` for a top-level name that begins with `_`, a document larger than
    ///   ``DatabaseConfiguration/maximumDocumentBytes``, or one that belongs to another collection or `Database`;
    ///   `unexpectedError` if the document refers to a blob that is not in the database; an error of the disk.
    @discardableResult
    public func save(_ document: inout Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        let store = try openStore()
        let body = try DocumentValidator(self).body(of: document)
        let saved = try edit(in: store) { try $0.save(document, body, concurrencyControl) }
        guard let saved else { return false }
        document.apply(saved, in: self)
        return true
    }

    /// Saves a document without updating the caller's copy.
    ///
    /// The caller's copy keeps its old revision, so saving it again with `failOnConflict` returns false. Otherwise the same as
    /// ``save(_:concurrencyControl:)-t2kq``.
    @discardableResult
    public func save(_ document: Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        var document = document
        return try save(&document, concurrencyControl: concurrencyControl)
    }

    /// Saves a document, and asks a handler what to do if it was changed since it was read.
    ///
    /// - Parameters:
    ///   - document: The document to save.
    ///   - conflictHandler: Gets the document and the stored one, which is nil if it was deleted. It changes the first and returns
    ///     true to save it, or returns false to give up. It runs on the calling thread, outside any transaction, and again if the
    ///     document changes meanwhile.
    /// - Returns: False if the handler gave up; true otherwise.
    /// - Throws: The error that the handler throws; ``LoveseatError``: `notFound` if the document was purged meanwhile; otherwise as
    ///   ``save(_:concurrencyControl:)-t2kq``.
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

    /// Deletes a document. It is replaced by a tombstone, which replicates.
    ///
    /// Deleting a document that is deleted already succeeds and changes nothing.
    ///
    /// - Returns: False if the document was changed since it was read and `concurrencyControl` is `failOnConflict`; true otherwise.
    /// - Throws: ``LoveseatError``: `notFound` if the document was never saved, or was purged; `invalidParameter` if it belongs to
    ///   another collection or `Database`.
    @discardableResult
    public func delete(_ document: Document, concurrencyControl: ConcurrencyControl = .lastWriteWins)
        throws(LoveseatError) -> Bool
    {
        let store = try openStore()
        try DocumentValidator(self).requireOwn(document)
        return try edit(in: store) { try $0.delete(document, concurrencyControl) }
    }

    /// Removes a document from this database, with all its versions. Other databases keep it, and do not send it again until it
    /// changes.
    ///
    /// A database that replicates remembers the revision IDs, under a hash of the document's ID, until a document of that ID is stored
    /// again: a document that you create anew replaces the old one at other databases too.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist; `invalidParameter` if it belongs to another collection
    ///   or `Database`.
    public func purge(_ document: Document) throws(LoveseatError) {
        let store = try openStore()
        try DocumentValidator(self).requireOwn(document)
        try edit(in: store) { try $0.purge(document.id) }
    }

    /// Removes a document or a tombstone from this database; see ``purge(_:)-(Document)``.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func purge(id: String) throws(LoveseatError) {
        try edit(in: openStore()) { try $0.purge(id) }
    }

    // MARK: Expiration

    /// Sets when a document is purged. Nil means never.
    ///
    /// The time has a resolution of a millisecond. The document is purged at that time if the database is open, otherwise when it
    /// is opened next. Setting an expiration does not make a revision, does not replicate, and is not a change.
    ///
    /// - Throws: ``LoveseatError``: `notFound` if the document does not exist.
    public func setDocumentExpiration(id: String, expiration: Date?) throws(LoveseatError) {
        let time = expiration.map(\.expirationTime)
        try edit(in: openStore()) { try $0.setExpiration(of: id, at: time) }
        if let time { try database.opened.expiration.expires(at: time) }
    }

    /// Returns when a document will be purged, or nil if it has no expiration or does not exist.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; an error of the disk.
    public func getDocumentExpiration(id: String) throws(LoveseatError) -> Date? {
        let store = try openStore()
        let record = try DocumentStore.wrapping { try store.readRows { try $0.record(id, in: handle) } }
        return record?.expires.map(Date.init(expirationTime:))
    }
}

extension Collection: Hashable {
    /// Returns whether both values name the same collection of the same database: one `Database`, or several that were open on one folder
    /// at the same time. Closing the database changes nothing of that.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.handle == rhs.handle && lhs.database.folderNumber == rhs.database.folderNumber
    }

    /// Hashes the collection's name. Equal collections have equal names.
    public func hash(into hasher: inout Hasher) { hasher.combine(handle.name) }
}
