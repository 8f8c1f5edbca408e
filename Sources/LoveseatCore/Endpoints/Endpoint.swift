package import LoveseatBLIPReplication
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Where a replicator finds its peer: a `URLEndpoint`, ``DatabaseEndpoint`` or `MessageEndpoint`.
///
/// Apps do not conform to this protocol. To use a connection of your own, see `MessageEndpoint`.
public protocol Endpoint: Sendable {}

/// How a client authenticates: a ``BasicAuthenticator``, ``SessionAuthenticator`` or `ClientCertificateAuthenticator`.
///
/// Apps do not conform to this protocol: a replicator that is given any other type stops with `invalidParameter` before
/// it connects.
public protocol Authenticator: Sendable {}

/// An authenticator that a replicator can use.
package protocol PeerAuthenticator: Authenticator {
    /// The user that it authenticates.
    var user: RemoteUser { get }
}

/// Authenticates by a user name and a password (HTTP Basic). Without TLS, others on the network can read both.
public struct BasicAuthenticator: PeerAuthenticator {
    /// The user name. It must not contain a colon.
    public let username: String
    /// The password.
    public let password: String

    package var user: RemoteUser { RemoteUser(kind: .name, name: username) }

    /// Creates an authenticator with a user name and a password.
    public init(username: String, password: String) {
        self.username = username
        self.password = password
    }
}

/// Authenticates by the ID of a session with Sync Gateway, which the app obtained before.
public struct SessionAuthenticator: PeerAuthenticator {
    /// The default of ``cookieName``, `SyncGatewaySession`.
    public static let defaultCookieName = "SyncGatewaySession"

    /// The session's ID.
    public let sessionID: String
    /// The name of the cookie that carries the ID.
    public let cookieName: String

    package var user: RemoteUser {
        RemoteUser(kind: .session, name: Base64.encode(Hashing.sha256(Array(sessionID.utf8))))
    }

    /// Creates an authenticator with a session's ID. A nil cookie name means the default.
    public init(sessionID: String, cookieName: String? = nil) {
        self.sessionID = sessionID
        self.cookieName = cookieName ?? Self.defaultCookieName
    }
}

/// The replicator's view of an endpoint.
package protocol PeerEndpoint: Endpoint {
    /// The name of the remote database, under which checkpoints and marks are kept.
    var remoteName: String { get }
    /// The selection of the peer's documents, for which checkpoints are kept separately. The default is nil: everything.
    var selection: String? { get }
    /// Whether collections may be replicated with databases of other names (``CollectionConfiguration/remoteDatabase``). The default is
    /// false.
    var namesDatabases: Bool { get }
    /// Whether a second connection to the peer is possible meanwhile. The default is true.
    var takesSecondConnection: Bool { get }
    /// The endpoint as it is used for these collections. The default is the endpoint itself.
    func bound(to collections: [CollectionConfiguration]) -> Self
    /// The reason why it can never be used, such as an invalid URL.
    func validate() throws(LoveseatError)
    /// Connects to the peer, and returns a replication over that connection, which has not begun.
    ///
    /// - Throws: ``LoveseatError``, or `CancellationError` when the task is cancelled.
    func replicate(with request: ReplicationRequest) async throws -> any Replication
    /// Emits when connecting again may help; nil if only time does.
    func networkChanges() -> AsyncStream<Void>?
}

extension PeerEndpoint {
    package var selection: String? { nil }

    package var namesDatabases: Bool { false }

    package var takesSecondConnection: Bool { true }

    package func bound(to collections: [CollectionConfiguration]) -> Self { self }

    package func networkChanges() -> AsyncStream<Void>? { nil }
}

/// The settings of a connection from a replicator's configuration.
package struct ConnectionOptions: Sendable {
    package var authenticator: (any Authenticator)?
    /// A user name and password beside a client certificate.
    package var credentials: BasicAuthenticator?
    package var headers: [String: String] = [:]
    /// How long the connection may be idle, in seconds, before a ping is sent.
    package var heartbeat: Double = 300
    /// The name or address of the interface to connect from.
    package var networkInterface: String?
    package var cookies: CookieStorage?
    package var pinnedServerCertificate: TLSCertificate?
    /// In lower-case hexadecimal.
    package var pinnedServerFingerprint: String?
    package var acceptsOnlySelfSigned = false
    /// For connections that identify the peer in another way.
    package var acceptsAnyCertificate = false
    /// Nil: the system's.
    package var rootCertificates: [TLSCertificate]?
    package var proxy: ProxyConfiguration?
    /// Called with the server's certificate before it is validated.
    package var sawServerCertificate: @Sendable (TLSCertificate) -> Void = { _ in }
    package var offers = ReplicationProtocol.all

    package init() {}
}

/// A channel to a peer, and the version of the protocol.
package struct PeerConnection: Sendable {
    package let channel: any MessageChannel
    /// The form of the protocol; nil if the transport negotiates none.
    package let negotiated: ReplicationProtocol?
    /// The other side's identity. Only listeners know it.
    package let peer: PeerIdentity

    package init(
        channel: any MessageChannel,
        negotiated: ReplicationProtocol?,
        peer: PeerIdentity = PeerIdentity()
    ) {
        self.channel = channel
        self.negotiated = negotiated
        self.peer = peer
    }
}
