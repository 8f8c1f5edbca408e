public import LoveseatModel
package import LoveseatReplication

/// Decides whether a revision of a document is replicated.
///
/// A filter is called for every revision, deletions included, on a thread of the replicator and outside any transaction. It may use
/// the database. The document has the properties of the revision; a deletion usually has none.
public typealias ReplicationFilter = @Sendable (Document, DocumentFlags) -> Bool

/// How a ``Replicator`` replicates one collection.
public struct CollectionConfiguration: Sendable {
    /// The collection to replicate.
    public let collection: Collection
    /// The IDs of the only documents to replicate. Nil, the default, or an empty list means all documents.
    public var documentIDs: [String]?
    /// The channels of Sync Gateway to pull from. Nil, the default, or an empty list means all that the user may see. Other peers have no
    /// channels.
    public var channels: [String]?
    /// Decides which local revisions are pushed. Nil, the default, means all.
    public var pushFilter: ReplicationFilter?
    /// Decides which revisions of the peer are stored. Nil, the default, means all.
    ///
    /// For a document that the peer takes away, the filter is called with ``DocumentFlags/accessRemoved`` and a document without
    /// properties. If it returns false, the document stays.
    public var pullFilter: ReplicationFilter?
    /// A name for the filters' version, such as `"v2"` or the text of a condition. The default is nil.
    ///
    /// A replicator continues where the last one with the same configuration ended, so documents that a filter left out
    /// stay left out when it lets more through later. Loveseat can compare channels and document IDs, but not closures:
    /// change this name whenever a filter changes, and the next replicator compares all documents again.
    public var filterVersion: String?
    /// Decides between two versions of a document. Nil, the default, means ``ConflictResolver/default``.
    public var conflictResolver: (any ConflictResolverProtocol)?

    /// The name of the CouchDB database with which the collection is replicated, on the server of the endpoint's URL.
    ///
    /// The default is nil: a collection that is replicated alone, and the default collection, use the database that the URL names; other
    /// collections use `database.scope.collection`, a name that Loveseat's listeners serve and CouchDB does not allow. Peers that speak
    /// Couchbase's protocol have collections of the same names, and the replicator stops with `invalidParameter` if this is set.
    public var remoteDatabase: String?

    /// Creates a configuration that replicates all documents of a collection.
    public init(collection: Collection, conflictResolver: (any ConflictResolverProtocol)? = nil) {
        self.collection = collection
        self.conflictResolver = conflictResolver
    }

    /// Throws for settings that cannot work.
    func validate() throws(LoveseatError) {
        guard remoteDatabase?.isEmpty != true else {
            throw LoveseatError(
                .invalidParameter,
                "the name of the remote database for collection \(collection.fullName) is empty"
            )
        }
        for channel in channels ?? [] where channel.isEmpty || channel.contains(",") {
            throw LoveseatError(.invalidParameter, "\"\(channel)\" is not a valid channel name")
        }
        if let id = documentIDs?.first(where: { !DocumentID.isValidOnWire($0) }) {
            throw LoveseatError(.badDocID, "\"\(id)\" is not a valid document ID")
        }
    }

    var rules: CollectionRules {
        var rules = CollectionRules()
        if let documentIDs, !documentIDs.isEmpty { rules.documentIDs = DocumentSet(documentIDs) }
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
            return filter(Document(candidate), flags)
        }
    }
}

extension Document {
    /// The document as an app's filter or policy sees it.
    package init(_ candidate: FilterCandidate) {
        self.init(
            id: candidate.documentID,
            revisionID: candidate.revision.treeID,
            sequence: 0,
            body: candidate.body
        )
    }
}
