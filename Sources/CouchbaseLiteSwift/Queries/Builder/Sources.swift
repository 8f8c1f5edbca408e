public import LoveseatCore

/// A collection that is queried, or the beginning of one.
public protocol DataSourceProtocol: LoveseatCore.DataSourceProtocol {
    /// The database of the collection. Apps have no use for it.
    var _database: Database { get }
}

/// A collection that is queried, with its alias.
public struct DataSource: DataSourceProtocol {
    let collection: Collection
    let alias: String

    /// The database of the collection. Apps have no use for it.
    public var _database: Database { collection.database }

    /// The collection for the engine.
    public var dataSource: LoveseatCore.DataSource {
        LoveseatCore.DataSource.collection(collection.engine).as(alias)
    }

    /// A collection. Its alias is its name.
    public static func collection(_ collection: Collection) -> DataSourceAs {
        DataSourceAs(collection: collection, alias: nil)
    }

    /// The default collection of a database, whose name is the alias.
    ///
    /// A database that is closed ends the program.
    @available(*, deprecated, message: "use `DataSource.collection(_:)`")
    public static func database(_ database: Database) -> DataSourceAs {
        guard let collection = try? database.defaultCollection() else {
            programmerError("a query cannot be made for a database that is closed")
        }
        return DataSourceAs(collection: collection, alias: database.name)
    }
}

/// A collection that can be given an alias.
public struct DataSourceAs: DataSourceProtocol {
    let collection: Collection
    let alias: String?

    /// The database of the collection. Apps have no use for it.
    public var _database: Database { collection.database }

    /// The collection for the engine.
    public var dataSource: LoveseatCore.DataSource {
        let source = LoveseatCore.DataSource.collection(collection.engine)
        return alias.map { source.as($0) } ?? source.dataSource
    }

    /// Gives the collection an alias, which must differ from all others in the query.
    public func `as`(_ alias: String) -> DataSource { DataSource(collection: collection, alias: alias) }
}

extension LoveseatCore.Join {
    /// All pairs of documents for which a condition is true, as ``innerJoin(_:)``.
    public static func join(_ dataSource: any DataSourceProtocol) -> LoveseatCore.JoinOn {
        innerJoin(dataSource)
    }

    /// All pairs for which a condition is true, and each document without a partner, as ``leftOuterJoin(_:)``.
    public static func leftJoin(_ dataSource: any DataSourceProtocol) -> LoveseatCore.JoinOn {
        leftOuterJoin(dataSource)
    }
}
