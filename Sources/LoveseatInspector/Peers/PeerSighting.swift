import LoveseatModel

/// The state of a connection with a peer at one moment.
package struct PeerSighting: Hashable, Sendable {
    /// The side that has connected.
    package enum Direction: String, Sendable {
        /// The peer has connected to this database.
        case incoming
        /// This database has connected to the peer.
        case outgoing
    }

    package enum Activity: String, Sendable { case connecting, busy, idle, offline, stopped }

    /// The key that distinguishes the connection from others of this process.
    package let key: String
    package let direction: Direction
    /// `BLIP` or `CouchDB`.
    package let wire: String
    /// The peer's address, or its URL.
    package let address: String
    package var name: String?
    package var user: String?
    /// The common name and SHA-256 fingerprint of the certificate that the peer has shown.
    package var certificate: String?
    package var fingerprint: String?
    package var activity: Activity
    /// The work in approximate bytes, as far as it is known: done, and all.
    package var completed: UInt64 = 0
    package var total: UInt64 = 0
    /// Documents that the peer was sent, and that it sent.
    package var sent: UInt64 = 0
    package var received: UInt64 = 0
    /// Documents that could not be replicated, where they are only counted.
    package var failures: UInt64 = 0
    package var error: String?
    /// When it connected, in milliseconds since 1970, if that is known.
    package var since: Int64?

    package init(
        key: String,
        direction: Direction,
        wire: String,
        address: String,
        activity: Activity
    ) {
        (self.key, self.direction, self.wire) = (key, direction, wire)
        (self.address, self.activity) = (address, activity)
    }

    /// The peer itself, whichever connection it uses.
    var identity: String {
        let host = direction == .outgoing ? address : Self.host(of: address)
        return [direction.rawValue, wire, fingerprint ?? user ?? "", fingerprint == nil ? host : ""].joined(
            separator: " "
        )
    }

    /// An address without its port, which differs with each connection.
    private static func host(of address: String) -> String {
        guard let colon = address.lastIndex(of: ":"), Int(address[address.index(after: colon)...]) != nil,
            !address[..<colon].contains(":") || address[..<colon].hasSuffix("]")
        else { return address }
        return String(address[..<colon])
    }

    /// The peer's name for people.
    var title: String { name ?? user ?? certificate ?? address }
}

extension String {
    /// A URL without a user name and password.
    package var withoutCredentials: String {
        guard let scheme = firstRange(of: "://") else { return self }
        let authority = self[scheme.upperBound...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return self }
        return String(self[..<scheme.upperBound] + self[index(after: at)...])
    }
}
