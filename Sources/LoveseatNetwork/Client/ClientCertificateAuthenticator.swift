public import LoveseatCore
public import LoveseatIdentity

/// Authenticates a client by its certificate, in the TLS handshake. It has no effect over `ws://`.
public struct ClientCertificateAuthenticator: PeerAuthenticator {
    /// The client's key and certificates.
    public let identity: TLSIdentity

    package var user: RemoteUser {
        RemoteUser(kind: .certificate, name: identity.certs.first?.fingerprint ?? "")
    }

    /// Creates an authenticator with an identity.
    public init(identity: TLSIdentity) { self.identity = identity }
}
