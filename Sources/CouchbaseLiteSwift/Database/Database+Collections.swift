import LoveseatCore
import LoveseatModel

/// Scopes and collections. All calls throw `notOpen` after the database was closed.
extension Database {
    /// Returns the default scope, which always exists.
    public func defaultScope() throws -> Scope {
        _ = try CBLError.converting { try engine.opened }
        return Scope(name: Self.defaultScopeName, database: self)
    }

    /// Returns the default scope and every other scope that contains a collection.
    public func scopes() throws -> [Scope] {
        let names = try read(
            { try engine.scopes().map(\.name) },
            inBatch: { try Set($0.scopeNames).union([Self.defaultScopeName]).sorted() }
        )
        return names.map { Scope(name: $0, database: self) }
    }

    /// Returns a scope, or nil if it contains no collection.
    public func scope(name: String) throws -> Scope? { try scopes().first { $0.name.isExactly(name) } }

    /// Returns the default collection, which always exists.
    public func defaultCollection() throws -> Collection {
        object(for: try read({ try engine.defaultCollection() }, inBatch: { try $0.defaultCollection() }))
    }

    /// Returns the collections of a scope; none if the scope does not exist. Nil is the default scope.
    public func collections(scope: String? = defaultScopeName) throws -> [Collection] {
        try read(
            { try engine.collections(scope: scope) },
            inBatch: { try $0.collections(scope: scope) }
        )
        .map { object(for: $0) }
    }

    /// Creates a collection, or returns the existing one.
    ///
    /// - Parameters:
    ///   - name: 1 to 251 of the characters `A–Z a–z 0–9 _ - %`, not beginning with `_` or `%`.
    ///   - scope: The scope's name, by the same rules. Nil is the default scope.
    /// - Returns: The collection.
    /// - Throws: `invalidParameter` for a name that is not allowed.
    public func createCollection(name: String, scope: String? = defaultScopeName) throws -> Collection {
        object(
            for: try read(
                { try engine.createCollection(name: name, scope: scope) },
                inBatch: { try $0.createCollection(name: name, scope: scope) }
            )
        )
    }

    /// Returns a collection, or nil if it does not exist.
    ///
    /// - Throws: `invalidParameter` for a name that is not allowed.
    public func collection(name: String, scope: String? = defaultScopeName) throws -> Collection? {
        try read(
            { try engine.collection(name: name, scope: scope) },
            inBatch: { try $0.collection(name: name, scope: scope) }
        )
        .map { object(for: $0) }
    }

    /// Deletes a collection with its documents. Does nothing if it does not exist.
    ///
    /// - Throws: `invalidParameter` for the default collection.
    public func deleteCollection(name: String, scope: String? = defaultScopeName) throws {
        try read(
            { try engine.deleteCollection(name: name, scope: scope) },
            inBatch: { try $0.deleteCollection(name: name, scope: scope) }
        )
    }
}

/// A namespace for collections. The default one always exists; others exist while they contain a collection.
public final class Scope: Sendable {
    /// The name of the default scope, `_default`.
    public static let defaultScopeName = Database.defaultScopeName
    /// The scope's name.
    public let name: String
    /// The database that contains the scope.
    public let database: Database

    init(name: String, database: Database) {
        self.name = name
        self.database = database
    }

    /// Returns the scope's collections.
    public func collections() throws -> [Collection] { try database.collections(scope: name) }

    /// Returns one of the scope's collections, or nil if it does not exist.
    public func collection(name: String) throws -> Collection? {
        try database.collection(name: name, scope: self.name)
    }
}
