import Logging
import LoveseatCore
import LoveseatIdentity
public import LoveseatModel

/// Decides who may connect to a listener.
public protocol ListenerAuthenticator: Sendable {}

/// Asks clients for a user name and a password (HTTP Basic). Without TLS both can be read on the way.
public struct ListenerPasswordAuthenticator: ListenerAuthenticator {
    let accepts: @Sendable (_ username: String, _ password: String) async -> Bool

    /// Accepts the clients for whose user name and password the closure returns true. Addresses whose attempts fail are
    /// slowed down before it is called. Compare secrets with ``isEqual(_:_:)``.
    public init(authenticator: @escaping @Sendable (_ username: String, _ password: String) async -> Bool) {
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

/// Asks clients for a certificate, in the TLS handshake. It needs TLS.
public struct ListenerCertificateAuthenticator: ListenerAuthenticator {
    let accepts: @Sendable (_ chain: [TLSCertificate]) async -> Bool

    /// Accepts the clients for whose certificates, their own first, the closure returns true. That the client has the key
    /// was checked before; nothing else was.
    public init(authenticator: @escaping @Sendable (_ chain: [TLSCertificate]) async -> Bool) {
        accepts = authenticator
    }

    /// Accepts the clients whose certificate is one of these, or is vouched for by one of these.
    public init(rootCertificates: [TLSCertificate]) {
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
}
