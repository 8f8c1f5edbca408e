import LoveseatModel

/// Replications that go on by themselves.
struct NetworkWorld: HistoryWorld {
    unowned let run: SimulationRun

    /// Lets a replication connect again by itself.
    func persist(_ plan: inout SimulatedConnection.Plan) {
        if worlds.isDisjoint(with: [.network, .power]) || !dice.worlds.chance(0.6) { return }
        if worlds.contains(.power) { plan.isContinuous = plan.documentIDs == nil }
        plan.attempts = plan.isContinuous ? nil : 10
        plan.connectDelay = dice.worlds.pick([0...0, 0...500])
    }

    func schedule() {
        for _ in 0..<dice.worlds.int(1...4) {
            let (number, length) = (dice.worlds.int(0...1_000), dice.worlds.int(1...5_000))
            at(0...20_000) {
                if traffic.connections.isEmpty { return }
                let connection = traffic.connections[number % traffic.connections.count]
                trace("suspend \(connection.source.index)>\(connection.target.index) for \(length)")
                connection.suspend(for: length)
            }
        }
        for _ in 0..<dice.worlds.int(1...3) {
            let (peer, length) = (dice.worlds.pick(peers), dice.worlds.int(1...6_000))
            at(0...20_000) {
                trace("server of \(peer.index) restarts after \(length)")
                peer.restartServer(after: length, clock, run.runtime.runtime())
            }
        }
    }
}
