import LoveseatModel
import LoveseatStorage

/// Collections are deleted and made anew.
struct RemakeWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.worlds.int(1...3) {
            at(0...20_000) {
                let peer = dice.worlds.pick(peers.filter { !mesh.isGuest($0) })
                try remake(peer, dice.worlds.int(0...peer.collections.count - 1))
            }
        }
    }

    private func remake(_ peer: SimulatedPeer, _ collection: Int) throws {
        trace("\(peer.index) makes collection \(collection) anew")
        if dice.worlds.chance(0.5) {
            accidents.crash(peer)
        } else {
            for connection in traffic.connections
            where connection.source === peer || connection.target === peer {
                traffic.disturbed.insert(ObjectIdentifier(connection))
            }
        }
        let prefix = "\(collection)/"
        for id in try peer.state(of: collection).keys.sorted() {
            ledger.noteRemoval(prefix + id, at: peer)
        }
        ledger.hasPurged = true
        ledger.freshDocuments = ledger.freshDocuments.filter { !$0.key.hasPrefix(prefix) }
        try peer.remake(collection, restarts: simulation.fault == .restartSequences)
        for _ in 0..<dice.worlds.int(1...4) {
            let id = "fresh\(dice.worlds.int(0...1_000_000))"
            let body = JSONText(canonical: [
                "n": JSONValue(dice.worlds.int(0...99)), "by": JSONValue(peer.index),
            ])
            _ = try peer.store.write {
                try $0.save(
                    id,
                    in: peer.collections[collection],
                    body: body,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            ledger.noteFresh(prefix + id, peer, body)
        }
    }
}
