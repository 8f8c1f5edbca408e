import LoveseatModel
import LoveseatNetwork

/// Decides which clients may connect to a listener: a ``ListenerPasswordAuthenticator`` or a ``ListenerCertificateAuthenticator``.
public protocol ListenerAuthenticator: Sendable {}

/// An authenticator that the engine can use.
protocol EngineListenerAuthenticator: ListenerAuthenticator {
    var engine: any LoveseatNetwork.ListenerAuthenticator { get }
}

/// A closure of the app that the engine calls once for each connection, on a thread that may be blocked.
///
/// Unchecked, because upstream's closures are plain: those of an app that connects several clients at once may run at once.
private struct Decision<Credentials>: @unchecked Sendable {
    let accepts: (Credentials) -> Bool
}

/// Authenticates clients by a user name and a password. Without TLS, others on the network can read them.
public final class ListenerPasswordAuthenticator: EngineListenerAuthenticator {
    let engine: any LoveseatNetwork.ListenerAuthenticator

    /// Creates an authenticator that accepts a client if the closure returns true for its user name and password.
    public init(authenticator: @escaping (String, String) -> Bool) {
        let decision = Decision<(String, String)> { authenticator($0.0, $0.1) }
        engine = LoveseatNetwork.ListenerPasswordAuthenticator { username, password in
            decision.accepts((username, password))
        }
    }
}

/// Authenticates clients by a certificate. The listener has to use TLS.
public final class ListenerCertificateAuthenticator: EngineListenerAuthenticator {
    let engine: any LoveseatNetwork.ListenerAuthenticator

    /// Creates an authenticator that accepts a client if the closure returns true for its certificates, its own first.
    ///
    /// The client has proved that it has the key. Nothing else was checked.
    public init(authenticator: @escaping ([SecCertificate]) -> Bool) {
        let decision = Decision<[SecCertificate]>(accepts: authenticator)
        engine = LoveseatNetwork.ListenerCertificateAuthenticator { chain in
            decision.accepts(chain.compactMap(SecCertificate.make))
        }
    }

    /// Creates an authenticator that accepts clients whose certificate is one of these or was issued by one of these, and is valid today.
    public init(rootCerts: [SecCertificate]) {
        engine = LoveseatNetwork.ListenerCertificateAuthenticator(
            rootCertificates: rootCerts.map(\.engine)
        )
    }
}
