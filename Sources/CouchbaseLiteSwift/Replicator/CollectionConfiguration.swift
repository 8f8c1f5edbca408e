public import LoveseatCore
import LoveseatModel

/// Decides whether a revision of a document is replicated.
///
/// It is called for every revision, deletions included, on a thread of the replicator and outside of transactions. It may use the database.
/// The document cannot be changed, not even as a copy, which ends the program.
public typealias ReplicationFilter = (Document, DocumentFlags) -> Bool

/// How a ``Replicator`` replicates one collection.
public struct CollectionConfiguration {
    private let named: Collection?
    /// Decides between two versions of a document. Nil, the default, means ``ConflictResolver/default``.
    public var conflictResolver: (any ConflictResolverProtocol)?
    /// Decides which local revisions are pushed. Nil, the default, means all.
    public var pushFilter: ReplicationFilter?
    /// Decides which revisions of the peer are stored. Nil, the default, means all.
    ///
    /// For a document that the peer takes away, it is called with `DocumentFlags.accessRemoved`. If it returns false, the document stays.
    public var pullFilter: ReplicationFilter?
    /// The channels of Sync Gateway to pull from. Nil, the default, or an empty list means all that the user may see. Other peers have no
    /// channels.
    public var channels: [String]?
    /// The IDs of the only documents to replicate. Nil, the default, or an empty list means all documents.
    public var documentIDs: [String]?

    /// Creates a configuration that replicates all documents of a collection.
    public init(collection: Collection) { named = collection }

    /// Creates a configuration for ``ReplicatorConfiguration/addCollection(_:config:)``, which names the collection.
    @available(*, deprecated, message: "use `CollectionConfiguration(collection:)`")
    public init() { named = nil }

    /// A configuration of the same settings for a collection.
    init(_ collection: Collection, _ settings: CollectionConfiguration?) {
        named = collection
        conflictResolver = settings?.conflictResolver
        pushFilter = settings?.pushFilter
        pullFilter = settings?.pullFilter
        channels = settings?.channels
        documentIDs = settings?.documentIDs
    }

    /// The collection to replicate. A configuration that was created without one has none until it is added, which ends the program.
    public var collection: Collection {
        guard let named else { programmerError("this configuration names no collection") }
        return named
    }

    /// Returns a configuration for each of some collections, with the defaults. No collections end the program.
    public static func fromCollections(_ collections: [Collection]) -> [CollectionConfiguration] {
        if collections.isEmpty { programmerError("name at least one collection") }
        return collections.map { CollectionConfiguration(collection: $0) }
    }

    var engine: LoveseatCore.CollectionConfiguration {
        let collection = collection
        var engine = LoveseatCore.CollectionConfiguration(collection: collection.engine)
        engine.documentIDs = documentIDs
        engine.channels = channels
        engine.pushFilter = Self.engine(pushFilter, collection)
        engine.pullFilter = Self.engine(pullFilter, collection)
        if let conflictResolver, !(conflictResolver is DefaultResolver) {
            engine.conflictResolver = EngineResolver(conflictResolver, collection)
        }
        return engine
    }

    private static func engine(_ filter: ReplicationFilter?, _ collection: Collection) -> LoveseatCore
        .ReplicationFilter?
    {
        guard let filter else { return nil }
        let unguarded = Unguarded(value: filter)
        return { unguarded.value(FilteredDocument($0, in: collection), $1) }
    }
}

/// A document as a filter sees it.
private final class FilteredDocument: Document {
    override func toMutable() -> MutableDocument {
        programmerError("a filter cannot change document \"\(id)\"")
    }
}
