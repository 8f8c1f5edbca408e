public import LoveseatCore
public import LoveseatIdentity

/// The settings of a ``URLEndpointListener``.
///
/// A configuration is a value. A listener keeps the one it was created with; changing a copy has no effect on it.
public struct URLEndpointListenerConfiguration: Sendable {
    /// The collections to serve, all of one database. Peers cannot see others.
    public let collections: [Collection]
    /// The name under which peers find the database, which is the path of the listener's URLs. Nil, the default, means the database's
    /// own name.
    ///
    /// Couchbase Lite connects only to names of lower-case letters, digits and `_$()+-` that begin with a letter.
    public var databaseName: String?
    /// The TCP port to listen on. 0, the default, or nil means a free port, which ``URLEndpointListener/port`` returns.
    public var port: UInt16? = 0
    /// The name or address of the network interface to listen on. Nil, the default, means all.
    public var networkInterface: String?
    /// Whether connections are not encrypted. The default is false. Use it for tests, and behind a proxy that
    /// terminates TLS.
    public var disableTLS = false
    /// The listener's key and certificate. Nil, the default, means ``TLSIdentity/anonymousIdentity(in:)``.
    public var tlsIdentity: TLSIdentity?
    /// The store that keeps the anonymous identity. Nil, the default, means ``TLSIdentity/standardStore``.
    public var identityStore: (any IdentityStore)?
    /// Decides which clients may connect. Nil, the default, lets everybody connect.
    public var authenticator: (any ListenerAuthenticator)?
    /// Decides what each peer may read and write. Nil, the default, gives every peer that may connect full access.
    public var accessPolicy: AccessPolicy?
    /// Decides which of the revisions that peers push are stored, before their blobs are requested. Nil, the default, means all that
    /// ``accessPolicy`` allows.
    public var incomingFilter: IncomingFilter?
    /// Whether peers may only pull. The default is false. A peer that pushes gets `httpForbidden`.
    public var readOnly = false
    /// Whether peers may only push, and save their checkpoints. The default is false. A peer that pulls gets `httpForbidden`. It cannot be
    /// combined with ``readOnly``.
    public var writeOnly = false
    /// The maximum number of connected peers. Nil, the default, means no limit.
    ///
    /// A peer beyond it gets HTTP 503 with `Retry-After: 5` after it has authenticated. A replicator tries again.
    public var maximumConnections: Int?
    /// The origins of web pages that may connect, such as `https://example.com`; `*` for all. The default is none: a request of a page,
    /// which browsers mark with `Origin`, gets HTTP 403. Replicators send no origin.
    public var origins: [String] = []
    /// Names by which clients reach this host, in addition to its own names and those of its certificate. The default is none.
    ///
    /// Without an authenticator, or on a loopback address, the listener accepts requests of web pages only for an address, `localhost`, or a
    /// name of this host: other names get HTTP 421, so that a page cannot reach the listener by a name that it controls (DNS rebinding).
    /// A listener that shares the port (``sharesPortWith``) refuses all other requests, too. Name the host as clients do if they use
    /// another name, for example behind a proxy.
    public var hostNames: [String] = []
    /// Whether only the difference is sent to a peer that has an earlier revision, if the peer supports it. The default is false. For
    /// what peers pull, open the database with ``DatabaseConfiguration/enableDeltaSync``, too.
    public var enableDeltaSync = false
    /// How long a connection may be idle, in seconds, before a ping checks that the peer is still there. The default is
    /// 300; it has to be more than 0. A peer that does not answer is disconnected.
    public var heartbeat = ReplicatorConfiguration.defaultHeartbeat
    /// How much to compress what is sent, from 0 for not at all to 9. The default is 1. On a fast network, 0 saves about a quarter of the
    /// processor's time.
    public var compressionLevel = ReplicatorConfiguration.defaultCompressionLevel
    /// How the listener makes itself known to other hosts of its network: a `ServiceAdvertisement` of the product LoveseatDiscovery. Nil,
    /// the default, means that it does not.
    public var advertise: (any ListenerAdvertisement)?
    /// A `CouchDBListener`, of the product LoveseatCouchDB, that serves on the same port. Nil, the default, means none.
    ///
    /// It starts and stops with this listener, and has the same interface, identity, authenticator, advertisement and ``hostNames``; its
    /// own settings of these are not used. It has ``origins`` of its own.
    public var sharesPortWith: (any PortSharingListener)?
    /// How long a connection may take for its handshakes, in seconds.
    package var handshakeSeconds = 15.0

    /// Returns a name for ``databaseName`` that Couchbase Lite can connect to, or nil if it can connect to the given name.
    public static func compatibleName(for name: String) -> String? {
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }
        func isAllowed(_ byte: UInt8) -> Bool {
            isLetter(byte) || byte &- 0x30 <= 9 || "_$()+-".utf8.contains(byte)
        }
        if let first = name.utf8.first, isLetter(first), name.utf8.allSatisfy(isAllowed) { return nil }
        let mapped = name.lowercased().unicodeScalars.map { scalar -> Character in
            scalar.isASCII && isAllowed(UInt8(scalar.value)) ? Character(scalar) : "-"
        }
        let proposal = String(mapped.drop { !$0.isLetter })
        return proposal.isEmpty ? "db" : proposal
    }

    /// Creates a configuration that serves collections to everybody who can reach the port, with TLS, on a free port.
    public init(collections: [Collection]) { self.collections = collections }
}
