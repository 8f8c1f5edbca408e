public import LoveseatCore
public import LoveseatIdentity

/// How a ``URLEndpointListener`` serves collections. A value: a listener keeps the one it was made with.
public struct URLEndpointListenerConfiguration: Sendable {
    /// 0: a free port is chosen.
    public static let defaultPort: UInt16 = 0
    /// False: connections are encrypted.
    public static let defaultDisableTls = false
    /// False: peers may push.
    public static let defaultReadOnly = false
    /// False.
    public static let defaultEnableDeltaSync = false

    /// The collections to serve, of one database; no others can be seen.
    public let collections: [Collection]
    /// The name under which peers find the database: the path of the listener's URLs. Nil for the database's own name.
    ///
    /// Couchbase Lite connects only to names of lower-case letters, digits and `_$()+-` that begin with a letter.
    public var databaseName: String?
    /// The port to listen on; 0 or nil for a free one.
    public var port: UInt16? = defaultPort
    /// An interface's name or address to listen on; nil for all.
    public var networkInterface: String?
    /// Whether connections are in the clear, for tests and for networks that are safe otherwise.
    public var disableTLS = defaultDisableTls
    /// The listener's key and certificate; nil for the one of ``TLSIdentity/anonymousIdentity(in:)``.
    public var tlsIdentity: TLSIdentity?
    /// Where the anonymous identity is kept; nil for ``TLSIdentity/standardStore``.
    public var identityStore: (any IdentityStore)?
    /// Decides who may connect; nil lets everybody.
    public var authenticator: (any ListenerAuthenticator)?
    /// Decides what each peer may do; nil lets all who may connect do everything.
    public var accessPolicy: AccessPolicy?
    /// Whether peers may only pull.
    public var readOnly = defaultReadOnly
    /// Whether only the difference travels where a peer has an earlier revision, if the peer knows how. For what peers pull,
    /// open the database with ``DatabaseConfiguration/enableDeltaSync``.
    public var enableDeltaSync = defaultEnableDeltaSync
    /// Seconds without a word from a peer after which it is asked for one; a peer that does not answer is gone.
    public var heartbeat = ReplicatorConfiguration.defaultHeartbeat
    /// How hard to compress what is sent: 0 not at all, 9 hardest. On a fast network 0 saves a quarter of the processor's time.
    public var compressionLevel = ReplicatorConfiguration.defaultCompressionLevel
    /// Seconds that a connection has to say what it wants.
    package var handshakeSeconds = 15.0

    /// A name like the given one that Couchbase Lite can connect to; nil if it can connect to that itself.
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

    /// Serves collections to everybody, on a free port.
    public init(collections: [Collection]) { self.collections = collections }
}
