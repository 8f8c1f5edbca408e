public import LoveseatModel
import LoveseatStorage

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
    private static let pairings = "paired_peers"

    /// Returns the peers that this database was paired with, in order of their fingerprints.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `corruptData` if the list is damaged; an error of the disk.
    public func pairedPeers() throws(LoveseatError) -> [PairedPeer] {
        let store = try store
        return try DocumentStore.wrapping {
            try store.readRows { try Self.peers(in: $0.info(Self.pairings)) }
        }
    }

    /// Adds a peer, or replaces the one with the same fingerprint. Pairing does this itself.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func addPairedPeer(_ peer: PairedPeer) throws(LoveseatError) {
        try changePairings { $0.filter { $0.fingerprint != peer.fingerprint } + [peer] }
    }

    /// Removes a peer by the fingerprint of its certificate. Does nothing if the database was not paired with it.
    ///
    /// Listeners refuse the peer when it connects the next time. A connection that is open stays open.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`; `busy`; `notWriteable`; `corruptData` if the list is damaged; an error of the disk.
    public func removePairedPeer(fingerprint: String) throws(LoveseatError) {
        try changePairings { $0.filter { $0.fingerprint != fingerprint } }
    }

    private func changePairings(_ change: ([PairedPeer]) -> [PairedPeer]) throws(LoveseatError) {
        let store = try store
        try DocumentStore.wrapping {
            try store.write { transaction in
                let peers = change(try Self.peers(in: transaction.info(Self.pairings)))
                let json = peers.sorted { $0.fingerprint < $1.fingerprint }.map { peer -> JSONValue in
                    [
                        "name": .string(peer.name), "given": .bool(peer.isNameGiven),
                        "sha256": .string(peer.fingerprint),
                        "urls": .array(peer.urls.map { .string($0) }),
                    ]
                }
                try transaction.setInfo(Self.pairings, JSONValue.array(json).description)
            }
        }
    }

    private static func peers(in text: String?) throws(LoveseatError) -> [PairedPeer] {
        guard let text else { return [] }
        guard let json = try? JSONElement(parsing: Array(text.utf8)) else {
            throw LoveseatError(
                .corruptData,
                "the list of paired peers in the database is damaged: restore a backup, or replicate into a new database"
            )
        }
        return json.items.compactMap { item in
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
    }
}
