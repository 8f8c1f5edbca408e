import Loveseat
import PhotoDropCore
import Synchronization

/// Admits senders that know the session's secret, in either of its forms.
package final class DropAuthenticator: ListenerAuthenticator {
    private let session: String
    private let secret: DropSecret
    private let connections = Mutex(0)

    package init(session: String, secret: DropSecret) {
        self.session = session
        self.secret = secret
    }

    /// The shorter form has 100 random bits. Wrong secrets are slowed down, and whoever has the code never waits because of them.
    package var hasUnguessableSecrets: Bool { true }

    /// Returns an identity with a name for this connection; nil for a wrong user name or password.
    package func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let credentials = client.credentials else { return nil }
        let user = DropCode.username(session: session)
        // Every comparison takes place, so that the time does not tell which part is wrong.
        let compactUser = DropCode.username(session: nil)
        let isFullUser = ListenerPasswordAuthenticator.isEqual(user, credentials.username)
        let isFull = ListenerPasswordAuthenticator.isEqual(secret.full, credentials.password)
        let isCompactUser = ListenerPasswordAuthenticator.isEqual(compactUser, credentials.username)
        let isCompact = ListenerPasswordAuthenticator.isEqual(secret.compact, credentials.password)
        guard isFullUser && isFull || isCompactUser && isCompact else { return nil }
        let number = connections.withLock { connections in
            connections += 1
            return connections
        }
        return PeerIdentity(username: user, address: client.address, name: "connection-\(number)")
    }
}
