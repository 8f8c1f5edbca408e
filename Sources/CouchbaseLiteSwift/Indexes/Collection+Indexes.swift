import LoveseatCore
import LoveseatModel

/// Something that has indexes.
public protocol Indexable {
    /// Returns the names of the indexes.
    func indexes() throws -> [String]
    /// Creates an index of a query builder's items.
    func createIndex(_ index: any Index, name: String) throws
    /// Creates an index.
    func createIndex(withName name: String, config: any IndexConfiguration) throws
    /// Deletes an index.
    func deleteIndex(forName name: String) throws
    /// Returns an index, or nil if there is none of this name.
    func index(withName name: String) throws -> QueryIndex?
}

/// Indexes, which make queries fast. They follow every change, and are kept until they are deleted.
extension Collection: Indexable {
    /// Returns the names of the indexes, in order.
    public func indexes() throws -> [String] {
        try database.read({ try engine.indexes() }, inBatch: { try $0.indexes(of: engine) })
    }

    /// Creates an index, and fills it from the documents that exist.
    ///
    /// Does nothing if there is an index of this name and definition. An index of the same name with another definition is replaced.
    ///
    /// - Throws: `invalidParameter` for a name that is not allowed, or a configuration without expressions; `invalidQuery` for an expression
    ///   that is not one.
    public func createIndex(withName name: String, config: any IndexConfiguration) throws {
        guard let config = try (config as? any EngineIndexConfiguration)?.engine() else {
            throw CBLError.make(
                CBLError.invalidParameter,
                "\(type(of: config)) is not a kind of index: use ValueIndexConfiguration or one of its siblings"
            )
        }
        try database.read(
            { try engine.createIndex(config, withName: name) },
            inBatch: { try $0.createIndex(config, withName: name, in: engine) }
        )
    }

    /// Creates an index of a query builder's items; see ``createIndex(withName:config:)``.
    ///
    /// - Throws: As ``createIndex(withName:config:)``.
    public func createIndex(_ index: any Index, name: String) throws {
        guard let index = index as? any BuiltIndex else {
            throw CBLError.make(
                CBLError.invalidParameter,
                "\(type(of: index)) is not a kind of index: make one with IndexBuilder"
            )
        }
        try createIndex(withName: name, config: try CBLError.converting { try index.configuration() })
    }

    /// Deletes an index. Does nothing if there is none of this name.
    public func deleteIndex(forName name: String) throws {
        try database.read(
            { try engine.deleteIndex(forName: name) },
            inBatch: { try $0.deleteIndex(forName: name, in: engine) }
        )
    }

    /// Returns an index, or nil if there is none of this name.
    public func index(withName name: String) throws -> QueryIndex? {
        guard try indexes().contains(where: { $0.isExactly(name) }) else { return nil }
        return QueryIndex(name, of: self)
    }
}

/// An index of a collection.
public final class QueryIndex: Sendable {
    /// The collection.
    public let collection: Collection
    /// The index's name.
    public let name: String

    init(_ name: String, of collection: Collection) {
        self.name = name
        self.collection = collection
    }
}
