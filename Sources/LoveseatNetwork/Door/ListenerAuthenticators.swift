import Crypto
import Logging
public import LoveseatCore
import LoveseatIdentity
public import LoveseatModel

/// A client that asks a listener for a connection, before it is authenticated.
public struct ConnectingClient: Sendable {
    /// The client's network address, without the port.
    public let address: String
    /// The client's certificates, its own first. The client proved that it has the key; nothing else was checked. Empty unless
    /// ``ListenerAuthenticator/requestsClientCertificates`` is true.
    public let certificates: [TLSCertificate]
    /// The user name and password that the client sent (HTTP Basic), not checked yet; nil if it sent none.
    public let credentials: BasicAuthenticator?
    /// The whole `Authorization` header, for schemes such as `Bearer`; nil if the client sent none.
    public let authorization: String?

    /// Creates a client, to test an authenticator.
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
    /// The SHA-256 fingerprint of the peer's own certificate, 64 lower-case hexadecimal digits; nil if it showed none.
    public var fingerprint: String? { certificates.first?.fingerprint }
}

/// Decides which clients may connect to a listener. An app can conform to this protocol with its own type.
public protocol ListenerAuthenticator: Sendable {
    /// Whether clients are asked for a certificate in the TLS handshake. The default is false; true needs TLS.
    ///
    /// The certificates are then in ``ConnectingClient/certificates``. A client may have none.
    var requestsClientCertificates: Bool { get }

    /// Whether nobody can guess the secrets that clients show, such as random keys of 100 bits or more. The default is false.
    ///
    /// A client with a right secret is then never delayed, whatever others at its address try; wrong secrets are delayed as usual.
    var hasUnguessableSecrets: Bool { get }

    /// Returns the identity of a client, or nil to refuse it.
    ///
    /// This is called once for each connection, on a thread that may be blocked; connections wait at most 15 seconds
    /// for the answer. Calls for addresses and user names with failed attempts are delayed.
    func authenticate(_ client: ConnectingClient) async -> PeerIdentity?
}

extension ListenerAuthenticator {
    /// Clients are not asked for a certificate by default.
    public var requestsClientCertificates: Bool { false }

    /// Passwords of people can be guessed.
    public var hasUnguessableSecrets: Bool { false }
}

/// The secret of a user that a listener knows: the password, or hashes of it.
public enum ListenerSecret: Hashable, Sendable {
    /// The password itself.
    case password(String)
    /// Hashes of `user:realm:password`, as in files of `htdigest`, in hexadecimal digits (RFC 7616 §3.4.2). Nil for a hash that is not
    /// known: Digest is then refused with that algorithm. They are as secret as the password.
    case hashes(md5: String? = nil, sha256: String? = nil)
}

/// Authenticates clients by a user name and a password (HTTP Basic, and HTTP Digest on CouchDB's wire). Without TLS, others on the network
/// can read a password that is sent with Basic.
public struct ListenerPasswordAuthenticator: ListenerAuthenticator {
    private let accepts: @Sendable (_ username: String, _ password: String) async -> Bool
    /// Returns a user's secret; nil if only the closure knows which passwords are right.
    package let secret: (@Sendable (_ username: String) async -> ListenerSecret?)?
    /// The realm of ``ListenerSecret/hashes(md5:sha256:)``.
    package let realm: String

    /// Creates an authenticator that accepts a client if the closure returns true.
    ///
    /// Compare passwords with ``isEqual(_:_:)``. Calls for addresses and user names with failed attempts are delayed.
    public init(authenticator: @escaping @Sendable (_ username: String, _ password: String) async -> Bool) {
        accepts = authenticator
        secret = nil
        realm = "Loveseat"
    }

    /// Creates an authenticator from what is known of each user's password, which also allows HTTP Digest on CouchDB's wire.
    ///
    /// - Parameters:
    ///   - realm: The realm that clients are shown with Digest, and for which hashes were computed. The default is `Loveseat`.
    ///   - secret: Returns the secret of a user; nil for an unknown user. Calls for addresses and user names with failed attempts are
    ///     delayed.
    public init(
        realm: String = "Loveseat",
        secret: @escaping @Sendable (_ username: String) async -> ListenerSecret?
    ) {
        self.realm = realm
        self.secret = secret
        accepts = { username, password in
            switch await secret(username) {
            case nil: return false
            case .password(let known): return Self.isEqual(known, password)
            case .hashes(let md5, let sha256):
                let text = Array("\(username):\(realm):\(password)".utf8)
                if let sha256 {
                    return Self.isEqual(sha256.lowercased(), SHA256.hash(data: text).hexadecimalText)
                }
                guard let md5 else { return false }
                return Self.isEqual(md5.lowercased(), Insecure.MD5.hash(data: text).hexadecimalText)
            }
        }
    }

    /// Returns the client's identity with its user name, or nil if the closure does not accept its password.
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

    /// Returns whether two secrets are equal, in a time that does not reveal how many of their bytes are.
    public static func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        var difference: UInt8 = one.count == other.count ? 0 : 1
        for index in one.indices { difference |= one[index] ^ (index < other.count ? other[index] : 0) }
        return difference == 0
    }
}

/// Authenticates clients by a certificate, in the TLS handshake. The listener has to use TLS.
public struct ListenerCertificateAuthenticator: ListenerAuthenticator {
    private let accepts: @Sendable (_ chain: [TLSCertificate]) async -> Bool
    /// Whether a trusted authority confirmed the certificate's common name.
    private let vouchesForNames: Bool

    /// Creates an authenticator that accepts a client if the closure returns true for its certificates, its own first.
    ///
    /// The client has proved that it has the key. Nothing else was checked: neither the issuer nor the expiration.
    /// Clients have no ``PeerIdentity/name``; use ``PeerIdentity/fingerprint``.
    public init(authenticator: @escaping @Sendable (_ chain: [TLSCertificate]) async -> Bool) {
        accepts = authenticator
        vouchesForNames = false
    }

    /// Creates an authenticator that accepts clients whose certificate is one of these or was issued by one of these, and is valid today.
    ///
    /// A certificate that names what it is for (extended key usages), and was issued by one of these, has to be for clients: an authority's
    /// certificates for servers are not for logging in. One that is itself among these is accepted as it is. The certificate's common name is the client's ``PeerIdentity/name``.
    public init(rootCertificates: [TLSCertificate]) {
        vouchesForNames = true
        accepts = { chain in
            guard let error = await CertificateTrust.validate(client: chain, roots: rootCertificates) else {
                return true
            }
            LogDomain.listener.log(.notice, "refused a client: \(error.message)")
            return false
        }
    }

    /// Clients are asked for a certificate.
    public var requestsClientCertificates: Bool { true }

    /// Returns the client's identity with its certificates, or nil if its certificate is not accepted.
    public func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let leaf = client.certificates.first, await accepts(client.certificates) else { return nil }
        return PeerIdentity(
            certificates: client.certificates,
            address: client.address,
            name: vouchesForNames ? leaf.commonName : nil
        )
    }
}
