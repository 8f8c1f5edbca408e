public import LoveseatModel

/// Who connects to a listener, as far as it was proved.
public struct PeerIdentity: Hashable, Sendable {
    /// The user name whose password was right; nil if none was asked for.
    public let username: String?
    /// The certificates that the peer showed and whose key it has, its own first; empty if none were asked for.
    public let certificates: [TLSCertificate]
    /// Its network address, without the port; empty for transports that have none.
    public let address: String
    /// The name that the peer's rights may go by: its user name, the name that the listener's owner gave it when it was paired,
    /// or the common name of a certificate under an authority that the owner trusts. Nil if the peer merely names itself.
    public let name: String?

    /// Creates an identity: for an app's own authenticator, for a transport whose peer is known, or for tests of an access
    /// policy. `name` is the user name unless it is given.
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
