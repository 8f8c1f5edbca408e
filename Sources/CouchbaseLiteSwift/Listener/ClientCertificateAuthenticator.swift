import LoveseatCore
import LoveseatNetwork

/// Authenticates a replicator by its certificate, in the TLS handshake. It has no effect over `ws://`.
public struct ClientCertificateAuthenticator: EngineAuthenticator {
    /// The replicator's key and certificates.
    public let identity: TLSIdentity

    /// Creates an authenticator with an identity.
    public init(identity: TLSIdentity) { self.identity = identity }

    var engine: any Authenticator {
        LoveseatNetwork.ClientCertificateAuthenticator(identity: identity.engine)
    }
}
