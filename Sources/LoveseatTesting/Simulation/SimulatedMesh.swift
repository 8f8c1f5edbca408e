/// One peer connects to another one.
struct Edge: Hashable {
    let source: Int
    let target: Int

    init(_ source: Int, _ target: Int) { (self.source, self.target) = (source, target) }
}

/// The peers of a history, and who connects to whom.
final class SimulatedMesh {
    var peers: [SimulatedPeer] = []
    /// Peers beside the others, which see only a part of what their host has.
    var guests: [SimulatedGuest] = []
    var edges: [Edge] = []
    /// The links that speak another wire.
    var foreignEdges: Set<Edge> = []
    /// Under which address a peer knows another one, where that is not the first one.
    var addresses: [Edge: String] = [:]
    let hubs: Int
    /// Whether all peers merge conflicts.
    var merges = false
    /// The verdicts of the peers' resolvers, by the peers' numbers; empty if no peer has a resolver of its own.
    var verdicts: [Int: SimulatedVerdict] = [:]
    /// The peers that were put back to a backup.
    var restored: Set<Int> = []

    init(hubs: Int) { self.hubs = hubs }

    /// The peers that do what people do.
    var users: [SimulatedPeer] { peers.filter { !$0.isHub && !isGuest($0) } }

    func isGuest(_ peer: SimulatedPeer) -> Bool { guests.contains { $0.peer === peer } }

    /// Whether a peer gives documents away that it may have to take back, or has such documents. The records of that are forgotten with the
    /// commits that a power loss takes (docs/decisions/0006-lost-commits.md).
    func sharesGrants(_ peer: SimulatedPeer) -> Bool {
        guests.contains { $0.isRestricted && ($0.peer === peer || $0.host == peer.index) }
    }

    /// Whether peers may come to different ends, as they do if their resolvers contradict each other.
    var mayDisagree: Bool {
        let kinds = Set(verdicts.values)
        return kinds.count > 1 || kinds.contains { !$0.isSymmetric }
    }

    /// Under a new address a host cannot take back what it gave under the old one: a peer that was never known to have a
    /// document does not take it away.
    func movable(_ edges: [Edge]) -> [Edge] {
        edges.filter { edge in !guests.contains { $0.isRestricted && $0.peer.index == edge.source } }
    }
}
