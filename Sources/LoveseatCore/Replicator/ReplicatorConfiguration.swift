import LoveseatModel

/// Which way documents go.
public enum ReplicatorType: UInt8, Hashable, Sendable {
    /// Both ways.
    case pushAndPull
    /// From here to the peer.
    case push
    /// From the peer to here.
    case pull
}

/// What a ``Replicator`` does. A value: a replicator keeps the one it was made with.
public struct ReplicatorConfiguration: Sendable {
    /// Both ways.
    public static let defaultType = ReplicatorType.pushAndPull
    /// One pass.
    public static let defaultContinuous = false
    /// 300 seconds.
    public static let defaultHeartbeat = 300.0
    /// 10 attempts.
    public static let defaultMaxAttemptsSingleShot: UInt = 10
    /// No end.
    public static let defaultMaxAttemptsContinuous = UInt.max
    /// 300 seconds.
    public static let defaultMaxAttemptsWaitTime = 300.0

    /// Where the peer is.
    public let target: any Endpoint
    /// The collections to replicate, each once, of one database.
    public var collections: [CollectionConfiguration]
    /// Which way documents go.
    public var replicatorType = defaultType
    /// Whether to go on after everything known is done, with every change on either side, until stopped.
    public var continuous = defaultContinuous
    /// How to prove who we are; nil if the peer does not ask.
    public var authenticator: (any Authenticator)?
    /// More HTTP headers for the connection's first request.
    public var headers: [String: String] = [:]
    /// Seconds without a word from the peer after which it is asked for one; 0 for the default.
    public var heartbeat = defaultHeartbeat
    /// Attempts to connect in all, the first included; 0 for the default.
    public var maxAttempts: UInt = 0
    /// The longest wait between two attempts, in seconds; 0 for the default.
    public var maxAttemptWaitTime = defaultMaxAttemptsWaitTime

    /// Replicates collections with a peer, by default both ways in one pass.
    public init(target: any Endpoint, collections: [CollectionConfiguration]) {
        self.target = target
        self.collections = collections
    }

    /// Replicates collections with a peer, by default both ways in one pass.
    public init(target: any Endpoint, collections: [Collection]) {
        self.init(target: target, collections: collections.map { CollectionConfiguration(collection: $0) })
    }

    /// Says what cannot work.
    func validate() throws(LoveseatError) {
        guard let first = collections.first else {
            throw LoveseatError(.invalidParameter, "name at least one collection to replicate")
        }
        for (index, entry) in collections.enumerated() {
            guard entry.collection.database === first.collection.database else {
                throw LoveseatError(.invalidParameter, "the collections belong to different databases")
            }
            guard !collections[..<index].contains(where: { $0.collection == entry.collection }) else {
                throw LoveseatError(
                    .invalidParameter,
                    "collection \(entry.collection.fullName) is named twice"
                )
            }
        }
        guard heartbeat >= 0, maxAttemptWaitTime >= 0, heartbeat.isFinite, maxAttemptWaitTime.isFinite else {
            throw LoveseatError(
                .invalidParameter,
                "heartbeat and maxAttemptWaitTime must be 0 or more seconds"
            )
        }
        guard let target = target as? any PeerEndpoint else {
            throw LoveseatError(
                .invalidParameter,
                "\(type(of: target)) is no endpoint that a replicator can use"
            )
        }
        try target.validate()
    }
}

/// What a ``Replicator`` does with one collection.
public struct CollectionConfiguration: Sendable {
    /// The collection.
    public let collection: Collection
    /// Decides between two versions of a document; nil for ``ConflictResolver/default``.
    public var conflictResolver: (any ConflictResolverProtocol)?

    /// Replicates a collection whole.
    public init(collection: Collection, conflictResolver: (any ConflictResolverProtocol)? = nil) {
        self.collection = collection
        self.conflictResolver = conflictResolver
    }
}
