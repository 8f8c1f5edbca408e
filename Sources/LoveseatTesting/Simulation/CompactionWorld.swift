import LoveseatModel
import LoveseatStorage

/// Databases are compacted at any moment.
struct CompactionWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.untidy.int(5...30) {
            let number = dice.untidy.int(0...1_000)
            untidyAt(0...22_000) {
                let busy = traffic.connections.flatMap { [$0.target, $0.source] }
                let peer = busy.isEmpty ? peers[number % peers.count] : busy[number % busy.count]
                trace("\(peer.index) is compacted")
                _ = try peer.store.compact()
                peer.reachedDisk(oracle)
                if simulation.fault != .compactUnheldBlobs { return }
                let referenced = try peer.store.read { try $0.referencedBlobs() }
                for digest in try peer.store.blobs.all() where !referenced.contains(digest) {
                    peer.removeBlob(digest)
                }
            }
        }
    }
}
