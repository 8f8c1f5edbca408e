public import LoveseatModel

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
    /// False.
    public static let defaultReconnectsAfterGoingAway = false
    /// 300 seconds.
    public static let defaultMaxAttemptsWaitTime = 300.0
    /// True.
    public static let defaultEnableAutoPurge = true
    /// False.
    public static let defaultPurgesUnpushedEdits = false
    /// False.
    public static let defaultAdoptsOtherUsersChanges = false
    /// False.
    public static let defaultAcceptParentCookies = false
    /// False: servers need a certificate of an authority that is trusted.
    public static let defaultSelfSignedCertificateOnly = false
    /// False.
    public static let defaultEnableDeltaSync = false
    /// 60 seconds.
    public static let defaultConflictResolverTimeout = 60.0

    /// 1: fast.
    public static let defaultCompressionLevel = 1

    /// Where the peer is.
    public let target: any Endpoint
    /// The collections to replicate, each once, of one database.
    public package(set) var collections: [CollectionConfiguration]
    /// Which way documents go.
    public var replicatorType = defaultType
    /// Whether to go on after everything known is done, with every change on either side, until stopped.
    public var continuous = defaultContinuous
    /// How to prove who we are; nil if the peer does not ask.
    public var authenticator: (any Authenticator)?
    /// The certificate that the server must show as its own, or that must have issued the server's chain. Neither the host's
    /// name nor the pinned certificate's expiration is checked then. Takes precedence over the other ways.
    public var pinnedServerCertificate: TLSCertificate?
    /// The same by the certificate's SHA-256 fingerprint, in hexadecimal with or without colons, for who does not have the
    /// certificate. ``pinnedServerCertificate`` takes precedence.
    public var pinnedServerFingerprint: String?
    /// Whether to accept servers whose certificate is self-signed, and only those. It keeps listeners from being overheard,
    /// but not from being impersonated: pin the certificate against that.
    public var acceptOnlySelfSignedServerCertificate = defaultSelfSignedCertificateOnly
    /// The authorities that may vouch for the server, in place of the system's; nil for the system's.
    public var rootCertificates: [TLSCertificate]?
    /// The HTTP proxy to connect through; nil for none.
    public var proxy: ProxyConfiguration?
    /// More HTTP headers for the connection's first request. They take the place of our own but for those of the
    /// handshake; a `Cookie` is added to the others.
    public var headers: [String: String]?
    /// Whether a cookie is taken that a server sets for the domain above its own.
    public var acceptParentDomainCookie = defaultAcceptParentCookies
    /// The name or address of the network interface to connect from; nil for any.
    public var networkInterface: String?
    /// Seconds without a word from the peer after which it is asked for one; 0 for the default.
    public var heartbeat = defaultHeartbeat
    /// The longest wait between two attempts, in seconds; 0 for the default.
    public var maxAttemptWaitTime = defaultMaxAttemptsWaitTime
    /// Whether to connect again after the peer said that it goes away (WebSocket code 1000 or 1001), as a listener does that
    /// stops. False, as with Couchbase Lite: the replicator stops with `webSocketGoingAway`. True is for peers that are
    /// restarted now and then: the replicator is offline, and tries again as after any connection that broke.
    public var reconnectsAfterGoingAway = defaultReconnectsAfterGoingAway
    /// Whether documents that the peer takes away from us are purged here. Events tell of them in either case.
    public var enableAutoPurge = defaultEnableAutoPurge
    /// Whether a document that the peer takes away is also purged if it has an edit that the peer has not got. False: such a
    /// document stays, and its event has an error. Couchbase Lite purges it. Documents that the peer is not known to have had
    /// stay in either case.
    public var purgesUnpushedEdits = defaultPurgesUnpushedEdits
    /// Whether documents that were saved while the peer was used under another name, and that were not pushed, are pushed under
    /// this one. False: the replicator stops with `invalidParameter`, and its message has their number.
    ///
    /// The user is known by the ``authenticator``: the name of a password, the certificate's fingerprint, or a digest of the
    /// session's ID. Another user starts pulling from the beginning. A session does not say whose it is, so that documents saved
    /// while sessions were used are pushed without this; so are documents that go out without any authenticator.
    public var adoptsOtherUsersChanges = defaultAdoptsOtherUsersChanges
    /// Whether only the difference travels where a peer has an earlier revision, if the peer knows how.
    public var enableDeltaSync = defaultEnableDeltaSync
    /// Seconds after which a conflict resolver is given up; its conflict stays for the next start. 0 for the default.
    public var conflictResolverTimeout = defaultConflictResolverTimeout

    /// How hard to compress what is sent: 0 not at all, 9 hardest. On a fast network 0 saves a quarter of the processor's time.
    public var compressionLevel = defaultCompressionLevel

    private var chosenAttempts: UInt?

    /// Attempts to connect in all, the first included; 0 for the default, which depends on ``continuous``.
    public var maxAttempts: UInt {
        get {
            chosenAttempts
                ?? (continuous ? Self.defaultMaxAttemptsContinuous : Self.defaultMaxAttemptsSingleShot)
        }
        set { chosenAttempts = newValue == 0 ? nil : newValue }
    }

    /// Replicates collections with a peer, by default both ways in one pass. If one is named twice the last counts.
    public init(collections: [CollectionConfiguration], target: any Endpoint) {
        self.target = target
        var unique: [CollectionConfiguration] = []
        for entry in collections {
            unique.removeAll { $0.collection == entry.collection }
            unique.append(entry)
        }
        self.collections = unique
    }

    /// Replicates collections with a peer, by default both ways in one pass.
    public init(collections: [Collection], target: any Endpoint) {
        self.init(collections: CollectionConfiguration.fromCollections(collections), target: target)
    }

    /// The same once more.
    public init(config: ReplicatorConfiguration) { self = config }

    /// The fingerprint as certificates tell theirs.
    func pinnedFingerprint() throws(LoveseatError) -> String? {
        try pinnedServerFingerprint.map { given throws(LoveseatError) in
            guard let fingerprint = TLSCertificate.fingerprint(reading: given) else {
                throw LoveseatError(
                    .invalidParameter,
                    "\"\(given)\" is no SHA-256 fingerprint: it has 64 hexadecimal digits"
                )
            }
            return fingerprint
        }
    }

    package static func checkCompression(_ level: Int) throws(LoveseatError) {
        guard (0...9).contains(level) else {
            throw LoveseatError(.invalidParameter, "compressionLevel is 0 to 9, not \(level)")
        }
    }

    /// Says what cannot work.
    func validate() throws(LoveseatError) {
        guard let first = collections.first else {
            throw LoveseatError(.invalidParameter, "name at least one collection to replicate")
        }
        for entry in collections {
            guard entry.collection.database === first.collection.database else {
                throw LoveseatError(.invalidParameter, "the collections belong to different databases")
            }
            try entry.validate()
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
                "\(type(of: target)) is no endpoint that a replicator can use"
            )
        }
        try target.validate()
    }
}
