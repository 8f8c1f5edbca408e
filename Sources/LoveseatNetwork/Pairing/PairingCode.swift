public import Foundation
import LoveseatBLIPReplication
public import LoveseatCore
public import LoveseatIdentity
public import LoveseatModel
import NIOConcurrencyHelpers

/// A code that one device shows and another one scans or types, so that their databases trust each other from then on.
///
/// ```swift
/// let (code, events) = try authenticator.makeCode(for: listener)   // show code.text as a QR code, or say code.digits
/// let peer = try await PairingCode(text: scanned).pair(with: database, identity: identity)   // on the other device
/// ```
///
/// The code holds the listener's URLs, the fingerprint of its certificate, and a secret that is good for one pairing
/// within a short time. The six digits are an alternative to say aloud; they are typed together with a URL. Neither
/// secret is sent: each side proves to the other that it knows it, by a password-authenticated key exchange that is
/// bound to both certificates (docs/extensions.md, section Pairing). A listener that does not know the code learns
/// nothing about it. An attacker has one guess for each connection, and five for each set of six digits.
public struct PairingCode: Hashable, Sendable {
    /// The URLs of the listener, one for each of its networks.
    public let urls: [URL]
    /// The SHA-256 fingerprint of the listener's certificate; nil for a code from digits, which do not contain it.
    public let fingerprint: String?
    let secret: String
    /// The six digits of the code; nil for a code from a text.
    public let digits: String?

    init(urls: [URL], fingerprint: String?, secret: String, digits: String?) {
        self.urls = urls
        self.fingerprint = fingerprint
        self.secret = secret
        self.digits = digits
    }

    private static let scheme = "loveseat-pair"
    /// A QR code cannot hold more.
    private static let maximumTextBytes = 2_048

    /// The text to show as a QR code.
    public var text: String {
        var parts = URLComponents()
        parts.scheme = Self.scheme
        parts.path = "1"
        parts.queryItems =
            urls.map { URLQueryItem(name: "u", value: $0.absoluteString) }
            + [URLQueryItem(name: "p", value: fingerprint), URLQueryItem(name: "s", value: secret)]
        return parts.string ?? ""
    }

    /// Creates a code from the text of a QR code.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if the text is not a pairing code.
    public init(text: String) throws(LoveseatError) {
        func refuse(_ why: String) -> LoveseatError {
            LoveseatError(.invalidParameter, "this is not a pairing code: \(why)")
        }
        guard text.utf8.count <= Self.maximumTextBytes, let parts = URLComponents(string: text),
            parts.scheme == Self.scheme
        else { throw refuse("it does not begin with \(Self.scheme):") }
        guard parts.path == "1" else { throw refuse("a newer version made it") }
        let items = parts.queryItems ?? []
        let urls = items.filter { $0.name == "u" }.compactMap { $0.value.flatMap { URL(string: $0) } }
        guard !urls.isEmpty, urls.allSatisfy({ $0.scheme == "wss" }) else {
            throw refuse("it has no wss:// URL")
        }
        for url in urls {
            do { _ = try WebSocketAddress(url) } catch { throw refuse(error.message) }
        }
        guard
            let pin = items.first(where: { $0.name == "p" })?.value.flatMap({
                TLSCertificate.fingerprint(reading: $0)
            }),
            let secret = items.first(where: { $0.name == "s" })?.value, !secret.isEmpty
        else { throw refuse("the certificate or the secret is missing") }
        self.init(urls: urls, fingerprint: pin, secret: secret, digits: nil)
        guard self.text.utf8.count <= Self.maximumTextBytes else { throw refuse("it is too long") }
    }

