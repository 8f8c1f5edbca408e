/// Indexes of the default collection, as apps of version 3 reach them.
extension Database {
    /// The names of the indexes of the default collection; none if they cannot be read.
    @available(*, deprecated, message: "use `defaultCollection().indexes()`")
    public var indexes: [String] { (try? defaultCollection().indexes()) ?? [] }

    /// Creates an index of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().createIndex(_:name:)`")
    public func createIndex(_ index: any Index, withName name: String) throws {
        try defaultCollection().createIndex(index, name: name)
    }

    /// Creates an index of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().createIndex(withName:config:)`")
    public func createIndex(_ config: any IndexConfiguration, name: String) throws {
        try defaultCollection().createIndex(withName: name, config: config)
    }

    /// Deletes an index of the default collection.
    @available(*, deprecated, message: "use `defaultCollection().deleteIndex(forName:)`")
    public func deleteIndex(forName name: String) throws {
        try defaultCollection().deleteIndex(forName: name)
    }
}
