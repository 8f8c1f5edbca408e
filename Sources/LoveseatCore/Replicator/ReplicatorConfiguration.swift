public import LoveseatModel
import LoveseatStorage

/// The directions in which a replicator transfers documents.
public enum ReplicatorType: UInt8, Hashable, Sendable {
    /// Both directions. This is the default.
    case pushAndPull
    /// From this database to the peer.
    case push
    /// From the peer to this database.
    case pull
}

/// The settings of a ``Replicator``.
///
/// A configuration is a value. A replicator keeps the one it was created with; changing a copy has no effect on it. Settings that
/// cannot work are reported when the replicator is started: it stops with an error that names the setting.
public struct ReplicatorConfiguration: Sendable {
    package static let defaultHeartbeat = 300.0
    package static let defaultMaxAttemptsWaitTime = 300.0
    package static let defaultCompressionLevel = 1
    static let defaultConflictResolverTimeout = 60.0

    /// The peer's endpoint.
    public private(set) var target: any Endpoint
    /// The collections to replicate, each once. They have to belong to one `Database` instance.
    public package(set) var collections: [CollectionConfiguration]
    /// The directions in which documents are transferred. The default is both.
    public var replicatorType = ReplicatorType.pushAndPull
    /// Whether the replicator goes on with every later change on either side until it is stopped. The default is false: it stops when
    /// everything known is done.
    public var continuous = false
    /// The credentials for the peer. Nil, the default, means that the peer requires none.
    public var authenticator: (any Authenticator)?
    /// The certificate that the server has to show as its own, or that has to have issued the server's certificate. The default is nil.
    ///
    /// Neither the host's name nor the expiration of the pinned certificate is checked. A certificate that it issued has to be for
    /// servers if it names what it is for (extended key usages). A pin takes precedence over
    /// ``acceptOnlySelfSignedServerCertificate`` and ``rootCertificates``.
    public var pinnedServerCertificate: TLSCertificate?
    /// Pins the server by the SHA-256 fingerprint of its certificate instead of the certificate itself: 64 hexadecimal digits, with or
    /// without colons. The 40 digits of a SHA-1 fingerprint, which peers of Couchbase Lite 1 show, are accepted too. The default is nil.
    /// ``pinnedServerCertificate`` takes precedence.
    public var pinnedServerFingerprint: String?
    /// Whether servers with a self-signed certificate are accepted, and no others. The default is false.
    ///
    /// This protects against eavesdropping, but not against impersonation. To know whom you are connected to, pin the certificate or
    /// pair the devices.
    public var acceptOnlySelfSignedServerCertificate = false
    /// The certificates of the authorities that may have issued the server's certificate, or that certificate itself. Nil, the default,
    /// means the authorities that the system trusts.
    ///
    /// The server's certificate has to be for the host, and for servers if it names what it is for (extended key usages).
    public var rootCertificates: [TLSCertificate]?
    /// The HTTP proxy to connect through. Nil, the default, means a direct connection.
    public var proxy: ProxyConfiguration?
    /// Additional HTTP headers for the request that opens the connection. The default is nil.
    ///
    /// They replace headers that Loveseat sends itself, except those of the WebSocket handshake. A `Cookie` is added to other cookies.
    public var headers: [String: String]?
    /// Whether a cookie is accepted that a server sets for its parent domain. The default is false.
    public var acceptParentDomainCookie = false
    /// The name or address of the network interface to connect from, such as `en0`. Nil, the default, means any.
    public var networkInterface: String?
    /// How long the connection may be idle, in seconds, before a ping checks that the peer is still there. 0 means the default, 300.
    public var heartbeat = defaultHeartbeat
    /// The maximum wait between two attempts to connect, in seconds. 0 means the default, 300.
    public var maxAttemptWaitTime = defaultMaxAttemptsWaitTime
    /// Whether the replicator connects again after the peer has closed the connection in good order (WebSocket code 1000 or 1001), as a
    /// listener does that stops.
    ///
    /// The default is false, as with Couchbase Lite: the replicator stops with `webSocketGoingAway`. Set it for peers that are
    /// restarted now and then: the replicator goes offline and tries again, as after a broken connection.
    public var reconnectsAfterGoingAway = false
    /// Whether documents are purged here when the user loses access to them at the peer. The default is true. An event with
    /// ``DocumentFlags/accessRemoved`` reports them in either case.
    public var enableAutoPurge = true
    /// Whether a document that ``enableAutoPurge`` takes away is purged even if it has an edit that was not pushed.
    ///
    /// The default is false: such a document stays, and its event has an error. True is Couchbase Lite's behaviour.
    /// Documents that the peer is not known to have had stay in either case.
    public var purgesUnpushedEdits = false
    /// Whether changes that were saved while the peer was used under another user name, and that were not pushed, are pushed under this
    /// user name.
    ///
    /// The default is false: the replicator stops with `invalidParameter`, and the message says how many documents wait. Users are
    /// told apart by the ``authenticator``: the user name, the certificate's fingerprint, or a digest of the session's ID. For another
    /// user, pulling starts from the beginning. A session does not say whose it is, so changes that were saved while sessions were
    /// used are pushed without this setting; so is everything when there is no authenticator.
    public var adoptsOtherUsersChanges = false
    /// Whether only the difference is sent to a peer that has an earlier revision, if the peer supports it. The default is false.
    public var enableDeltaSync = false
    /// How long a conflict resolver may take, in seconds. After that the conflict stays until the next start. 0 means the default, 60.
    public var conflictResolverTimeout = defaultConflictResolverTimeout

