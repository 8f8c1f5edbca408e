public import LoveseatCore
public import LoveseatIdentity

/// Proves who a client is by its certificate, in the TLS handshake. Over `ws://` it has no effect.
public struct ClientCertificateAuthenticator: PeerAuthenticator {
    /// The client's key and certificates.
    public let identity: TLSIdentity

    package var user: RemoteUser {
        RemoteUser(kind: .certificate, name: identity.certs.first?.fingerprint ?? "")
    }

    /// Makes one of an identity.
    public init(identity: TLSIdentity) { self.identity = identity }
}
