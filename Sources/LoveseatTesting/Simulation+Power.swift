import LoveseatModel
import LoveseatStorage

/// Power losses: a peer goes back to what had reached its disk.
extension SimulationRun {
    /// Commits reach the disk now and then, and some peers lose those that have not.
    func schedulePowerLosses() {
        var power = SeededGenerator(seed: simulation.seed ^ 0x706F_7765_72)
        let isOften = worlds.contains(.power)
        if !simulation.losesPower { return }
        if !power.chance(0.5), !isOften { return }
        let losesHubs = hubs > 0 && power.chance(0.5)
        let losers = peers.filter { $0.isHub == losesHubs && !sharesGrants($0) }
        if losers.isEmpty { return }
        for peer in losers {
            sync(peer)
            for _ in 0..<power.int(isOften ? 20...40 : 0...3) {
                clock.schedule(after: power.int(0...20_000)) { [unowned self] in sync(peer) }
            }
        }
        for _ in 0..<power.int(1...4) {
            let number = power.int(0...1_000)
            clock.schedule(after: power.int(0...22_000)) { [unowned self] in
                // Most of what can go wrong goes wrong in the middle of a session.
                let busy = connections.flatMap { [$0.target, $0.source] }
                    .filter { $0.isHub == losesHubs && !sharesGrants($0) }
                losePower(busy.isEmpty ? losers[number % losers.count] : busy[number % busy.count])
            }
        }
    }

    /// Loses commits that were acknowledged just now, and that no checkpoint covers.
    func pushed(over connection: SimulatedConnection) {
        let peer = connection.target
        if !worlds.contains(.power) || peer.durable == nil || !worldDice.chance(0.2) { return }
        clock.schedule(after: worldDice.int(0...300)) { [unowned self] in
            if !isQuiescing { losePower(peer) }
        }
    }

    private func sync(_ peer: SimulatedPeer) {
        trace("sync \(peer.index)")
        do { try peer.sync(oracle) } catch { report.problems.append("a sync failed: \(error)") }
    }

    private func losePower(_ peer: SimulatedPeer) {
        trace("power loss \(peer.index)")
        restart(peer) { try peer.losePower(oracle) }
    }

    /// Crashes a peer and starts it again with less than it had.
    func restart(_ peer: SimulatedPeer, _ start: () throws -> Void) {
        let before = soleRevisions(of: peer)
        crash(peer)
        do {
            try start()
            try purgeExpired(at: peer)
        } catch { report.problems.append("a restart failed: \(error)") }
        let after = soleRevisions(of: peer)
        // A second deletion of a deleted document is lost too, although nothing looks different.
        for (key, revision) in before where after[key] != revision {
            soleEditors[key] = .some(nil)
            freshDocuments[key] = nil
        }
    }

    /// The current revisions, at a peer, of the documents that nobody else edited.
    private func soleRevisions(of peer: SimulatedPeer) -> [String: RevisionID?] {
        var revisions: [String: RevisionID?] = [:]
        for (key, editor) in soleEditors where editor?.peer == peer.index {
            guard let collection = Int(key.prefix(1)) else { continue }
            let current = peer.tree(String(key.dropFirst(2)), in: collection)?.current
            revisions.updateValue(current?.id, forKey: key)
        }
        return revisions
    }
}
