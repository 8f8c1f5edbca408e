public import Foundation
import Logging
import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// A collection of documents in a database.
///
/// It is safe to use from any thread. Its calls block the thread. Every call that can throw throws `notOpen` after the collection was deleted
/// or its database closed, by whatever object.
public final class Collection: CollectionChangeObservable, Equatable, Hashable, Sendable {
    /// The name of the default collection, `_default`.
    public static let defaultCollectionName = Database.defaultCollectionName
    /// The collection's name within its scope.
    public let name: String
    /// The scope that contains the collection.
    public let scope: Scope
    /// The database that contains the collection.
    public let database: Database
    let engine: EngineCollection

    init(_ engine: EngineCollection, in scope: Scope) {
        self.engine = engine
        name = engine.name
        self.scope = scope
        database = scope.database
    }

    /// The collection's name with its scope, `scope.collection`.
    public var fullName: String { engine.fullName }

    /// The number of documents, without deleted ones; 0 after the collection was deleted or its database closed.
    public var count: UInt64 {
        guard let transaction = database.transaction else { return engine.count }
        // A property cannot throw.
        return (try? transaction.count(in: engine)) ?? 0
    }

    // MARK: Reading

    /// Returns a document, or nil if it does not exist or was deleted.
    ///
    /// - Throws: `badDocID` for an empty ID.
    public func document(id: String) throws -> Document? {
        try database.read(
            { try engine.document(id: id) },
            inBatch: { try $0.document(id: id, in: engine) }
        )
        .map { Document($0, in: self) }
    }

    /// Finds a document, and values in it. An error of reading is logged, and then the document does not exist.
    public subscript(key: String) -> DocumentFragment {
        do { return DocumentFragment(try document(id: key)) } catch {
            LogDomain.database.log(
                .error,
                "document \"\(key)\" of \(fullName) cannot be read: \(error.localizedDescription)"
            )
            return DocumentFragment(nil)
        }
    }

    /// The current revision of a document, tombstones included; nil if it was never saved, or was purged.
    func current(id: String) throws -> (document: EngineDocument?, revision: RevisionID)? {
        try database.read(
            { try database.engine.read { try $0.current(id: id, in: engine) } },
            inBatch: { try $0.current(id: id, in: engine) }
        )
    }

    /// The revisions of a document, the newest first.
    func state(of id: String) throws -> StateHistory {
        try database.read(
            { try database.engine.read { try $0.state(id: id, in: engine) } },
            inBatch: { try $0.state(id: id, in: engine) }
        )
    }

    // MARK: Expiration

    /// Sets when a document is purged, with a resolution of a millisecond. Nil means never.
    ///
    /// - Throws: `notFound` if the document does not exist.
    public func setDocumentExpiration(id: String, expiration: Date?) throws {
        try database.read(
            { try engine.setDocumentExpiration(id: id, expiration: expiration) },
            inBatch: { try $0.setDocumentExpiration(id: id, in: engine, expiration: expiration) }
        )
    }

    /// Returns when a document will be purged; nil if it has no expiration or does not exist.
    public func getDocumentExpiration(id: String) throws -> Date? {
        try database.read(
            { try engine.getDocumentExpiration(id: id) },
            inBatch: { try $0.getDocumentExpiration(id: id, in: engine) }
        )
    }

    // MARK: Equality

    /// Whether both have the same name in the same folder, whether or not they exist still.
    func hasSameName(as other: Collection) -> Bool {
        engine.handle.name == other.engine.handle.name && database.folder.isExactly(other.database.folder)
    }

    private var isValid: Bool { (try? engine.database.store.contains(engine.handle)) ?? false }

    /// Returns whether both name the same collection of the same database, and it exists.
    public static func == (lhs: Collection, rhs: Collection) -> Bool {
        lhs.hasSameName(as: rhs) && lhs.isValid && rhs.isValid
    }

    /// Hashes the collection's name.
    public func hash(into hasher: inout Hasher) { hasher.combine(engine.handle.name) }
}
