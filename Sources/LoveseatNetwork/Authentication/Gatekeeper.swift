import Foundation
import LoveseatCore
import LoveseatModel
import NIOConcurrencyHelpers
import NIOHTTP1

/// Decides whether a client gets past a listener's door, before anything behind it can be seen.
final class Gatekeeper: Sendable {
    private let authenticator: (any ListenerAuthenticator)?
    private let brake = NIOLockedValueBox(AttemptBrake())

    /// The fingerprint of the listener's certificate, which proofs of pairing are about.
    private let fingerprint: String

    init(_ authenticator: (any ListenerAuthenticator)?, fingerprint: String?) {
        self.authenticator = authenticator
        self.fingerprint = fingerprint ?? ""
    }

    /// Who the client is.
    func admit(
        _ headers: HTTPHeaders,
        address: String,
        certificates: [TLSCertificate]
    ) async throws(UpgradeJudge.Refusal) -> PeerIdentity {
        let credentials = headers.first(name: "Authorization").flatMap { UpgradeHeaders.credentials($0) }
        switch authenticator {
        case let passwords as ListenerPasswordAuthenticator:
            guard let (username, password) = credentials else { throw .unauthorized }
            try await judge(address) { await passwords.accepts(username, password) }
            return PeerIdentity(username: username, certificates: certificates, address: address)
        case let pairing as ListenerPairingAuthenticator:
            // Who shows no certificate, and who asks only who we are, guesses nothing.
            guard !certificates.isEmpty else { throw .unauthorized }
            try await judge(address) {
                await pairing.admits(certificates, credentials: credentials, listener: fingerprint)
            }
            return PeerIdentity(certificates: certificates, address: address)
        default:
            // Certificates were judged in the TLS handshake.
            return PeerIdentity(certificates: certificates, address: address)
        }
    }

    /// A client has been told that it may come in.
    func answered(_ peer: PeerIdentity) {
        (authenticator as? ListenerPairingAuthenticator)?.answered(peer.certificates)
    }

    private func judge(_ address: String, _ isGood: () async -> Bool) async throws(UpgradeJudge.Refusal) {
        let network = PeerAddress.network(of: address)
        try await waitForTurn(network)
        guard await isGood() else {
            brake.withLockedValue { $0.failed(network, now: Self.now) }
            throw .unauthorized
        }
        brake.withLockedValue { $0.succeeded(network) }
    }

    private func waitForTurn(_ network: String) async throws(UpgradeJudge.Refusal) {
        switch brake.withLockedValue({ $0.ask(network, now: Self.now) }) {
        case .after(0): break
        case .after(let seconds):
            // A client that gives up ends the connection; the attempt still takes its turn.
            try? await Task.sleep(for: .seconds(seconds))
        case .refused(let seconds): throw .tooManyAttempts(retryAfter: Int(seconds.rounded(.up)))
        }
    }

    private static var now: Double { ProcessInfo.processInfo.systemUptime }
}
