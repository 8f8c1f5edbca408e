import Foundation
import LoveseatCore
import LoveseatModel
import NIOConcurrencyHelpers
import NIOHTTP1

/// Decides whether a client gets past a listener's door, before anything behind it can be seen.
final class Gatekeeper: Sendable {
    private let authenticator: (any ListenerAuthenticator)?
    private let brake = NIOLockedValueBox(AttemptBrake())

    init(_ authenticator: (any ListenerAuthenticator)?) { self.authenticator = authenticator }

    /// Who the client is.
    func admit(
        _ headers: HTTPHeaders,
        address: String,
        certificates: [TLSCertificate]
    ) async throws(UpgradeJudge.Refusal) -> PeerIdentity {
        guard let passwords = authenticator as? ListenerPasswordAuthenticator else {
            // Certificates were judged in the TLS handshake.
            return PeerIdentity(certificates: certificates, address: address)
        }
        guard let header = headers.first(name: "Authorization"),
            let (username, password) = UpgradeHeaders.credentials(header)
        else { throw .unauthorized }
        try await waitForTurn(address)
        guard await passwords.accepts(username, password) else {
            brake.withLockedValue { $0.failed(address, now: Self.now) }
            throw .unauthorized
        }
        brake.withLockedValue { $0.succeeded(address) }
        return PeerIdentity(username: username, certificates: certificates, address: address)
    }

    private func waitForTurn(_ address: String) async throws(UpgradeJudge.Refusal) {
        switch brake.withLockedValue({ $0.ask(address, now: Self.now) }) {
        case .after(0): break
        case .after(let seconds):
            // A client that gives up ends the connection; the attempt still takes its turn.
            try? await Task.sleep(for: .seconds(seconds))
        case .refused(let seconds): throw .tooManyAttempts(retryAfter: Int(seconds.rounded(.up)))
        }
    }

    private static var now: Double { ProcessInfo.processInfo.systemUptime }
}
