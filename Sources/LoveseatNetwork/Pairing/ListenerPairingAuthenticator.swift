public import Foundation
import Logging
public import LoveseatCore
import LoveseatIdentity
public import LoveseatModel
import NIOConcurrencyHelpers

/// Lets in the peers that were paired with a database, by their certificates, and pairs with new ones by a ``PairingCode``.
public final class ListenerPairingAuthenticator: ListenerAuthenticator {
    /// Two minutes.
    public static let defaultValidity: TimeInterval = 120
    /// Wrong proofs after which a code is void.
    private static let mostFailures = 5

    private struct Offer {
        let number: Int
        let secrets: [String]
        let expires: Date
        var failures = 0
        /// Who used it, and is being told so.
        var user: PairedPeer?
        let paired: FeedBuffer<PairedPeer>
    }

    private struct State {
        var nextNumber = 0
        var offer: Offer?
    }

    private let database: Database
    private let state = NIOLockedValueBox(State())
    private let judging = PairingQueue()

    /// Pairs with a database, which keeps who it was paired with.
    public init(database: Database) { self.database = database }

    /// Makes a code for one peer. An older one is void from now on.
    ///
    /// - Returns: the code, and a sequence of the peer that used it, which ends when the code is used or void.
    /// - Throws: ``LoveseatError``: `notOpen` unless the listener is running; `invalidParameter` if it has no TLS.
    public func makeCode(
        for listener: URLEndpointListener,
        validFor seconds: TimeInterval = defaultValidity
    ) throws(LoveseatError) -> (code: PairingCode, paired: Feed<PairedPeer>) {
        guard let urls = listener.urls else { throw LoveseatError(.notOpen, "the listener is not running") }
        guard let certificate = listener.tlsIdentity?.certs.first else {
            throw LoveseatError(.invalidParameter, "pairing needs TLS: do not disable it")
        }
        var generator = SystemRandomNumberGenerator()
        let secret = Base64.encode((0..<18).map { _ in UInt8.random(in: 0...255, using: &generator) })
            .replacing("+", with: "-").replacing("/", with: "_")
        let digits = String(String(1_000_000 + Int.random(in: 0..<1_000_000, using: &generator)).dropFirst())
        let buffer = FeedBuffer<PairedPeer>(cost: { _ in 128 }, merge: { $0 = $1 })
        let number = state.withLockedValue { state in
            state.offer?.paired.finish()
            state.nextNumber += 1
            state.offer = Offer(
                number: state.nextNumber,
                secrets: [secret, digits],
                expires: Date().addingTimeInterval(seconds),
                paired: buffer
            )
            return state.nextNumber
        }
        Task { [weak self] in
            try? await Task.sleep(for: .seconds(seconds))
            self?.withdraw(number)
        }
        let code = PairingCode(
            // A QR code of more is hard to scan.
            urls: Array(urls.prefix(4)),
            fingerprint: certificate.fingerprint,
            secret: secret,
            digits: digits
        )
        return (code, Feed(buffer) {})
    }

    private func withdraw(_ number: Int) {
        state.withLockedValue { state in
            guard state.offer?.number == number else { return }
            state.offer?.paired.finish()
            state.offer = nil
        }
    }

    // MARK: Judging

    /// Whether the peer whose certificates these are may come in, perhaps by a proof.
    func admits(
        _ certificates: [TLSCertificate],
        credentials: (username: String, password: String)?,
        listener: String
    ) async -> Bool {
        guard let client = certificates.first else { return false }
        // A peer that is known already may use a code once more.
        if let credentials, let nonce = PairingProof.nonce(of: credentials.username) {
            // One at a time: each costs memory.
            let isPaired = await judging.run { [self] in
                pair(client, nonce: nonce, proof: credentials.password, listener: listener)
            }
            if isPaired { return true }
        }
        let peers = (try? database.pairedPeers()) ?? []
        return peers.contains { $0.fingerprint == client.fingerprint }
    }

    /// A client has been told that it may come in. Only then the app hears of a pairing, which may end the listener.
    func answered(_ certificates: [TLSCertificate]) {
        let used = state.withLockedValue { state -> (PairedPeer, FeedBuffer<PairedPeer>)? in
            guard let offer = state.offer, let user = offer.user,
                user.fingerprint == certificates.first?.fingerprint
            else { return nil }
            return (user, offer.paired)
        }
        guard let (peer, feed) = used else { return }
        feed.push(peer)
        feed.finish()
    }

    private func pair(_ client: TLSCertificate, nonce: String, proof: String, listener: String) -> Bool {
        guard let offer = state.withLockedValue({ $0.offer }), offer.user == nil, offer.expires > Date()
        else {
            return false
        }
        let isRight = offer.secrets.contains { secret in
            let expected = try? PairingProof(
                secret: secret,
                nonce: nonce,
                listener: listener,
                client: client.fingerprint
            )
            return expected.map { ListenerPasswordAuthenticator.isEqual($0.password, proof) } ?? false
        }
        let peer = PairedPeer(name: client.commonName ?? "", fingerprint: client.fingerprint, urls: [])
        let mayPair = state.withLockedValue { state -> Bool in
            guard state.offer?.number == offer.number else { return false }
            guard isRight else {
                state.offer?.failures += 1
                if offer.failures + 1 >= Self.mostFailures {
                    state.offer?.paired.finish()
                    state.offer = nil
                    LogDomain.listener.log(
                        .warning,
                        "a pairing code is void after \(Self.mostFailures) wrong proofs"
                    )
                }
                return false
            }
            guard state.offer?.user == nil else { return false }
            state.offer?.user = peer
            return true
        }
        guard mayPair else { return false }
        do throws(LoveseatError) { try database.addPairedPeer(peer) } catch {
            LogDomain.listener.log(.error, "a peer cannot be paired: \(error.message)")
            return false
        }
        return true
    }
}

/// Judges one proof after the other, away from the event loops.
private actor PairingQueue {
    private let executor = QueueExecutor(label: "loveseat.pairing")

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func run(_ body: @Sendable () -> Bool) -> Bool { body() }
}
