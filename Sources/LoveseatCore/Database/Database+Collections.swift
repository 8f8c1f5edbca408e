public import LoveseatModel
import LoveseatStorage

/// Scopes and collections.
///
/// These calls throw `notOpen` after the database was closed, and `transactionNotClosed` inside the closure of a transaction of this
/// database, where ``ReadTransaction`` and ``WriteTransaction`` have calls of the same names.
extension Database {
    /// Returns the default scope, which always exists.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `transactionNotClosed` inside a transaction's closure.
    public func defaultScope() throws(LoveseatError) -> Scope {
        _ = try opened
        return Scope(name: CollectionName.defaultPart, database: self)
    }

    /// Returns the default scope and every other scope that contains a collection, in order of their names.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `transactionNotClosed` inside a transaction's closure.
    public func scopes() throws(LoveseatError) -> [Scope] {
        let names = Set(try outerStore().collections.map(\.name.scope)).union([CollectionName.defaultPart])
        return names.sorted().map { Scope(name: $0, database: self) }
    }

    /// Returns a scope, or nil if it contains no collection.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `transactionNotClosed` inside a transaction's closure.
    public func scope(name: String) throws(LoveseatError) -> Scope? { try scopes().first { $0.name == name } }

    /// Returns the default collection, which always exists.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `transactionNotClosed` inside a transaction's closure.
    public func defaultCollection() throws(LoveseatError) -> Collection {
        guard let collection = try collection(.default) else {
            throw LoveseatError(.corruptData, "the default collection is missing")
        }
        return collection
    }

    /// Returns the collections of a scope, in order of their names. The result is empty if the scope does not exist. A nil scope is
    /// the default scope.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `transactionNotClosed` inside a transaction's closure.
    public func collections(scope: String? = CollectionName.defaultPart) throws(LoveseatError) -> [Collection]
    {
        let scope = scope ?? CollectionName.defaultPart
        return try outerStore().collections.filter { $0.name.scope == scope }.sorted {
            $0.name.name < $1.name.name
        }
        .map { Collection(database: self, handle: $0) }
    }

    /// Creates a collection, or returns the existing one.
    ///
    /// A scope exists while it contains a collection. Names are case-sensitive.
    ///
    /// - Parameters:
    ///   - name: The collection's name: 1 to 251 of the characters `A–Z a–z 0–9 _ - %`, not beginning with `_` or `%`.
    ///   - scope: The scope's name, by the same rules. Nil means the default scope.
    /// - Returns: The collection.
    /// - Throws: ``LoveseatError``: `invalidParameter` if a name breaks the rules; `busy` if other transactions lasted longer than
    ///   ``DatabaseConfiguration/busyTimeout``; `notWriteable`; an error of the disk.
    @discardableResult
    public func createCollection(name: String, scope: String? = CollectionName.defaultPart)
        throws(LoveseatError)
        -> Collection
    {
        let name = try CollectionName(checking: name, scope)
        if let collection = try collection(name) { return collection }
        let store = try store
        let handle = try DocumentStore.wrapping {
            try store.write(within: config.busyTimeout) { try $0.createCollection(name) }
        }
        return Collection(database: self, handle: handle)
    }

    /// Returns a collection, or nil if it does not exist.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if a name breaks the rules of ``createCollection(name:scope:)``.
    public func collection(name: String, scope: String? = CollectionName.defaultPart) throws(LoveseatError)
        -> Collection?
    {
        try collection(try CollectionName(checking: name, scope))
    }

    package func collection(_ name: CollectionName) throws(LoveseatError) -> Collection? {
        try outerStore().collection(name).map { Collection(database: self, handle: $0) }
    }

    /// Deletes a collection with its documents. Does nothing if the collection does not exist.
    ///
    /// The deletion does not replicate. A collection that is created anew under the same name is empty, and ``Collection`` values of
    /// the deleted one throw `notOpen`.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for the default collection; `busy`; `notWriteable`; an error of the disk.
    public func deleteCollection(name: String, scope: String? = CollectionName.defaultPart)
        throws(LoveseatError)
    {
        let name = try CollectionName(checking: name, scope)
        try name.requireDeletable()
        let store = try store
        try DocumentStore.wrapping {
            try store.write(within: config.busyTimeout) { try $0.deleteCollection(name) }
        }
    }

    /// The store, for calls that would not see the changes of an open transaction.
    private func outerStore(_ call: String = #function) throws(LoveseatError) -> DocumentStore {
        let store = try store
        try store.requireNoTransaction(call)
        return store
    }
}

/// A namespace for collections, which exists while it contains a collection.
public struct Scope: Sendable {
    /// The scope's name.
    public let name: String
    /// The database that contains the scope.
    public let database: Database

    /// Returns the scope's collections, in order of their names.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, or `transactionNotClosed` inside a transaction's closure.
    public func collections() throws(LoveseatError) -> [Collection] { try database.collections(scope: name) }

    /// Returns one of the scope's collections, or nil if it does not exist.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if the name breaks the rules; `notOpen`; `transactionNotClosed` inside a
    ///   transaction's closure.
    public func collection(name: String) throws(LoveseatError) -> Collection? {
        try database.collection(name: name, scope: self.name)
    }
}
