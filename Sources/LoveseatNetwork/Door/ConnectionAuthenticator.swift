package import LoveseatCore
import LoveseatModel
package import LoveseatReplication
import NIOConcurrencyHelpers
package import NIOHTTP1

/// Authenticates clients of a listener, before they can see anything of the database.
package final class ConnectionAuthenticator: Sendable {
    /// The result of a connection's request.
    package enum Answer: Sendable {
        case admitted(PeerIdentity)
        /// The listener has proved itself in a pairing. The client does so with its next request.
        case challenged(ListenerPairingAuthenticator.Run)
    }

    private let authenticator: (any ListenerAuthenticator)?
    private let throttle = NIOLockedValueBox(LoginThrottle())

    /// Whether only user names and passwords are checked.
    package var isPasswords: Bool { authenticator is ListenerPasswordAuthenticator }

    /// The authenticator that knows the users' passwords, which Digest needs; nil if there is none.
    package var secrets: ListenerPasswordAuthenticator? {
        (authenticator as? ListenerPasswordAuthenticator).flatMap { $0.secret == nil ? nil : $0 }
    }

    /// The fingerprint of the listener's certificate, to which pairing is bound.
    private let fingerprint: String
    private let runtime: ReplicationRuntime

    /// `runtime`: measures how long attempts wait.
    package init(
        _ authenticator: (any ListenerAuthenticator)?,
        fingerprint: String?,
        runtime: ReplicationRuntime = .system
    ) {
        self.authenticator = authenticator
        self.fingerprint = fingerprint ?? ""
        self.runtime = runtime
    }

    /// Authenticates a request. `shown`: the result of the TLS handshake; nil without TLS. `run`: the pairing that the connection
    /// has begun. `mayPair`: whether a client that pairs asks for a WebSocket of a database that is served; otherwise it does not use
    /// up the code.
    package func answer(
        _ headers: HTTPHeaders,
        address: String,
        shown: ShownCertificates.Outcome?,
        run: ListenerPairingAuthenticator.Run?,
        mayPair: Bool = true
    ) async throws(HTTPRefusal) -> Answer {
        let certificates = shown?.certificates ?? []
        guard let authenticator else {
            return .admitted(PeerIdentity(certificates: certificates, address: address))
        }
        let authorization = headers.first(name: "Authorization")
        let client = ConnectingClient(
            address: address,
            certificates: certificates,
            credentials: authorization.flatMap { UpgradeHeaders.credentials($0) }
                .map { BasicAuthenticator(username: $0.username, password: $0.password) },
            authorization: authorization
        )
        if authenticator is ListenerCertificateAuthenticator {
            // The authenticator was asked in this connection's TLS handshake; otherwise the client is not admitted.
            guard let peer = shown?.peer else { throw .unauthorized }
            return .admitted(peer)
        }
        if let pairing = authenticator as? ListenerPairingAuthenticator,
            let header = authorization.flatMap({ PairingHeader($0) })
        {
            return try await pair(pairing, header, client, run, mayPair: mayPair)
        }
        guard run == nil else { throw .unauthorized }
        // A client without credentials does not guess, and an app's own authenticator may recognise its address.
        let guesses = authorization != nil || !certificates.isEmpty
        guard guesses || !Self.needsProof(authenticator) else { throw .unauthorized }
        // Secrets that nobody can guess need no protection: a client that has one does not wait because of others' guesses.
        if authenticator.hasUnguessableSecrets, let peer = await authenticator.authenticate(client) {
            return .admitted(peer)
        }
        let peer = try await throttled(address, user: client.credentials?.username ?? "") {
            authenticator.hasUnguessableSecrets ? nil : await authenticator.authenticate(client)
        }
        return .admitted(peer)
    }

    /// Makes one attempt to log in, delayed like others. `attempt` returns nil if it fails.
    package func attempt<Value: Sendable>(
        address: String,
        user: String,
        _ attempt: () async -> Value?
    ) async throws(HTTPRefusal) -> Value {
        try await throttled(address, user: user, attempt)
    }

    /// Called when a client that was admitted has been sent its response, or is gone.
    func answered(_ peer: PeerIdentity) {
        (authenticator as? ListenerPairingAuthenticator)?.answered(peer.certificates)
    }

    private static func needsProof(_ authenticator: any ListenerAuthenticator) -> Bool {
        authenticator is ListenerPasswordAuthenticator || authenticator is ListenerPairingAuthenticator
    }

    private func pair(
        _ pairing: ListenerPairingAuthenticator,
        _ header: PairingHeader,
        _ client: ConnectingClient,
        _ run: ListenerPairingAuthenticator.Run?,
        mayPair: Bool
    ) async throws(HTTPRefusal) -> Answer {
        guard let run else {
            let run = try await throttled(client.address, user: "", counts: false) {
                pairing.begin(header, client, listener: fingerprint)
            }
            return .challenged(run)
        }
        let peer = try await throttled(client.address, user: "") {
            pairing.complete(run, header, usesCode: mayPair)
        }
        return .admitted(peer)
    }

    /// Delays an attempt as the throttle says. `counts`: whether nil is a failed attempt.
    private func throttled<Value: Sendable>(
        _ address: String,
        user: String,
        counts: Bool = true,
        _ attempt: () async -> Value?
    ) async throws(HTTPRefusal) -> Value {
        let network = PeerAddress.network(of: address)
        switch throttle.withLockedValue({ $0.ask(network, user: user, now: now) }) {
        case .after(0): break
        case .after(let seconds):
            // A client that gives up ends the connection; its attempt still counts.
            try? await runtime.clock.sleep(for: .seconds(seconds))
        case .refused(let seconds): throw .tooManyAttempts(retryAfter: Int(seconds.rounded(.up)))
        }
        guard let value = await attempt() else {
            if counts { throttle.withLockedValue { $0.failed(network, user: user, now: now) } }
            throw .unauthorized
        }
        if counts { throttle.withLockedValue { $0.succeeded(network, user: user, now: now) } }
        return value
    }

    private var now: Double { runtime.uptime() / .seconds(1) }
}
