package import LoveseatCore

/// The access that a simulated peer grants to another one, which logs in as a user.
package struct SimulatedAccess: Sendable {
    package let user: String
    /// Decides about all users.
    package let policy: AccessPolicy

    /// As BLIP's wire asks for it.
    var peerAccess: PeerAccess { PeerAccess(peer: PeerIdentity(username: user), policy: policy) }
}
