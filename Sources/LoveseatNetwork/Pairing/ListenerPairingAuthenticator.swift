public import Foundation
import Logging
public import LoveseatCore
import LoveseatIdentity
public import LoveseatModel
import NIOConcurrencyHelpers

/// An event of a pairing code that a listener shows.
public enum PairingEvent: Hashable, Sendable {
    /// A peer has used the code, and is trusted from now on. This is the last event.
    case paired(PairedPeer)
    /// Somebody guessed at the six digits five times. Show this code instead; the text of the QR code is the same.
    case replaced(PairingCode)
}

/// Authenticates paired peers by their certificates, and pairs with new ones by a ``PairingCode``.
///
/// It is safe to use from any thread.
public final class ListenerPairingAuthenticator: ListenerAuthenticator {
    /// The default time for which a code is valid, 120 seconds.
    public static let defaultValidity: TimeInterval = 120
    /// A year.
    private static let longestValidity = 31_536_000.0
    /// The number of guesses at six digits after which they are replaced.
    static let guessesPerCode = 5
    /// The maximum number of codes that replace each other before pairing ends: an attacker has a chance of 1 in 20,000.
    private static let maximumCodes = 10

    private struct Offer {
        let number: Int
        /// The long secret of the QR code, which cannot be guessed.
        let secret: String
        var digits = Offer.newDigits()
        let urls: [URL]
        let fingerprint: String
        let expires: Date
        /// The name that the listener's owner gives to the peer.
        let name: String?
        var codes = 1
        /// The number of exchanges with these digits that were not completed, or are in progress.
        var guesses = 0
        var underWay = 0
        /// The peer that used it, and gets the response now.
        var user: PairedPeer?
        let events: FeedBuffer<PairingEvent>

        var code: PairingCode {
            PairingCode(urls: urls, fingerprint: fingerprint, secret: secret, digits: digits)
        }

        static func newDigits() -> String {
            String(String(1_000_000 + Int.random(in: 0..<1_000_000)).dropFirst())
        }
    }

    private struct State {
        var nextNumber = 0
        var offer: Offer?
    }

    private let database: Database
    private let state = NIOLockedValueBox(State())

    /// Creates an authenticator for a database, which stores its paired peers.
    public init(database: Database) { self.database = database }

    /// Always true, because peers are recognised by their certificates.
    public var requestsClientCertificates: Bool { true }

    /// Creates a code for one peer. An earlier code becomes invalid.
    ///
    /// - Parameters:
    ///   - listener: A running listener that uses this authenticator.
    ///   - name: The peer's ``PeerIdentity/name``, by which an ``AccessPolicy`` grants rights. If it is nil, the peer has no such name, and
    ///     ``PairedPeer/name`` is the name that its device gives itself.
    ///   - seconds: How long the code is valid, in seconds. The default is 120.
    /// - Returns: The code, and a feed of its events, which ends when the code was used or is no longer valid.
    /// - Throws: ``LoveseatError``: `notOpen` if the listener is not running; `invalidParameter` if it does not use TLS.
    public func makeCode(
        for listener: URLEndpointListener,
        name: String? = nil,
        validFor seconds: TimeInterval = defaultValidity
    ) throws(LoveseatError) -> (code: PairingCode, events: Feed<PairingEvent>) {
        guard let urls = listener.urls else { throw LoveseatError(.notOpen, "the listener is not running") }
        guard let certificate = listener.tlsIdentity?.certs.first else {
            throw LoveseatError(.invalidParameter, "pairing needs TLS: do not disable it")
        }
        let secret = Base64.encode((0..<18).map { _ in UInt8.random(in: 0...255) })
            .replacing("+", with: "-").replacing("/", with: "_")
        let events = FeedBuffer<PairingEvent>(cost: { _ in 1_024 }, merge: { $0 = $1 })
        let offer = state.withLockedValue { state in
            state.offer?.events.finish()
            state.nextNumber += 1
            let offer = Offer(
                number: state.nextNumber,
                secret: secret,
                // A longer QR code is hard to scan.
                urls: Array(urls.prefix(4)),
                fingerprint: certificate.fingerprint,
                expires: Date().addingTimeInterval(seconds),
                name: name,
                events: events
            )
            state.offer = offer
            return offer
        }
        // A time without an end cannot be waited for.
        let validity = Duration.seconds(seconds > 0 ? min(seconds, Self.longestValidity) : 0)
        Task { [weak self, number = offer.number] in
            // Only a cancelled task wakes early, and nobody has this one to cancel it.
            try? await Task.sleep(for: validity)
            guard let self else { return events.finish() }
            withdraw(number)
        }
        return (offer.code, Feed(events) {})
    }

