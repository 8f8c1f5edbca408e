import LoveseatModel
import LoveseatStorage

/// Wall clocks are far apart, and are set back.
struct ClockWorld: HistoryWorld {
    unowned let run: SimulationRun

    private static let year: Int64 = 365 * 24 * 3_600_000

    func schedule() {
        // None is ahead of what it was by more than minutes: that would make everything old, and nobody could tell.
        for peer in peers { peer.wall.offset = dice.untidy.pick([0, 0, Self.year, -Self.year, 600_000]) }
        for _ in 0..<dice.untidy.int(2...8) {
            let number = dice.untidy.int(0...1_000)
            let jump = dice.untidy.pick([-Self.year, -600_000, -5_000, 60_000])
            untidyAt(0...20_000) {
                let peer = peers[number % peers.count]
                trace("the clock of \(peer.index) jumps by \(jump)")
                peer.setClock(peer.wall.offset + jump)
            }
        }
        for _ in 0..<dice.untidy.int(1...4) {
            untidyAt(0...20_000) {
                let peer = dice.untidy.pick(peers)
                trace("\(peer.index) forgets old tombstones")
                let removed = try peer.store.removeTombstones(olderThan: 24 * 3_600)
                if removed > 0 {
                    journal.add("peer \(peer.index) forgot \(removed) tombstones of seconds ago")
                }
            }
        }
    }
}
