import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Histories in which some links speak another wire, whose sessions and servers use the databases themselves.
extension SimulationRun {
    /// The worlds that the other wire takes part in.
    static let wireWorlds: Set<SimulatedWorld> = [.network, .power, .verdicts]

    func drawWires() {
        if simulation.wire == nil { return }
        foreignEdges = Set(edges.filter { _ in wireDice.chance(0.7) })
        trace("other wire: \(edges.filter { foreignEdges.contains($0) }.map { "\($0.source)>\($0.target)" })")
    }

    func scheduleWires() {
        if simulation.wire == nil { return }
        // Each of these replications ends by itself.
        for edge in edges where foreignEdges.contains(edge) {
            for _ in 0..<wireDice.int(2...8) {
                clock.schedule(after: wireDice.int(0...20_000)) { [unowned self] in connect(edge) }
            }
        }
    }

    /// Tells the oracle what databases have come to know, whoever wrote it.
    func noteChanges() {
        if simulation.wire == nil { return }
        do {
            for peer in peers {
                let (documents, isDurable) = try peer.takeChanges()
                for (collection, id) in documents {
                    guard let tree = peer.tree(id, in: collection) else { continue }
                    oracle.note(peer.index, "\(collection)/\(id)", tree)
                }
                if isDurable { peer.reachedDisk(oracle) }
            }
        } catch { report.problems.append("a database cannot be read: \(error)") }
    }

    /// Compares leaves, and what equal revisions say.
    func compareWires() throws {
        if mayDisagree { return }
        for collection in peers[0].collections.indices {
            var contents: [String: (peer: Int, body: JSONText)] = [:]
            for peer in peers {
                for (revision, body) in try peer.contents(in: collection).sorted(by: { $0.key < $1.key }) {
                    if let other = contents[revision], other.body != body {
                        report.problems.append(
                            "\(collection)/\(revision) has two contents: peer \(other.peer) \(other.body), peer \(peer.index) \(body)"
                        )
                    }
                    contents[revision] = (peer.index, body)
                }
            }
            let ids = try Set(peers.flatMap { try $0.state(of: collection).keys }).sorted()
            for id in ids {
                let first = try peers[0].leaves(id, in: collection)
                for peer in peers.dropFirst() where try peer.leaves(id, in: collection) != first {
                    let leaves = try first + peer.leaves(id, in: collection)
                    // A peer that lacks a tombstone cannot pass it on either.
                    if leaves.allSatisfy({ $0.hasSuffix(" deleted") }),
                        peers.contains(where: \.mayLackTombstones)
                    {
                        continue
                    }
                    report.problems.append(
                        "\(collection)/\(id): peer 0 has the leaves \(first), peer \(peer.index) \(try peer.leaves(id, in: collection))"
                    )
                }
            }
        }
    }
}