    /// Makes the code invalid that ``makeCode(for:name:validFor:)`` returned last, for example when its screen is closed.
    ///
    /// The feed of its events ends. Does nothing if the code was used, has expired or was withdrawn. Peers that were paired stay paired.
    public func withdrawCode() {
        withdraw(nil)
    }

    /// `number`: the code's; nil for the last one.
    private func withdraw(_ number: Int?) {
        state.withLockedValue { state in
            guard let offer = state.offer, offer.number == number ?? offer.number else {
                // It was withdrawn already, or another code took its place.
                return
            }
            // A peer that is using the code is about to get its response, and the feed its last event.
            if offer.user != nil { return }
            offer.events.finish()
            state.offer = nil
        }
    }

    // MARK: Peers that are known

    /// Returns the identity of a client that the database was paired with, by the certificate that it shows, or nil.
    public func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
        guard let fingerprint = client.certificates.first?.fingerprint,
            let peer = pairedPeers()?.first(where: { $0.fingerprint == fingerprint })
        else { return nil }
        return PeerIdentity(
            certificates: client.certificates,
            address: client.address,
            name: peer.isNameGiven ? peer.name : nil
        )
    }

    /// The peers that the database was paired with; nil if they cannot be read, so that nobody is recognised.
    private func pairedPeers() -> [PairedPeer]? {
        do throws(LoveseatError) { return try database.pairedPeers() } catch {
            LogDomain.listener.log(.error, "paired peers cannot be read: \(error.message)")
            return nil
        }
    }

    // MARK: Pairing

    /// One exchange with a client. It counts as a guess unless the client proves that it knows the code.
    package final class Run: Sendable {
        package let challenge: String
        fileprivate let responder: PairingResponder
        fileprivate let offer: Int
        fileprivate let client: ConnectingClient
        private let isDone = NIOLockedValueBox(false)
        private let ended: @Sendable (_ isGuess: Bool) -> Void

        fileprivate init(
            _ responder: PairingResponder,
            offer: Int,
            client: ConnectingClient,
            ended: @escaping @Sendable (_ isGuess: Bool) -> Void
        ) {
            challenge = responder.challenge
            self.responder = responder
            self.offer = offer
            self.client = client
            self.ended = ended
        }

        /// Ends the exchange, in whatever way the pairing ends. Returns whether this is the first call.
        @discardableResult
        fileprivate func end(isGuess: Bool) -> Bool {
            let isFirst = isDone.withLockedValue { isDone in
                defer { isDone = true }
                return !isDone
            }
            if isFirst { ended(isGuess) }
            return isFirst
        }

        deinit { end(isGuess: true) }
    }

    /// Begins an exchange; nil if there is no code, or too many exchanges are in progress.
    package func begin(_ header: PairingHeader, _ client: ConnectingClient, listener: String) -> Run? {
        guard let leaf = client.certificates.first, let opening = PairingResponder.Opening(header) else {
            return nil
        }
        let taken = state.withLockedValue { state -> (number: Int, secret: String, digits: String)? in
            guard let offer = state.offer, offer.user == nil, offer.expires > Date() else { return nil }
            if opening.form == .digits {
                guard offer.guesses + offer.underWay < Self.guessesPerCode else { return nil }
                state.offer?.underWay += 1
            }
            return (offer.number, opening.form == .digits ? offer.digits : offer.secret, offer.digits)
        }
        guard let taken else { return nil }
        let ended: @Sendable (Bool) -> Void = { [weak self] isGuess in
            if opening.form != .digits { return }
            self?.exchangeEnded(offer: taken.number, digits: taken.digits, isGuess: isGuess)
        }
        // The client's share may be a point of low order, which makes no key.
        guard
            let responder = try? PairingResponder(
                opening,
                secret: taken.secret,
                client: leaf.fingerprint,
                listener: listener
            )
        else {
            ended(true)
            return nil
        }
        return Run(responder, offer: taken.number, client: client, ended: ended)
    }

    /// Ends an exchange with the client's proof; returns the peer if the proof is right.
    ///
    /// `usesCode`: whether the request is valid apart from that. Otherwise nothing is stored, and the code stays valid: the client
    /// is told what is wrong with its request, and may try again.
    package func complete(_ run: Run, _ header: PairingHeader, usesCode: Bool = true) -> PeerIdentity? {
        guard run.responder.accepts(header), let leaf = run.client.certificates.first else { return nil }
        guard run.end(isGuess: false) else { return nil }
        if !usesCode {
            return PeerIdentity(certificates: run.client.certificates, address: run.client.address)
        }
        // Without them, a name that was given to the peer earlier would be lost.
        guard let peers = pairedPeers() else { return nil }
        let known = peers.first { $0.fingerprint == leaf.fingerprint && $0.isNameGiven }
        let peer = state.withLockedValue { state -> PairedPeer? in
            guard let offer = state.offer, offer.number == run.offer, offer.user == nil else { return nil }
            let given = offer.name ?? known?.name
            let peer = PairedPeer(
                name: given ?? DeviceName.decoded(header["name"]) ?? leaf.commonName ?? "",
                fingerprint: leaf.fingerprint,
                urls: [],
                isNameGiven: given != nil
            )
            state.offer?.user = peer
            return peer
        }
        guard let peer else { return nil }
        do throws(LoveseatError) { try database.addPairedPeer(peer) } catch {
            LogDomain.listener.log(.error, "a peer cannot be paired: \(error.message)")
            let hasExpired = state.withLockedValue { state in
                if state.offer?.number == run.offer { state.offer?.user = nil }
                return (state.offer?.expires ?? .distantFuture) <= Date()
            }
            if hasExpired { withdraw(run.offer) }
            return nil
        }
        return PeerIdentity(
            certificates: run.client.certificates,
            address: run.client.address,
            name: peer.isNameGiven ? peer.name : nil
        )
    }

    /// Called when a client has been sent its response, or is gone. Only then is the pairing reported to the app, which may stop the
    /// listener.
    func answered(_ certificates: [TLSCertificate]) {
        let used = state.withLockedValue { state -> (PairedPeer, FeedBuffer<PairingEvent>)? in
            guard let offer = state.offer, let user = offer.user,
                user.fingerprint == certificates.first?.fingerprint
            else { return nil }
            return (user, offer.events)
        }
        // Most clients that are admitted were paired before, and use no code.
        guard let (peer, events) = used else { return }
        events.push(.paired(peer))
        events.finish()
    }

    /// An exchange by the digits has ended. `isGuess`: the other side did not know them, or gave up; after five such, there are new digits.
    private func exchangeEnded(offer number: Int, digits: String, isGuess: Bool) {
        let replaced = state.withLockedValue { state -> Bool? in
            guard var offer = state.offer, offer.number == number, offer.digits == digits else { return nil }
            offer.underWay -= 1
            // While a peer uses the code up, nobody can guess it.
            if isGuess, offer.user == nil { offer.guesses += 1 }
            guard offer.guesses >= Self.guessesPerCode else {
                state.offer = offer
                return nil
            }
            guard offer.codes < Self.maximumCodes else {
                offer.events.finish()
                state.offer = nil
                return false
            }
            offer.codes += 1
            (offer.guesses, offer.underWay) = (0, 0)
            offer.digits = Offer.newDigits()
            state.offer = offer
            offer.events.push(.replaced(offer.code))
            return true
        }
        // The digits stay until the fifth guess, and the code may be used or withdrawn meanwhile.
        guard let replaced else { return }
        LogDomain.listener.log(
            .warning,
            replaced
                ? "somebody guessed at a pairing code \(Self.guessesPerCode) times: there are new digits"
                : "somebody guesses at pairing codes: pairing has ended, start it again elsewhere"
        )
    }
}
