public import LoveseatCore

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
    /// The port to listen on; 0 or nil for a free one.
    public var port: UInt16? = defaultPort
    /// An interface's name or address to listen on; nil for all.
    public var networkInterface: String?
    /// Whether connections are in the clear. This version has no TLS yet, so it must be true.
    public var disableTLS = defaultDisableTls
    /// Decides who may connect; nil lets everybody.
    public var authenticator: (any ListenerAuthenticator)?
    /// Whether peers may only pull.
    public var readOnly = defaultReadOnly
    /// Whether only the difference travels where a peer has an earlier revision, if the peer knows how. For what peers pull,
    /// open the database with ``DatabaseConfiguration/enableDeltaSync``.
    public var enableDeltaSync = defaultEnableDeltaSync
    /// Seconds that a connection has to say what it wants.
    package var handshakeSeconds = 15.0

    /// Serves collections to everybody, on a free port.
    public init(collections: [Collection]) { self.collections = collections }
}

/// Decides who may connect to a listener.
public protocol ListenerAuthenticator: Sendable {}

/// Asks clients for a user name and a password (HTTP Basic).
public struct ListenerPasswordAuthenticator: ListenerAuthenticator {
    let accepts: @Sendable (_ username: String, _ password: String) -> Bool

    /// Accepts the clients for whose user name and password the closure returns true. It is called on a thread where it
    /// may take its time.
    public init(authenticator: @escaping @Sendable (_ username: String, _ password: String) -> Bool) {
        accepts = authenticator
    }

    /// Whether two secrets are equal, in a time that does not tell how much of them is.
    public static func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        var difference: UInt8 = one.count == other.count ? 0 : 1
        for index in one.indices { difference |= one[index] ^ (index < other.count ? other[index] : 0) }
        return difference == 0
    }
}
