public import LoveseatCore
public import LoveseatDiscoveryCore
import LoveseatModel

/// A peer that is advertised on this network.
///
/// Anybody on the network can advertise anything. The properties help to find and to show a peer; trust comes from a pin or from pairing
/// only.
public struct DiscoveredPeer: Hashable, Sendable, Identifiable {
    /// The ``peerID``, with ` c` for a listener of CouchDB's wire; or for a peer without one its name and type.
    public var id: String { found.key }
    /// The ID of the peer's database, which stays when its name or address changes: 32 lower-case hexadecimal digits. Nil for apps
    /// that advertise none.
    public var peerID: String? { found.peerID }
    /// The name of the service, without characters that control a terminal or the direction of text.
    public var name: String { DiscoveredPeer.printable(service.instance) }
    /// The type of the service, such as `_loveseat._tcp`.
    public var type: String { service.type.description }
    /// The domain, `local`.
    public var domain: String { "local" }
    /// The names of the interfaces on which the peer was seen when this value was made.
    public let interfaces: [String]
    /// The TXT record.
    public var text: ServiceText { found.text }
    /// The name of the database: the key `path`, without a `/` at its beginning. Nil if there is none.
    public var path: String? {
        text["path"].map { String($0.drop { $0 == "/" }) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    /// Whether the listener says that it uses TLS; nil if it does not say.
    public var usesTLS: Bool? { text["tls"].map { $0 == "1" } }
    /// The first half of the certificate's SHA-256 fingerprint, as the peer says; see ``mayBe(_:)``.
    public var fingerprintHint: String? { text["fp"]?.lowercased() }
    /// The protocols that the listener says it speaks: `b2`, `b3` and `b4` are versions of Couchbase's, `c` is CouchDB's.
    public var protocols: [String] { text["v"]?.split(separator: ",").map(String.init) ?? [] }
    /// Whether the listener waits for a pairing code.
    public var isPairing: Bool { text["pr"] == "1" }
    /// A user name and password in the keys `u` and `p`, as an article of 2012 proposed for TouchDB. Everybody on the network can read
    /// them, and anybody can have put them there; Loveseat neither uses nor advertises them.
    public var advertisedCredentials: BasicAuthenticator? {
        guard let user = text["u"], let password = text["p"] else { return nil }
        return BasicAuthenticator(username: user, password: password)
    }

    let found: FoundPeer
    let origin: DiscoveryOrigin
    private let service: ServiceName

    init?(_ found: FoundPeer, _ origin: DiscoveryOrigin, interfaces: [UInt32: String]) {
        guard let first = found.services.first else { return nil }
        self.found = found
        self.origin = origin
        service = first
        self.interfaces = Set(found.links.map { interfaces[$0.interface] ?? "\($0.interface)" }).sorted()
    }

    /// Whether this may be a peer that the database was paired with: its certificate's fingerprint begins as the peer says. Only a
    /// connection proves it.
    public func mayBe(_ peer: PairedPeer) -> Bool {
        fingerprintHint.map { $0.utf8.count == 32 && peer.fingerprint.hasPrefix($0) } ?? false
    }

    static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.filter { scalar in
                    switch scalar.value {
                    case 0..<0x20, 0x7F...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: false
                    default: true
                    }
                }
            )
        )
    }
}

/// An event of a peer: it is there, changes, or is gone.
public enum PeerEvent: Hashable, Sendable {
    /// The peer is there.
    case found(DiscoveredPeer)
    /// Its name or its TXT record changed.
    case changed(DiscoveredPeer)
    /// The peer is no longer there: it said so, or it has not answered, and a second has passed.
    case gone(DiscoveredPeer)
}
