import Loveseat
import PhotoDropCore
import Synchronization

/// Admits senders that know the session's secret, in either of its forms.
package final class DropAuthenticator: ListenerAuthenticator {
    private let session: String
    private let secret: DropSecret
    private let maximumFailures: Int
    private let onGuessing: @Sendable () -> Void
    private let state = Mutex(State())

    private struct State {
        var failures = 0
        var connections = 0
    }

    /// `onGuessing`: called when there were too many wrong passwords.
    package init(
        session: String,
        secret: DropSecret,
        maximumFailures: Int,
        onGuessing: @escaping @Sendable () -> Void
    ) {
        self.session = session
        self.secret = secret
        self.maximumFailures = maximumFailures
        self.onGuessing = onGuessing
    }

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
        guard isFullUser && isFull || isCompactUser && isCompact else {
            let failures = state.withLock { state in
                state.failures += 1
                return state.failures
            }
            if failures == maximumFailures { onGuessing() }
            return nil
        }
        let number = state.withLock { state in
            state.connections += 1
            return state.connections
        }
        return PeerIdentity(username: user, address: client.address, name: "connection-\(number)")
    }
}
