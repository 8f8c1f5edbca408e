/// The forms of the protocol that this build speaks.
package enum ReplicationProtocol: String, Hashable, Sendable {
    /// Revisions have versions (version-vectors.md).
    case mobile4 = "BLIP_3+CBMobile_4"
    case mobile3 = "BLIP_3+CBMobile_3"
    case mobile2 = "BLIP_3+CBMobile_2"

    /// The forms in which revisions are named by trees, the newer one first.
    package static let trees: [ReplicationProtocol] = [.mobile3, .mobile2]
}