    /// The six digits of a text, which may separate them by spaces or hyphens.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if there are not six digits.
    @discardableResult
    package static func plain(_ digits: String) throws(LoveseatError) -> String {
        let plain = digits.filter { $0 != " " && $0 != "-" }
        guard plain.utf8.count == 6, plain.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw LoveseatError(
                .invalidParameter,
                "a pairing code has six digits, or is a text that begins with loveseat-pair:"
            )
        }
        return plain
    }

    /// Creates a code from six digits, which may be separated by spaces or hyphens, and the URL of the listener.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` if there are not six digits; `invalidURL` if the URL is not a `wss://` URL of a
    ///   database.
    public init(digits: String, url: URL) throws(LoveseatError) {
        let plain = try Self.plain(digits)
        guard url.scheme == "wss" else {
            throw LoveseatError(.invalidURL, "pairing needs TLS: use a wss:// URL")
        }
        _ = try WebSocketAddress(url)
        self.init(urls: [url], fingerprint: nil, secret: plain, digits: plain)
    }

    /// Pairs a database with the listener that shows this code.
    ///
    /// Afterwards each database has stored the other's certificate. ``PairedPeer/endpoint`` and
    /// ``ReplicatorConfiguration/trust(_:identity:)`` are all that a replicator needs.
    ///
    /// - Parameters:
    ///   - database: The database that stores the peer.
    ///   - identity: The key and certificate that the database shows to this peer from now on.
    /// - Returns: The peer, as it was stored.
    /// - Throws: ``LoveseatError``: `httpAuthRequired` if the code is wrong, was used or has expired, or if the listener does not know it;
    ///   an error of the network, of TLS, or of the disk. Nothing is stored then.
    public func pair(with database: Database, identity: TLSIdentity) async throws(LoveseatError) -> PairedPeer
    {
        var failure = LoveseatError(.invalidParameter, "the pairing code contains no URL")
        for url in urls {
            do throws(LoveseatError) { return try await pair(with: database, identity, at: url) } catch {
                // Another of its addresses may be on a network of this host; a refusal holds for all of them.
                failure = error
                if error.code == .httpAuthRequired { break }
            }
        }
        throw failure
    }

    private func pair(
        with database: Database,
        _ identity: TLSIdentity,
        at url: URL
    ) async throws(LoveseatError) -> PairedPeer {
        do {
            let address = try WebSocketAddress(url)
            let seen = SeenCertificate()
            var options = ConnectionOptions()
            options.pinnedServerFingerprint = fingerprint
            // The code proves the listener's certificate.
            options.acceptsAnyCertificate = fingerprint == nil
            options.sawServerCertificate = { seen.record($0) }
            options.authenticator = ClientCertificateAuthenticator(identity: identity)
            let initiator = try PairingInitiator(
                secret: secret,
                form: fingerprint == nil ? .digits : .text,
                client: identity.certs.first?.fingerprint ?? "",
                name: DeviceName.ofThisHost
            )
            let connection = try await WebSocketClient(options: options, pairing: (initiator, seen))
                .connect(to: address)
            await connection.channel.close(code: 1000, reason: "")
            guard let certificate = seen.certificate else { throw PairingInitiator.refused }
            let peer = PairedPeer(
                name: initiator.listenerName ?? certificate.commonName ?? "",
                fingerprint: certificate.fingerprint,
                urls: urls.map(\.absoluteString)
            )
            try database.addPairedPeer(peer)
            return peer
        } catch let error as LoveseatError where error.code == .httpAuthRequired {
            throw PairingInitiator.refused
        } catch { throw LoveseatError(network: error) }
    }
}

/// The certificate that was seen last.
final class SeenCertificate: Sendable {
    private let seen = NIOLockedValueBox<TLSCertificate?>(nil)
    var certificate: TLSCertificate? { seen.withLockedValue { $0 } }
    func record(_ certificate: TLSCertificate) { seen.withLockedValue { $0 = certificate } }
}

extension ReplicatorConfiguration {
    /// Trusts a peer that the database was paired with: pins its certificate, and authenticates with an identity.
    ///
    /// - Parameters:
    ///   - peer: The paired peer.
    ///   - identity: The identity with which the database was paired.
    public mutating func trust(_ peer: PairedPeer, identity: TLSIdentity) {
        pinnedServerFingerprint = peer.fingerprint
        authenticator = ClientCertificateAuthenticator(identity: identity)
    }
}

extension PairedPeer {
    /// The endpoint at the first of the peer's URLs; nil for a peer that connects to this database. See ``endpoints``.
    public var endpoint: URLEndpoint? { endpoints.first }

    /// The endpoints at all of the peer's URLs, in the order in which the peer listed them; empty for a peer that connects to this database.
    ///
    /// A listener has one for each of its addresses, and not all of them can be reached from every network. A replicator connects to one. If it
    /// becomes ``Replicator/ActivityLevel/offline``, stop it, and start one for the next endpoint. Each endpoint has checkpoints of its own, so that
    /// the first replication with it compares all changes, and transfers only those that are missing.
    public var endpoints: [URLEndpoint] { urls.compactMap { URL(string: $0) }.map { URLEndpoint($0) } }
}
