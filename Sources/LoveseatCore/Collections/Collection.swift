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
/// Every member that throws throws `notOpen` once the collection was deleted or its database closed.
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

    /// The number of documents, deleted ones not counted; 0 once the collection is gone.
    public var count: UInt64 {
        guard let store = try? openStore, let count = try? store.read({ try $0.count(handle) }) else {
            return 0
        }
        return UInt64(count)
    }

    package var openStore: DocumentStore {
        get throws(LoveseatError) {
            let store = try database.store
            guard store.contains(handle) else {
                throw LoveseatError(.notOpen, "collection \(fullName) was deleted")
            }
            return store
        }
    }

    private func write<T>(_ body: (WriteTransaction) throws -> T) throws(LoveseatError) -> T {
        let store = try openStore
        return try DocumentStore.wrapping { try store.writeOne(body) }
    }

    // MARK: Reading

    /// A document; nil if there is none, or it was deleted.
    ///
    /// - Throws: `badDocID` for an empty ID.
    public func document(id: String) throws(LoveseatError) -> Document? {
        guard !id.isEmpty else { throw LoveseatError(.badDocID, "a document ID cannot be empty") }
        let store = try openStore
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
        try Self.check(document.id)
        try requireOwn(document)
        let body = try checkedBody(of: document)
        let condition: SaveCondition =
            concurrencyControl == .lastWriteWins ? .lastWriteWins : .unchanged(since: document.revisionID)
        let saved = try write {
            try $0.save(document.id, in: handle, body: body, isDeleted: false, condition: condition)
        }
        guard let saved else { return false }
        document.revisionID = saved.revision
        document.sequence = saved.sequence
        document.origin = origin
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
            let store = try openStore
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
        guard document.revisionID != nil else { throw notFound(document.id) }
        try requireOwn(document)
        return try write { transaction in
            guard let record = try transaction.record(document.id, in: handle) else {
                throw notFound(document.id)
            }
            // Deleted twice is deleted.
            if record.isDeleted { return true }
            let condition: SaveCondition =
                concurrencyControl == .lastWriteWins ? .lastWriteWins : .unchanged(since: document.revisionID)
            let body = JSONText.emptyObject
            return try transaction.save(
                document.id,
                in: handle,
                body: body,
                isDeleted: true,
                condition: condition
            ) != nil
        }
    }

    /// Removes a document without trace. Other databases keep it.
    ///
    /// - Throws: `notFound` if it is not there; `invalidParameter` if it is another collection's.
    public func purge(_ document: Document) throws(LoveseatError) {
        try requireOwn(document)
        try purge(id: document.id)
    }

    /// Removes a document, or a tombstone, without trace. Other databases keep it.
    ///
    /// - Throws: `notFound` if it is not there.
    public func purge(id: String) throws(LoveseatError) {
        guard try write({ try $0.purge(id, in: handle) }) else { throw notFound(id) }
    }

    // MARK: Expiration

    /// Sets when a document purges itself, to the millisecond; nil for never. Changes no revision.
    ///
    /// - Throws: `notFound` if there is no such document.
    public func setDocumentExpiration(id: String, expiration: Date?) throws(LoveseatError) {
        let time = expiration.map { Int64(min(max($0.timeIntervalSince1970 * 1_000, 0), 1e15)) }
        guard try write({ try $0.setExpiration(id, in: handle, at: time) }) else { throw notFound(id) }
        if let time { try database.opened.expiration.expires(at: time) }
    }

    /// When a document purges itself; nil if never, or if there is none.
    public func getDocumentExpiration(id: String) throws(LoveseatError) -> Date? {
        let store = try openStore
        let record = try DocumentStore.wrapping { try store.readRows { try $0.record(id, in: handle) } }
        return record?.expires.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
    }

    // MARK: Checks

    /// What marks this collection's documents.
    var origin: DocumentOrigin {
        DocumentOrigin(database: database.instance, collection: handle.number)
    }

    private func requireOwn(_ document: Document) throws(LoveseatError) {
        // A deleted collection says so, instead.
        guard document.origin == nil || document.origin == origin || (try? openStore) == nil else {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(document.id)\" belongs to another collection or database: save a new document with its properties"
            )
        }
    }

    private func notFound(_ id: String) -> LoveseatError {
        LoveseatError(.notFound, "there is no document \"\(id)\" in collection \(fullName)")
    }

    static func check(_ id: String) throws(LoveseatError) {
        guard DocumentID.isValid(id) else {
            throw LoveseatError(
                .badDocID,
                "\"\(id)\" is no document ID: use 1 to 240 bytes, no _ in front, no control characters"
            )
        }
    }

    /// The canonical body of a document, which peers, `check` and `import` all accept.
    private func checkedBody(of document: Document) throws(LoveseatError) -> JSONText {
        let body = try Self.checkedJSON(of: document)
        let limit = database.config.maximumDocumentBytes
        guard body.bytes.count <= limit else {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(document.id)\" has \(body.bytes.count) bytes, at most \(limit) are allowed: keep large content in blobs"
            )
        }
        let references = BlobReference.all(in: body)
        if references.isEmpty { return body }
        let files = try openStore.blobs
        if let missing = references.first(where: { !files.contains($0.digest) }) {
            throw LoveseatError(
                .unexpectedError,
                "document \"\(document.id)\" refers to blob \(missing.digest), which is not in database \"\(database.name)\": save the blob there first"
            )
        }
        return body
    }

    /// The canonical body of a document, whatever collection it is for.
    static func checkedJSON(of document: Document) throws(LoveseatError) -> JSONText {
        let body: JSONText
        do throws(JSONError) { body = try document.canonicalBody() } catch {
            throw LoveseatError(
                .encodingError,
                "document \"\(document.id)\" has a value that JSON cannot hold: \(error.reason.rawValue)"
            )
        }
        try checkNames(in: body, of: document.id)
        return body
    }

    /// Top-level names that begin with `_` belong to the protocol, and vanish at every peer (replication.md §20).
    private static func checkNames(in body: JSONText, of id: String) throws(LoveseatError) {
        guard body.bytes.contains(word: "\"_") else { return }
        for (key, _) in JSONElement(body).members
        where key.utf8.first == UInt8(ascii: "_") && key != "_attachments" {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(id)\" has a property \"\(key)\": names that begin with _ belong to replication"
            )
        }
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

extension Document {
    /// A document that belongs to no collection, as filters and resolvers see it.
    init(_ record: DocumentRecord) {
        self.init(id: record.id, revisionID: record.revision, sequence: record.sequence, body: record.body)
    }

    init(_ record: DocumentRecord, in collection: Collection) {
        self.init(record)
        origin = collection.origin
    }
}
