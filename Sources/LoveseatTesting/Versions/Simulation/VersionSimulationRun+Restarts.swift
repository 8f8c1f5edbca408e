import LoveseatModel
import LoveseatStorage

/// Loveseats that die and start again.
extension VersionSimulationRun {
    /// A Loveseat's process dies and starts again. The system's clock stands at a time that one of its versions has, until the user has
    /// saved a document.
    func restart() {
        let peer = dice.pick(peers.filter { !$0.isHub })
        trace("\(peer.index) dies and starts again")
        for link in open.links where link.own === peer { link.crash() }
        for connection in open.connections where connection.source === peer || connection.target === peer {
            connection.crash(peer)
        }
        do {
            if simulation.fault == .forgetClock { try peer.forgetClock() }
            try peer.reopen()
        } catch { return add("the database of \(peer.index) cannot be opened again: \(error)") }
        saveAtAnEarlierTime(peer)
    }

    private func saveAtAnEarlierTime(_ peer: SimulatedPeer) {
        // A database without versions, or all of whose versions were made while its clock was ahead of the system's, has none of these.
        let times = peer.store.source.map { issued.versions(by: $0).map(\.time) } ?? []
        let read = times.filter { $0 & 0xFFFF == 0 }
        if read.isEmpty { return }
        let milliseconds = (dice.pick(read) + 999_999) / 1_000_000
        let right = peer.wall.offset
        peer.wall.offset += Int64(clamping: milliseconds) - peer.wall.now
        edit("early\(clock.now)", at: peer, Self.saving)
        noteChanges()
        peer.wall.offset = right
    }

    /// The kind of an edit that saves a document.
    private static let saving = 39
}
