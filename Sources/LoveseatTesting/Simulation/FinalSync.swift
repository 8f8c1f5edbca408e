import LoveseatModel
import LoveseatReplication

/// How a history ends: everybody syncs until nothing changes, and then all is compared.
struct FinalSync: HistoryPart {
    unowned let run: SimulationRun

    /// Everybody syncs with everybody reachable, over good links, until a whole round changes nothing.
    func quiesce() throws {
        for connection in traffic.connections { connection.abandon() }
        try run.runUntilQuiet(limit: 1_000_000)
        for peer in peers { try ExpirationWorld(run: run).purgeExpired(at: peer) }
        if !worlds.isDisjoint(with: [.collections, .filters, .access, .expirations]) {
            try syncAll(resets: false)
            try GuestComparison(run: run).compareWithoutReset()
        }
        try syncAll(resets: true)
        VersionChecks(run: run).checkVersions()
        let wires = WireComparison(run: run)
        try wires.compareContents()
        if simulation.wire != nil { try wires.compareWires() }
        if journal.report.problems.isEmpty || simulation.isPlanted { try FinalComparison(run: run).compare() }
    }

    /// `resets`: whether peers begin anew that may lack documents which a checkpoint covers.
    private func syncAll(resets: Bool) throws {
        var rounds = 0
        while journal.report.problems.isEmpty {
            let before = try held()
            // Not in step: among several hubs a fixed order can repeat itself for ever.
            for edge in mesh.hubs == 0 ? mesh.edges : mesh.edges.shuffled(using: &dice.extras) {
                var plan = SimulatedConnection.Plan()
                if resets, rounds == 0 {
                    // Documents that a guest may have now do not come by themselves: its checkpoint is past them.
                    let isRestricted = mesh.guests.contains {
                        $0.isRestricted && $0.peer.index == edge.source
                    }
                    plan.reset = ledger.hasPurged ? .checkpointAndMarks : isRestricted ? .checkpoint : .none
                }
                plan.link.latency = 0...1
                plan.link.capacity = rounds % 2 == 0 ? 1 << 20 : 1
                (plan.activeDeltas, plan.passiveDeltas) = (rounds % 2 == 0, true)
                let connection = traffic.open(edge, plan)
                try run.runUntilQuiet(limit: 1_000_000)
                if let connection { check(connection) }
            }
            rounds += 1
            if try held() == before, rounds > 1 { break }
            // Contradictions come back a few times before they are given up.
            if rounds > 3 * peers.count + (worlds.contains(.verdicts) ? 50 : 5) {
                journal.add("no rest after \(rounds) rounds")
                break
            }
        }
    }

    /// The documents of all peers.
    private func held() throws -> [[SimulatedPeer.Holding]] {
        try peers.map { peer in
            try peer.collections.indices.map {
                try peer.holding(in: $0, withLeaves: simulation.wire != nil)
            }
        }
    }

    private func check(_ connection: SimulatedConnection) {
        let name = "\(connection.source.index)>\(connection.target.index)"
        if connection.isOpen { journal.add("session \(name) does not end") }
        let progress = connection.progress
        if progress.completed != progress.total {
            journal.add("session \(name) ended at \(progress.completed) of \(progress.total)")
        }
    }
}
