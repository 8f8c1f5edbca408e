import Logging
public import LoveseatCore
import LoveseatIdentity
public import LoveseatModel

/// A client that asks a listener for a connection, before it is admitted.
public struct ConnectingClient: Sendable {
    /// Its network address, without the port.
    public let address: String
    /// The certificates that it showed and whose key it has, its own first; empty unless
    /// ``ListenerAuthenticator/requestsClientCertificates``.
    public let certificates: [TLSCertificate]
    /// The user name and password that it sent (HTTP Basic); nil for none.
    public let credentials: BasicAuthenticator?
    /// The whole `Authorization` header, for schemes such as `Bearer`; nil for none.
    public let authorization: String?

    /// Creates a client, for tests of an authenticator.
    public init(
        address: String = "",
        certificates: [TLSCertificate] = [],
        credentials: BasicAuthenticator? = nil,
        authorization: String? = nil
    ) {
        self.address = address
        self.certificates = certificates
        self.credentials = credentials
        self.authorization = authorization
    }
}

extension PeerIdentity {
    /// The SHA-256 fingerprint of the peer's own certificate, in hexadecimal; nil if it showed none.
    public var fingerprint: String? { certificates.first?.fingerprint }
}

/// Decides who may connect to a listener. An app can use its own type.
public protocol ListenerAuthenticator: Sendable {
    /// Whether clients are asked for a certificate in the TLS handshake. The certificates are then in
    /// ``ConnectingClient/certificates``; a client may have none. False by default; true needs TLS.
    var requestsClientCertificates: Bool { get }

    /// Returns who a client is, or nil to refuse it. It is called once for each connection, outside the event loops, so it may
    /// take its time. Addresses and user names whose attempts fail are slowed down before it is called.
    func authenticate(_ client: ConnectingClient) async -> PeerIdentity?
}

extension ListenerAuthenticator {
    /// False: clients are not asked for a certificate.
    public var requestsClientCertificates: Bool { false }
}

/// Asks clients for a user name and a password (HTTP Basic). Without TLS both can be read on the way.
public struct ListenerPasswordAuthenticator: ListenerAuthenticator {
    private let accepts: @Sendable (_ username: String, _ password: String) async -> Bool

    /// Accepts the clients for whose user name and password the closure returns true. Addresses whose attempts fail are
    /// slowed down before it is called. Compare secrets with ``isEqual(_:_:)``.
    public init(authenticator: @escaping @Sendable (_ username: String, _ password: String) async -> Bool) {
        accepts = authenticator
    }

    /// Returns the client's user name, if its password is right.
    public func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let credentials = client.credentials,
            await accepts(credentials.username, credentials.password)
        else { return nil }
        return PeerIdentity(
            username: credentials.username,
            certificates: client.certificates,
            address: client.address
        )
    }

    /// Whether two secrets are equal, in a time that does not tell how much of them is.
    public static func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        var difference: UInt8 = one.count == other.count ? 0 : 1
        for index in one.indices { difference |= one[index] ^ (index < other.count ? other[index] : 0) }
        return difference == 0
    }
}

/// Asks clients for a certificate, in the TLS handshake. It needs TLS.
public struct ListenerCertificateAuthenticator: ListenerAuthenticator {
    private let accepts: @Sendable (_ chain: [TLSCertificate]) async -> Bool
    /// Whether the certificate's common name was vouched for, and not merely chosen by the client.
    private let vouchesForNames: Bool

    /// Accepts the clients for whose certificates, their own first, the closure returns true. That the client has the key
    /// was checked before; nothing else was.
    public init(authenticator: @escaping @Sendable (_ chain: [TLSCertificate]) async -> Bool) {
        accepts = authenticator
        vouchesForNames = false
    }

    /// Accepts the clients whose certificate is one of these, or is vouched for by one of these. Their common name is
    /// ``PeerIdentity/name``.
    public init(rootCertificates: [TLSCertificate]) {
        vouchesForNames = true
        accepts = { chain in
            guard let error = await CertificateTrust.judge(client: chain, roots: rootCertificates) else {
                return true
            }
            LogDomain.listener.log(.notice, "refused a client: \(error.message)")
            return false
        }
    }

    /// Accepts the clients whose certificate is one of these, or is vouched for by one of these.
    public init(rootCerts: [TLSCertificate]) { self.init(rootCertificates: rootCerts) }

    /// True.
    public var requestsClientCertificates: Bool { true }

    /// Returns the certificate's owner, if the certificate is accepted.
    public func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let leaf = client.certificates.first, await accepts(client.certificates) else { return nil }
        return PeerIdentity(
            certificates: client.certificates,
            address: client.address,
            name: vouchesForNames ? leaf.commonName : nil
        )
    }
}
