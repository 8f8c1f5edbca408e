public import LoveseatModel

/// The identity of a peer that connects to a listener, as far as it was proved.
public struct PeerIdentity: Hashable, Sendable {
    /// The user name, if the peer proved it with a password or token; otherwise nil.
    public let username: String?
    /// The peer's certificates, its own first; empty if the listener asks for none. The peer proved that it has the key.
    public let certificates: [TLSCertificate]
    /// The peer's network address without the port; empty for transports that have none.
    public let address: String
    /// The name by which an ``AccessPolicy`` can grant rights: the user name, the name that the listener's owner gave the peer when
    /// pairing, or the common name of a certificate under an authority that the owner trusts. Nil if the peer only names itself.
    public let name: String?

    /// Creates an identity: for an authenticator of your own, for a transport whose peer is known, or to test an access
    /// policy. A nil `name` means the user name.
    public init(
        username: String? = nil,
        certificates: [TLSCertificate] = [],
        address: String = "",
        name: String? = nil
    ) {
        self.username = username
        self.certificates = certificates
        self.address = address
        self.name = name ?? username
    }
}
