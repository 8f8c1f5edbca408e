import LoveseatModel

/// Processes die, and links break.
struct Accidents: HistoryPart {
    unowned let run: SimulationRun

    func crash() {
        let peer = dice.history.pick(peers)
        trace("crash \(peer.index)")
        crash(peer)
    }

    func crash(_ peer: SimulatedPeer) {
        for connection in traffic.connections
        where connection.source === peer || connection.target === peer {
            connection.crash(peer)
        }
        if simulation.wire == nil { return }
        do { try peer.reopen() } catch {
            journal.add("a database cannot be opened again: \(error)")
        }
    }

    func partition() {
        let side = Set(peers.indices.filter { _ in dice.history.chance(0.5) })
        trace("partition \(side.sorted())")
        for connection in traffic.connections
        where side.contains(connection.source.index) != side.contains(connection.target.index) {
            connection.cut()
        }
    }

    /// Crashes a peer and starts it again with less than it had.
    func restart(_ peer: SimulatedPeer, _ start: () throws -> Void) {
        ledger.losingEdits(of: peer) {
            crash(peer)
            journal.attempt("a restart") {
                try start()
                try ExpirationWorld(run: run).purgeExpired(at: peer)
            }
        }
    }
}
