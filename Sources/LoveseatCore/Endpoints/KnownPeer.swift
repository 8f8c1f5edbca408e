public import LoveseatModel

/// A peer whose certificate was trusted when it was first seen: see `TrustOnFirstUse` of the product LoveseatDiscovery.
public struct KnownPeer: Hashable, Sendable {
    /// The name of its service with the type, such as `Ana's trips._loveseat._tcp`.
    public let service: String
    /// The ID of the peer's database; nil for a peer that advertises none.
    public let peerID: String?
    /// The SHA-256 fingerprint of the certificate, 64 lower-case hexadecimal digits.
    public let fingerprint: String

    /// Creates a peer from its parts.
    public init(service: String, peerID: String?, fingerprint: String) {
        self.service = service
        self.peerID = peerID
        self.fingerprint = fingerprint
    }
}

extension Database {
    /// Returns the peers whose certificates were trusted when they were first seen, in that order.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `corruptData` if the list is damaged; an error of the disk.
    public func knownPeers() throws(LoveseatError) -> [KnownPeer] {
        try StoredList.known.elements(of: self)
    }

    /// Adds a peer, or replaces the one with the same service. `TrustOnFirstUse` does this itself.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func addKnownPeer(_ peer: KnownPeer) throws(LoveseatError) {
        try StoredList.known.change(in: self) { $0.filter { !$0.service.isExactly(peer.service) } + [peer] }
    }

    /// Forgets the peers with a certificate, so that the next connection asks again. Does nothing if there are none.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func removeKnownPeer(fingerprint: String) throws(LoveseatError) {
        try StoredList.known.change(in: self) { $0.filter { $0.fingerprint != fingerprint } }
    }
}

extension StoredList<KnownPeer> {
    fileprivate static var known: StoredList<KnownPeer> {
        StoredList(
            key: "known_peers",
            name: "known peers",
            json: { peer in
                [
                    "service": .string(peer.service), "id": peer.peerID.map { .string($0) } ?? .null,
                    "sha256": .string(peer.fingerprint),
                ]
            },
            element: { item in
                guard let service = item["service"]?.string, let fingerprint = item["sha256"]?.string else {
                    return nil
                }
                return KnownPeer(service: service, peerID: item["id"]?.string, fingerprint: fingerprint)
            }
        )
    }
}
