import LoveseatModel

/// Power losses: a peer goes back to what had reached its disk.
struct PowerWorld: HistoryWorld {
    unowned let run: SimulationRun

    /// Commits reach the disk now and then, and some peers lose those that have not.
    func schedule() {
        var power = SeededGenerator(seed: simulation.seed ^ 0x706F_7765_72)
        let isOften = worlds.contains(.power)
        if !simulation.losesPower { return }
        if !power.chance(0.5), !isOften { return }
        let losesHubs = mesh.hubs > 0 && power.chance(0.5)
        let losers = peers.filter { $0.isHub == losesHubs && !mesh.sharesGrants($0) }
        if losers.isEmpty { return }
        for peer in losers {
            sync(peer)
            for _ in 0..<power.int(isOften ? 20...40 : 0...3) {
                clock.schedule(after: power.int(0...20_000)) { sync(peer) }
            }
        }
        for _ in 0..<power.int(1...4) {
            let number = power.int(0...1_000)
            clock.schedule(after: power.int(0...22_000)) {
                // Most of what can go wrong goes wrong in the middle of a session.
                let busy = traffic.connections.flatMap { [$0.target, $0.source] }
                    .filter { $0.isHub == losesHubs && !mesh.sharesGrants($0) }
                losePower(busy.isEmpty ? losers[number % losers.count] : busy[number % busy.count])
            }
        }
    }

    /// Loses commits that were acknowledged just now, and that no checkpoint covers.
    func pushed(over connection: SimulatedConnection) {
        let peer = connection.target
        if !worlds.contains(.power) || peer.durable == nil || !dice.worlds.chance(0.2) { return }
        clock.schedule(after: dice.worlds.int(0...300)) {
            if !run.isQuiescing { losePower(peer) }
        }
    }

    private func sync(_ peer: SimulatedPeer) {
        trace("sync \(peer.index)")
        journal.attempt("a sync") { try peer.sync(oracle) }
    }

    private func losePower(_ peer: SimulatedPeer) {
        trace("power loss \(peer.index)")
        accidents.restart(peer) { try peer.losePower(oracle) }
    }
}
