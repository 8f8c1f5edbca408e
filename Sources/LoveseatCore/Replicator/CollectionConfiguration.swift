public import LoveseatModel
import LoveseatReplication

/// Decides whether a document is replicated. Called for every revision, deletions included, on a thread of the
/// replicator's; it may use the database.
public typealias ReplicationFilter = @Sendable (Document, DocumentFlags) -> Bool

/// What a ``Replicator`` does with one collection.
public struct CollectionConfiguration: Sendable {
    /// The collection.
    public let collection: Collection
    /// The only documents to replicate; nil or empty for all.
    public var documentIDs: [String]?
    /// The gateway's channels to pull from; nil or empty for all that the user may see. Only gateways have channels.
    public var channels: [String]?
    /// Which local revisions are pushed; nil for all.
    public var pushFilter: ReplicationFilter?
    /// Which of the peer's revisions are stored; nil for all.
    ///
    /// A document that the peer takes away comes with ``DocumentFlags/accessRemoved`` and no properties: answering
    /// false keeps it.
    public var pullFilter: ReplicationFilter?
    /// Names what ``pushFilter`` and ``pullFilter`` let through, such as `"v2"` or the text they were made of; nil by default.
    ///
    /// A replicator goes on where the last one with the same configuration ended, so that documents which a filter left out
    /// stay left out when it lets more through later. Channels and document IDs tell configurations apart, closures cannot:
    /// change this whenever a filter changes, and the next replicator looks at all documents again.
    public var filterVersion: String?
    /// Decides between two versions of a document; nil for ``ConflictResolver/default``.
    public var conflictResolver: (any ConflictResolverProtocol)?

    /// Replicates a collection whole.
    public init(collection: Collection, conflictResolver: (any ConflictResolverProtocol)? = nil) {
        self.collection = collection
        self.conflictResolver = conflictResolver
    }

    /// Replicates collections whole.
    public static func fromCollections(_ collections: [Collection]) -> [CollectionConfiguration] {
        collections.map { CollectionConfiguration(collection: $0) }
    }

    /// Says what cannot work.
    func validate() throws(LoveseatError) {
        for channel in channels ?? [] where channel.isEmpty || channel.contains(",") {
            throw LoveseatError(.invalidParameter, "\"\(channel)\" is no name of a channel")
        }
        if let id = documentIDs?.first(where: { !DocumentID.isValidOnWire($0) }) {
            throw LoveseatError(.badDocID, "\"\(id)\" is no document ID")
        }
    }

    var rules: CollectionRules {
        var rules = CollectionRules()
        if let documentIDs, !documentIDs.isEmpty { rules.documentIDs = Set(documentIDs) }
        rules.pushFilter = pushFilter.map(Self.filter)
        rules.pullFilter = pullFilter.map(Self.filter)
        rules.asksResolver = conflictResolver.map { !($0 is DefaultResolver) } ?? false
        return rules
    }

    private static func filter(_ filter: @escaping ReplicationFilter) -> CollectionRules.Filter {
        { candidate, isAccessRemoved in
            var flags: DocumentFlags = []
            if candidate.isDeleted { flags.insert(.deleted) }
            if isAccessRemoved { flags.insert(.accessRemoved) }
            let document = Document(
                id: candidate.documentID,
                revisionID: candidate.revision,
                sequence: 0,
                body: candidate.body
            )
            return filter(document, flags)
        }
    }
}
