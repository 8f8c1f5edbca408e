import Foundation
public import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// Settings as apps of version 3 make them.
extension ReplicatorConfiguration {
    /// The default of ``maxAttemptWaitTime``, 300 seconds.
    @available(*, deprecated, renamed: "defaultMaxAttemptsWaitTime")
    public static var defaultMaxAttemptWaitTime: Double { defaultMaxAttemptsWaitTime }

    /// Creates a configuration without collections, which are added.
    @available(*, deprecated, message: "use `ReplicatorConfiguration(collections:target:)`")
    public init(target: any Endpoint) { self.init(to: target) }

    /// Creates a configuration that replicates the default collection. A closed database ends the program.
    @available(*, deprecated, message: "use `ReplicatorConfiguration(collections:target:)`")
    public init(database: Database, target: any Endpoint) {
        self.init(to: target)
        add(CollectionConfiguration(collection: Self.defaultCollection(database)))
    }

    private static func defaultCollection(_ database: Database) -> Collection {
        do { return try database.defaultCollection() } catch {
            programmerError("the default collection cannot be replicated: \(error.localizedDescription)")
        }
    }

    /// The database whose collections are replicated. A configuration without collections has none, which ends the program.
    @available(*, deprecated, message: "use `collections`")
    public var database: Database {
        guard let first = collections.first else { programmerError("no collection was added") }
        return first.collection.database
    }

    /// Adds a collection, or replaces its settings. Nil means the defaults.
    @available(*, deprecated, message: "use `ReplicatorConfiguration(collections:target:)`")
    @discardableResult
    public mutating func addCollection(_ collection: Collection, config: CollectionConfiguration? = nil)
        -> ReplicatorConfiguration
    {
        add(CollectionConfiguration(collection, config))
        return self
    }

    /// Adds collections of the same settings, or replaces theirs. Nil means the defaults.
    @available(*, deprecated, message: "use `ReplicatorConfiguration(collections:target:)`")
    @discardableResult
    public mutating func addCollections(_ collections: [Collection], config: CollectionConfiguration? = nil)
        -> ReplicatorConfiguration
    {
        for collection in collections { add(CollectionConfiguration(collection, config)) }
        return self
    }

    /// Removes a collection. Does nothing if it was not added.
    @available(*, deprecated, message: "use `ReplicatorConfiguration(collections:target:)`")
    @discardableResult
    public mutating func removeCollection(_ collection: Collection) -> ReplicatorConfiguration {
        if let index = index(of: collection) { collections.remove(at: index) }
        return self
    }

    /// Returns the settings of a collection; nil if it was not added.
    @available(*, deprecated, message: "use `collections`")
    public func collectionConfig(_ collection: Collection) -> CollectionConfiguration? {
        index(of: collection).map { collections[$0] }
    }

    /// The channels of the default collection.
    @available(*, deprecated, message: "use `CollectionConfiguration.channels`")
    public var channels: [String]? {
        get { ofDefault?.channels }
        set { changeDefault { $0.channels = newValue } }
    }

    /// The IDs of the only documents of the default collection to replicate.
    @available(*, deprecated, message: "use `CollectionConfiguration.documentIDs`")
    public var documentIDs: [String]? {
        get { ofDefault?.documentIDs }
        set { changeDefault { $0.documentIDs = newValue } }
    }

    /// Decides which revisions of the default collection are pushed.
    @available(*, deprecated, message: "use `CollectionConfiguration.pushFilter`")
    public var pushFilter: ReplicationFilter? {
        get { ofDefault?.pushFilter }
        set { changeDefault { $0.pushFilter = newValue } }
    }

    /// Decides which revisions of the peer's default collection are stored.
    @available(*, deprecated, message: "use `CollectionConfiguration.pullFilter`")
    public var pullFilter: ReplicationFilter? {
        get { ofDefault?.pullFilter }
        set { changeDefault { $0.pullFilter = newValue } }
    }

    /// Decides between two versions of a document of the default collection.
    @available(*, deprecated, message: "use `CollectionConfiguration.conflictResolver`")
    public var conflictResolver: (any ConflictResolverProtocol)? {
        get { ofDefault?.conflictResolver }
        set { changeDefault { $0.conflictResolver = newValue } }
    }

    private var indexOfDefault: Int? {
        collections.firstIndex { $0.collection.engine.handle.name == .default }
    }

    private var ofDefault: CollectionConfiguration? { indexOfDefault.map { collections[$0] } }

    private mutating func changeDefault(_ change: (inout CollectionConfiguration) -> Void) {
        guard let index = indexOfDefault else {
            programmerError("this setting needs the default collection, which was not added")
        }
        change(&collections[index])
    }
}
