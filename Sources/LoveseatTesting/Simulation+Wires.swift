import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Histories in which some links speak another wire, whose sessions and servers use the databases themselves.
extension SimulationRun {
    /// The worlds that the other wire takes part in.
    static let wireWorlds = Set<SimulatedWorld>([.network, .power, .verdicts] + SimulatedWorld.untidy)

    func drawWires() {
        if simulation.wire == nil { return }
        // A hub speaks Couchbase's protocol only: over another wire, it would be one more Loveseat.
        foreignEdges = Set(edges.filter { wireDice.chance(0.7) && !peers[$0.target].isHub })
        trace("other wire: \(edges.filter { foreignEdges.contains($0) }.map { "\($0.source)>\($0.target)" })")
    }

    func scheduleWires() {
        if simulation.wire == nil { return }
        scheduleBackups()
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
                let (documents, isDurable) = try peer.drainChanges()
                for (collection, id) in documents {
                    guard let tree = peer.tree(id, in: collection) else { continue }
                    oracle.note(peer.index, "\(collection)/\(id)", tree)
                }
                if isDurable { peer.reachedDisk(oracle) }
            }
        } catch { report.problems.append("a database cannot be read: \(error)") }
    }

    /// Whether somebody on the way refused a request, which ends a session: it is not for the client to try again.
    func isCaused(_ failure: LoveseatError, _ connection: SimulatedConnection) -> Bool {
        connection.plan.httpFaults > 0 && [10_401, 10_404].contains(failure.code.value)
    }

    /// Checks that equal revisions say the same, attachments included, whatever was decided about them.
    func compareContents() throws {
        if !report.problems.isEmpty, !simulation.isPlanted { return }
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
        }
    }

    /// Compares leaves.
    func compareWires() throws {
        if mayDisagree || (!report.problems.isEmpty && !simulation.isPlanted) { return }
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
                    if simulation.isVerbose { account(of: id, in: collection) }
                    report.problems.append(
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

    // MARK: Backups

    /// Puts peers back to what they were some time ago.
    func scheduleBackups() {
        if !simulation.restoresBackups { return }
        for _ in 0..<wireDice.int(1...3) {
            let peer = wireDice.int(0...report.peers - 1)
            let (time, delay) = (wireDice.int(0...18_000), wireDice.int(500...6_000))
            clock.schedule(after: time) { [unowned self] in
                do {
                    let (store, knowledge) = (try peers[peer].store.snapshot(), oracle.knowledge(of: peer))
                    clock.schedule(after: delay) { [unowned self] in putBack(peers[peer], store, knowledge) }
                } catch { report.problems.append("a backup failed: \(error)") }
            }
        }
    }

    private func putBack(_ peer: SimulatedPeer, _ store: StoreSnapshot, _ knowledge: EditOracle.Knowledge) {
        if isQuiescing { return }
        trace("backup \(peer.index)")
        restart(peer) {
            try peer.reopen(store)
            oracle.forgot(peer.index, allBut: knowledge)
            if peer.durable != nil { try peer.sync(oracle) }
        }
    }
}