    /// How much to compress what is sent, from 0 for not at all to 9. The default is 1, for which ISA-L is used if it is installed; other
    /// levels are zlib's and take several times as long. On a fast network, 0 saves a fifth of the receiver's processor time.
    public var compressionLevel = defaultCompressionLevel

    /// Whether lists of tasks show the replicator. False if they show its owner instead.
    package var isListed = true

    private var chosenAttempts: UInt?

    /// How often to try to connect, the first attempt included. A connection that succeeds starts the count anew.
    ///
    /// 0 means the default: 10 for a single pass, no limit if ``continuous`` is set.
    public var maxAttempts: UInt {
        get {
            chosenAttempts ?? (continuous ? .max : 10)
        }
        set { chosenAttempts = newValue == 0 ? nil : newValue }
    }

    /// Creates a configuration that replicates collections with a peer, by default in both directions and in one pass. If a collection
    /// is named twice, the last one counts.
    public init(collections: [CollectionConfiguration], target: any Endpoint) {
        self.target = target
        self.collections = collections
    }

    /// Creates a configuration that replicates all documents of some collections with a peer, by default in both directions and in one
    /// pass.
    public init(collections: [Collection], target: any Endpoint) {
        self.init(collections: collections.map { CollectionConfiguration(collection: $0) }, target: target)
    }

    /// The fingerprint in the form of ``TLSCertificate/fingerprint``.
    func pinnedFingerprint() throws(LoveseatError) -> String? {
        try pinnedServerFingerprint.map { given throws(LoveseatError) in
            guard let fingerprint = TLSCertificate.pin(reading: given) else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(given)\" is not a SHA-256 fingerprint, which has 64 hexadecimal digits, or a SHA-1 fingerprint, which has 40"
                )
            }
            return fingerprint
        }
    }

    package static func checkCompression(_ level: Int) throws(LoveseatError) {
        guard (0...9).contains(level) else {
            throw LoveseatError(.invalidParameter, "compressionLevel is \(level): use 0 to 9")
        }
    }

    /// The configuration with a target that knows the collections.
    var bound: ReplicatorConfiguration {
        guard let target = target as? any PeerEndpoint else { return self }
        var bound = self
        bound.target = target.bound(to: collections)
        return bound
    }

    /// Throws for settings that cannot work.
    func validate() throws(LoveseatError) {
        guard let first = collections.first else {
            throw LoveseatError(.invalidParameter, "name at least one collection to replicate")
        }
        var names: Set<CollectionName> = []
        for entry in collections {
            guard entry.collection.database === first.collection.database else {
                throw LoveseatError(.invalidParameter, "the collections belong to different databases")
            }
            guard names.insert(entry.collection.handle.name).inserted else {
                throw LoveseatError(
                    .invalidParameter,
                    "collection \(entry.collection.fullName) is configured twice: configure it once"
                )
            }
            try entry.validate()
        }
        let other = (target as? DatabaseEndpoint)?.database
        if other?.path == first.collection.database.path {
            throw LoveseatError(
                .invalidParameter,
                "a database cannot replicate with itself: name another one"
            )
        }
        for (name, value) in [
            ("heartbeat", heartbeat), ("maxAttemptWaitTime", maxAttemptWaitTime),
            ("conflictResolverTimeout", conflictResolverTimeout),
        ] {
            guard value >= 0, value.isFinite else {
                throw LoveseatError(.invalidParameter, "\(name) must be 0 or more seconds, not \(value)")
            }
        }
        try Self.checkCompression(compressionLevel)
        try proxy?.validate()
        _ = try pinnedFingerprint()
        for (name, value) in headers ?? [:] {
            guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }),
                value.utf8.allSatisfy({ $0 >= 0x20 || $0 == 0x09 })
            else { throw LoveseatError(.invalidParameter, "\"\(name)\" cannot be sent as an HTTP header") }
        }
        if let authenticator, !(authenticator is any PeerAuthenticator) {
            throw LoveseatError(
                .invalidParameter,
                "a replicator cannot authenticate with \(type(of: authenticator)): use a password, a session, or a client certificate"
            )
        }
        guard let target = target as? any PeerEndpoint else {
            throw LoveseatError(
                .invalidParameter,
                "\(type(of: target)) is not an endpoint that a replicator can use"
            )
        }
        if !target.namesDatabases, let entry = collections.first(where: { $0.remoteDatabase != nil }) {
            throw LoveseatError(
                .invalidParameter,
                "collection \(entry.collection.fullName) cannot be replicated with a database of another name: only a CouchDB has databases instead of collections"
            )
        }
        try target.validate()
    }
}
