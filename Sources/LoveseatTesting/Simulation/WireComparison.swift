import LoveseatModel
import LoveseatStorage

/// Compares peers at the end of a history in which links speak another wire.
struct WireComparison: HistoryPart {
    unowned let run: SimulationRun

    /// Checks that equal revisions say the same, attachments included, whatever was decided about them.
    func compareContents() throws {
        if !journal.report.problems.isEmpty, !simulation.isPlanted { return }
        for collection in peers[0].collections.indices {
            var contents: [String: (peer: Int, body: JSONText)] = [:]
            for peer in peers {
                for (revision, body) in try peer.contents(in: collection).sorted(by: { $0.key < $1.key }) {
                    if let other = contents[revision], other.body != body {
                        journal.add(
                            "\(collection)/\(revision) has two contents: peer \(other.peer) \(other.body), peer \(peer.index) \(body)"
                        )
                    }
                    contents[revision] = (peer.index, body)
                }
            }
        }
    }

    /// Compares leaves.
    func compareWires() throws {
        if mesh.mayDisagree || (!journal.report.problems.isEmpty && !simulation.isPlanted) { return }
        let peers = peers.filter { !mesh.isGuest($0) }
        for collection in peers[0].collections.indices {
            let ids = try Set(peers.flatMap { try $0.state(of: collection).keys }).sorted()
            for id in ids {
                let first = try peers[0].leaves(id, in: collection).sorted()
                for peer in peers.dropFirst() where try peer.leaves(id, in: collection).sorted() != first {
                    let leaves = try first + peer.leaves(id, in: collection)
                    // A peer that lacks a tombstone cannot pass it on either.
                    if leaves.allSatisfy({ $0.hasSuffix(" deleted") }),
                        peers.contains(where: \.mayLackTombstones)
                    {
                        continue
                    }
                    if journal.isVerbose { account(of: id, in: collection) }
                    journal.add(
                        "\(collection)/\(id): peer 0 has the leaves \(first), peer \(peer.index) \(try peer.leaves(id, in: collection))"
                    )
                }
            }
        }
    }

    private func account(of id: String, in collection: Int) {
        print(oracle.account(of: "\(collection)/\(id)"))
        for peer in peers {
            print("peer \(peer.index) knows", peer.tree(id, in: collection)?.description ?? "nothing")
        }
    }
}
