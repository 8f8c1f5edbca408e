/// The forms of the protocol that this build speaks.
package enum ReplicationProtocol: String, Hashable, Sendable {
    /// Revisions have versions (version-vectors.md).
    case mobile4 = "BLIP_3+CBMobile_4"
    case mobile3 = "BLIP_3+CBMobile_3"
    case mobile2 = "BLIP_3+CBMobile_2"

    /// The forms in which revisions are named by trees, the newer one first.
    package static let trees: [ReplicationProtocol] = [.mobile3, .mobile2]
    /// All forms, in the order in which an active peer offers them. A Sync Gateway 4 takes the first one: trees carry all that a gateway has
    /// for peers with trees, and Couchbase Lite 4 takes versions wherever they stand (docs/decisions/0015).
    package static let all: [ReplicationProtocol] = [.mobile3, .mobile4, .mobile2]
    /// All forms, in the order of a peer that speaks of versions with a Sync Gateway 4. Simulated ones do.
    package static let versionsFirst: [ReplicationProtocol] = [.mobile4, .mobile3, .mobile2]
}
