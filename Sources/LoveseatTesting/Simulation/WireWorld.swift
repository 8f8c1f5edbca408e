import LoveseatModel
import LoveseatStorage

/// Some links speak another wire, whose sessions and servers use the databases themselves.
struct WireWorld: HistoryWorld {
    unowned let run: SimulationRun

    /// The worlds that the other wire takes part in.
    static let worlds = Set<SimulatedWorld>(
        [.network, .power, .verdicts] + SimulatedWorld.untidy + SimulatedWorld.ofOtherWires
    )

    func schedule() {
        if simulation.wire == nil { return }
        scheduleBackups()
        // Each of these replications ends by itself.
        for edge in mesh.edges where mesh.foreignEdges.contains(edge) {
            for _ in 0..<dice.wire.int(2...8) {
                clock.schedule(after: dice.wire.int(0...20_000)) { traffic.connect(edge) }
            }
        }
    }

    // MARK: Backups

    /// Puts peers back to what they were some time ago.
    func scheduleBackups() {
        if !simulation.restoresBackups { return }
        for _ in 0..<dice.wire.int(1...3) {
            let peer = dice.wire.int(0...journal.report.peers - 1)
            let (time, delay) = (dice.wire.int(0...18_000), dice.wire.int(500...6_000))
            clock.schedule(after: time) {
                journal.attempt("a backup") {
                    let (store, knowledge) = (try peers[peer].store.snapshot(), oracle.knowledge(of: peer))
                    clock.schedule(after: delay) { putBack(peers[peer], store, knowledge) }
                }
            }
        }
    }

    private func putBack(_ peer: SimulatedPeer, _ store: StoreSnapshot, _ knowledge: EditOracle.Knowledge) {
        if run.isQuiescing { return }
        trace("backup \(peer.index)")
        accidents.restart(peer) {
            try peer.reopen(store)
            oracle.forgot(peer.index, allBut: knowledge)
            if peer.durable != nil { try peer.sync(oracle) }
        }
    }
}
