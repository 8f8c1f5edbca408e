public import LoveseatCore
import LoveseatDiscoveryCore
import LoveseatIdentity
public import LoveseatModel
import LoveseatNetwork

/// Asks whether to trust a peer that is neither paired nor pinned when it is first connected to, and from then on trusts only the
/// certificate that it showed.
///
/// ```swift
/// var endpoint = ServiceEndpoint(name: "Ana's trips")
/// endpoint.trustOnFirstUse = TrustOnFirstUse(database: database) { peer in
///     await confirm("Trust \(peer.name) with the certificate \(peer.certificate.fingerprint)?")
/// }
/// ```
///
/// An impostor that takes the peer's name before the first connection is trusted instead of it, unless somebody compares the fingerprints.
/// The peers are kept in the database. A known peer that shows another certificate is refused with `tlsCertUntrusted`, without a
/// question, until `Database.removeKnownPeer(fingerprint:)` is called.
public final class TrustOnFirstUse: Sendable {
    private let database: Database
    private let ask: @Sendable (UnknownPeer) async -> Bool
    /// Held while a question is open, so that it is asked once.
    private let lock = AsyncLock()

    /// Creates the rule.
    ///
    /// - Parameters:
    ///   - database: Where peers are remembered.
    ///   - ask: Whether to trust the peer. Nothing but its certificate has been asked of it by then. It is called anew at each connection
    ///     until the answer is true. If its task is cancelled, the answer no longer counts.
    public init(database: Database, ask: @escaping @Sendable (UnknownPeer) async -> Bool) {
        self.database = database
        self.ask = ask
    }

    /// The fingerprint of the only certificate to accept. `certificate` connects to find out which one the peer shows.
    ///
    /// A known peer may have another name now; `prefersID` says whether the name counts less than the ID.
    func pin(
        _ service: ServiceName,
        peerID: String?,
        prefersID: Bool,
        _ certificate: () async throws -> TLSCertificate
    ) async throws -> String {
        let title = "\(service.instance).\(service.type.description.lowercased())"
        let name = DiscoveredPeer.printable(service.instance)
        guard await lock.acquire() else { throw CancellationError() }
        defer { lock.release() }
        let known = try database.knownPeers()
        let byName = known.first { $0.service.isExactly(title) }
        let byID = known.first { peerID != nil && $0.peerID.isExactly(peerID) }
        if let match = prefersID ? byID ?? byName : byName ?? byID { return match.fingerprint }
        let shown = try await certificate()
        guard await ask(UnknownPeer(name: name, peerID: peerID, certificate: shown)) else {
            throw LoveseatError(
                .tlsCertUnknownRoot,
                "\"\(name)\" is not trusted: pair with the peer, pin its certificate, or confirm its fingerprint"
            )
        }
        try Task.checkCancellation()
        let peer = KnownPeer(service: title, peerID: peerID, fingerprint: shown.fingerprint)
        try database.addKnownPeer(peer)
        return peer.fingerprint
    }
}

/// A peer that is connected to for the first time.
public struct UnknownPeer: Sendable {
    /// The name of the service, without characters that control a terminal or the direction of text.
    public let name: String
    /// The ID that it advertises; nil if it advertises none.
    public let peerID: String?
    /// The certificate that it shows.
    public let certificate: TLSCertificate
}
