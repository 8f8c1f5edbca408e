/// The two forms of the protocol that this build speaks.
package enum ReplicationProtocol: String, Hashable, Sendable, CaseIterable {
    case mobile3 = "BLIP_3+CBMobile_3"
    case mobile2 = "BLIP_3+CBMobile_2"
}
