public import LoveseatModel

/// A peer that this database was paired with. Each side knows the other's certificate.
public struct PairedPeer: Hashable, Sendable {
    /// The name that the owner of this database gave the peer, or the name that the peer's device gave itself.
    public let name: String
    /// Whether the owner gave the name. Only such a name becomes ``PeerIdentity/name``, because a device can call itself anything.
    public let isNameGiven: Bool
    /// The SHA-256 fingerprint of the peer's certificate, 64 lower-case hexadecimal digits.
    public let fingerprint: String
    /// The URLs at which the peer listens; empty for a peer that connects to this database.
    public let urls: [String]

    /// Creates a peer from its parts.
    public init(name: String, fingerprint: String, urls: [String], isNameGiven: Bool = false) {
        self.name = name
        self.isNameGiven = isNameGiven
        self.fingerprint = fingerprint
        self.urls = urls
    }
}

extension Database {
    /// Returns the peers that this database was paired with, in order of their fingerprints.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `corruptData` if the list is damaged; an error of the disk.
    public func pairedPeers() throws(LoveseatError) -> [PairedPeer] {
        try StoredList.paired.elements(of: self)
    }

    /// Adds a peer, or replaces the one with the same fingerprint. Pairing does this itself.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func addPairedPeer(_ peer: PairedPeer) throws(LoveseatError) {
        try StoredList.paired.change(in: self) { peers in
            (peers.filter { $0.fingerprint != peer.fingerprint } + [peer])
                .sorted { $0.fingerprint < $1.fingerprint }
        }
    }

    /// Removes a peer by the fingerprint of its certificate. Does nothing if the database was not paired with it.
    ///
    /// Listeners refuse the peer when it connects the next time. A connection that is open stays open.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func removePairedPeer(fingerprint: String) throws(LoveseatError) {
        try StoredList.paired.change(in: self) { $0.filter { $0.fingerprint != fingerprint } }
    }
}

extension StoredList<PairedPeer> {
    fileprivate static var paired: StoredList<PairedPeer> {
        StoredList(
            key: "paired_peers",
            name: "paired peers",
            json: { peer in
                [
                    "name": .string(peer.name), "given": .bool(peer.isNameGiven),
                    "sha256": .string(peer.fingerprint), "urls": .array(peer.urls.map { .string($0) }),
                ]
            },
            element: { item in
                guard let name = item["name"]?.string, let fingerprint = item["sha256"]?.string else {
                    return nil
                }
                return PairedPeer(
                    name: name,
                    fingerprint: fingerprint,
                    urls: item["urls"]?.items.compactMap(\.string) ?? [],
                    isNameGiven: item["given"]?.bool ?? false
                )
            }
        )
    }
}
