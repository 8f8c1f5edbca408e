public import LoveseatModel
import LoveseatStorage

/// Scopes and collections. Inside the closure of a transaction of the database, these throw `transactionNotClosed`:
/// ``ReadTransaction`` and ``WriteTransaction`` have calls of the same names.
extension Database {
    /// `_default`.
    public static let defaultScopeName = CollectionName.defaultPart
    /// `_default`.
    public static let defaultCollectionName = CollectionName.defaultPart

    /// The default scope, which always exists.
    public func defaultScope() throws(LoveseatError) -> Scope {
        _ = try opened
        return Scope(name: Self.defaultScopeName, database: self)
    }

    /// The default scope and every other one that holds a collection, in order of their names.
    public func scopes() throws(LoveseatError) -> [Scope] {
        let names = Set(try outerStore().collections.map(\.name.scope)).union([Self.defaultScopeName])
        return names.sorted().map { Scope(name: $0, database: self) }
    }

    /// A scope; nil if no collection is in it.
    public func scope(name: String) throws(LoveseatError) -> Scope? { try scopes().first { $0.name == name } }

    /// The default collection, which always exists.
    public func defaultCollection() throws(LoveseatError) -> Collection {
        guard let collection = try collection(.default) else {
            throw LoveseatError(.corruptData, "the default collection is missing")
        }
        return collection
    }

    /// The collections of a scope, in order of their names; none if there is no such scope.
    public func collections(scope: String? = defaultScopeName) throws(LoveseatError) -> [Collection] {
        let scope = scope ?? Self.defaultScopeName
        return try outerStore().collections.filter { $0.name.scope == scope }.sorted {
            $0.name.name < $1.name.name
        }
        .map { Collection(database: self, handle: $0) }
    }

    /// Makes a collection, or returns the one that is there.
    ///
    /// - Throws: `invalidParameter` if a name breaks the rules: 1 to 251 of `A–Z a–z 0–9 _ - %`, the first not `_` or
    ///   `%`.
    @discardableResult
    public func createCollection(name: String, scope: String? = defaultScopeName) throws(LoveseatError)
        -> Collection
    {
        let name = try Self.checked(name, scope)
        if let collection = try collection(name) { return collection }
        let store = try store
        let handle = try DocumentStore.wrapping {
            try store.write(within: config.busyTimeout) { try $0.createCollection(name) }
        }
        return Collection(database: self, handle: handle)
    }

    /// A collection; nil if there is none of this name.
    public func collection(name: String, scope: String? = defaultScopeName) throws(LoveseatError)
        -> Collection?
    {
        try collection(try Self.checked(name, scope))
    }

    package func collection(_ name: CollectionName) throws(LoveseatError) -> Collection? {
        try outerStore().collection(name).map { Collection(database: self, handle: $0) }
    }

    /// Deletes a collection with its documents; one that does not exist is deleted already.
    ///
    /// - Throws: `invalidParameter` for the default collection.
    public func deleteCollection(name: String, scope: String? = defaultScopeName) throws(LoveseatError) {
        let name = try Self.checked(name, scope)
        try Self.requireDeletable(name)
        let store = try store
        try DocumentStore.wrapping {
            try store.write(within: config.busyTimeout) { try $0.deleteCollection(name) }
        }
    }

    /// The store, for calls that would not see what a transaction under way has changed.
    private func outerStore(_ call: String = #function) throws(LoveseatError) -> DocumentStore {
        let store = try store
        try store.requireNoTransaction(call)
        return store
    }

    static func requireDeletable(_ name: CollectionName) throws(LoveseatError) {
        guard name != .default else {
            throw LoveseatError(
                .invalidParameter,
                "the default collection cannot be deleted: purge its documents instead"
            )
        }
    }

    static func checked(_ name: String, _ scope: String?) throws(LoveseatError) -> CollectionName {
        guard let checked = CollectionName(scope: scope ?? defaultScopeName, name: name) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(scope ?? "").\(name)\" is not a valid name for a collection: use 1 to 251 of A-Z a-z 0-9 _ - %, first not _ or %"
            )
        }
        return checked
    }
}

/// A namespace for collections. It exists while a collection is in it.
public struct Scope: Sendable {
    /// `_default`.
    public static let defaultScopeName = CollectionName.defaultPart
    /// Its name.
    public let name: String
    /// The database it is in.
    public let database: Database

    /// Its collections, in order of their names.
    public func collections() throws(LoveseatError) -> [Collection] { try database.collections(scope: name) }

    /// One of its collections; nil if there is none of this name.
    public func collection(name: String) throws(LoveseatError) -> Collection? {
        try database.collection(name: name, scope: self.name)
    }
}
