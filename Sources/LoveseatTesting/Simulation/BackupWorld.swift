import LoveseatModel
import LoveseatStorage

/// Peers are put back to backups of themselves.
struct BackupWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.untidy.int(1...3) {
            let (number, delay) = (dice.untidy.int(0...1_000), dice.untidy.int(500...6_000))
            untidyAt(0...18_000) {
                // A host's records of what it gave away are forgotten with the rest (docs/decisions/0006-lost-commits.md).
                let peers = peers.filter { !mesh.sharesGrants($0) && $0.foreign == nil }
                if peers.isEmpty { return }
                let peer = peers[number % peers.count]
                let backup = try peer.backUp(oracle)
                trace("\(peer.index) is backed up")
                clock.schedule(after: delay) { putBack(peer, backup) }
            }
        }
    }

    func putBack(_ peer: SimulatedPeer, _ backup: SimulatedBackup) {
        if run.isQuiescing { return }
        let isCopy = dice.untidy.chance(0.5)
        trace("\(peer.index) is put back\(isCopy ? " into new files" : "")")
        mesh.restored.insert(peer.index)
        accidents.restart(peer) { try peer.restore(backup, as: isCopy ? newIdentity() : nil, oracle) }
    }

    func newIdentity() -> [UInt8] { dice.untidy.bytes(16) }
}
