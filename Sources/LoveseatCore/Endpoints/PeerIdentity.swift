public import LoveseatModel

/// Who connects to a listener, as far as it was proved.
public struct PeerIdentity: Hashable, Sendable {
    /// The user name whose password was right; nil if none was asked for.
    public let username: String?
    /// The certificates that the peer showed and whose key it has, its own first; empty if none were asked for.
    public let certificates: [TLSCertificate]
    /// Its network address, without the port; empty for transports that have none.
    public let address: String

    /// Makes one of its parts, for tests of an access policy.
    public init(username: String? = nil, certificates: [TLSCertificate] = [], address: String = "") {
        self.username = username
        self.certificates = certificates
        self.address = address
    }
}
