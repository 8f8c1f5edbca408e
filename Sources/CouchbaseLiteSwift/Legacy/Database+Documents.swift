public import Dispatch
public import Foundation

/// Documents of the default collection, as apps of version 3 reach them.
///
/// After the default collection could not be opened, because the database is closed, calls that can throw throw `notOpen`; others do nothing.
extension Database {
    /// The number of documents in the default collection.
    @available(*, deprecated, message: "use `defaultCollection().count`")
    public var count: UInt64 { (try? defaultCollection())?.count ?? 0 }

    /// Finds a document of the default collection, and values in it.
    @available(*, deprecated, message: "use the subscript of `defaultCollection()`")
    public subscript(key: String) -> DocumentFragment {
        (try? defaultCollection())?[key] ?? DocumentFragment(nil)
    }

    /// Returns a document of the default collection, or nil if it does not exist or cannot be read.
    @available(*, deprecated, message: "use `defaultCollection().document(id:)`")
    public func document(withID id: String) -> Document? { try? defaultCollection().document(id: id) }

    /// Saves a document in the default collection.
    @available(*, deprecated, message: "use `defaultCollection().save(document:)`")
    public func saveDocument(_ document: MutableDocument) throws {
        try defaultCollection().save(document: document)
    }

    /// Saves a document in the default collection; see ``Collection/save(document:concurrencyControl:)``.
    @available(*, deprecated, message: "use `defaultCollection().save(document:concurrencyControl:)`")
    @discardableResult
    public func saveDocument(_ document: MutableDocument, concurrencyControl: ConcurrencyControl) throws
        -> Bool
    {
        try defaultCollection().save(document: document, concurrencyControl: concurrencyControl)
    }

    /// Saves a document in the default collection; see ``Collection/save(document:conflictHandler:)``.
    @available(*, deprecated, message: "use `defaultCollection().save(document:conflictHandler:)`")
    @discardableResult
    public func saveDocument(
        _ document: MutableDocument,
        conflictHandler: @escaping (MutableDocument, Document?) -> Bool
    ) throws -> Bool {
        try defaultCollection().save(document: document, conflictHandler: conflictHandler)
    }

    /// Deletes a document of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().delete(document:)`")
    public func deleteDocument(_ document: Document) throws {
        try defaultCollection().delete(document: document)
    }

    /// Deletes a document of the default collection; see ``Collection/delete(document:concurrencyControl:)``.
    @available(*, deprecated, message: "use `defaultCollection().delete(document:concurrencyControl:)`")
    @discardableResult
    public func deleteDocument(_ document: Document, concurrencyControl: ConcurrencyControl) throws -> Bool {
        try defaultCollection().delete(document: document, concurrencyControl: concurrencyControl)
    }

    /// Purges a document of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().purge(document:)`")
    public func purgeDocument(_ document: Document) throws {
        try defaultCollection().purge(document: document)
    }

    /// Purges a document of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().purge(id:)`")
    public func purgeDocument(withID id: String) throws { try defaultCollection().purge(id: id) }

    /// Sets when a document of the default collection is purged.
    @available(*, deprecated, message: "use `defaultCollection().setDocumentExpiration(id:expiration:)`")
    public func setDocumentExpiration(withID id: String, expiration: Date?) throws {
        try defaultCollection().setDocumentExpiration(id: id, expiration: expiration)
    }

    /// Returns when a document of the default collection will be purged.
    @available(*, deprecated, message: "use `defaultCollection().getDocumentExpiration(id:)`")
    public func getDocumentExpiration(withID id: String) -> Date? {
        (try? defaultCollection().getDocumentExpiration(id: id)) ?? nil
    }
}

/// The documents of the default collection that one transaction changed.
@available(*, deprecated, message: "use `CollectionChange`")
public struct DatabaseChange {
    /// The database that changed.
    public let database: Database
    /// The IDs of the documents that changed.
    public let documentIDs: [String]
}

extension DocumentChange {
    /// The database of the document.
    @available(*, deprecated, message: "use `collection.database`")
    public var database: Database { collection.database }
}

/// Listeners for the default collection, as apps of version 3 add them.
extension Database {
    /// Calls a closure on the main queue after each transaction that changes documents of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().addChangeListener(listener:)`")
    @discardableResult
    public func addChangeListener(_ listener: @escaping (DatabaseChange) -> Void) -> ListenerToken {
        addChangeListener(withQueue: nil, listener)
    }

    /// Calls a closure on a queue after each transaction that changes documents of the default collection. Nil is the main queue.
    @available(*, deprecated, message: "use `defaultCollection().addChangeListener(queue:listener:)`")
    @discardableResult
    public func addChangeListener(
        withQueue queue: DispatchQueue?,
        _ listener: @escaping (DatabaseChange) -> Void
    ) -> ListenerToken {
        let collection = try? defaultCollection()
        return collection?.addChangeListener(queue: queue) { change in
            listener(DatabaseChange(database: change.collection.database, documentIDs: change.documentIDs))
        } ?? ListenerToken()
    }

    /// Calls a closure on the main queue after each transaction that changes a document of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().addDocumentChangeListener(id:listener:)`")
    @discardableResult
    public func addDocumentChangeListener(
        withID id: String,
        listener: @escaping (DocumentChange) -> Void
    ) -> ListenerToken {
        addDocumentChangeListener(withID: id, queue: nil, listener: listener)
    }

    /// Calls a closure on a queue after each transaction that changes a document of the default collection. Nil is the main queue.
    @available(
        *,
        deprecated,
        message: "use `defaultCollection().addDocumentChangeListener(id:queue:listener:)`"
    )
    @discardableResult
    public func addDocumentChangeListener(
        withID id: String,
        queue: DispatchQueue?,
        listener: @escaping (DocumentChange) -> Void
    ) -> ListenerToken {
        let collection = try? defaultCollection()
        return collection?.addDocumentChangeListener(id: id, queue: queue, listener: listener)
            ?? ListenerToken()
    }

    /// Removes a listener.
    @available(*, deprecated, message: "use `token.remove()`")
    public func removeChangeListener(withToken token: ListenerToken) { token.remove() }
}
