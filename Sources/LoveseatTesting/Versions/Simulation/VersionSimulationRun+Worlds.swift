import LoveseatModel
import LoveseatStorage

/// Events that a history has only if they are asked for.
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
        for link in mesh.gateway?.traffic.links ?? [] where link.client.peer === peer { link.crash() }
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
        peer.wall.at(Int64(clamping: milliseconds)) {
            edit("early\(clock.now)", at: peer, Self.saving)
            noteChanges()
        }
    }

    /// A Loveseat and a peer of Couchbase Lite edit a document at one time. As far as their clocks have seen no later one, the versions have that time.
    func editAtOneTime() {
        // A Loveseat that has had no session with Couchbase Lite makes no versions. A history with other peers may have none of it.
        let authors = peers.filter { !$0.isHub && $0.store.source != nil }
        if authors.isEmpty || lites.isEmpty { return }
        let (own, lite) = (dice.pick(authors), dice.pick(lites))
        let id = "doc\(dice.int(0...documentCount - 1))"
        trace("\(own.index) and \(lite.index) edit \(id) at one time")
        let time = max(own.wall.now, lite.wall.now) + 1
        own.wall.at(time) { edit(id, at: own, Self.saving) }
        lite.wall.at(time) { edit(id, at: lite, Self.saving) }
        noteChanges()
    }
}

extension SimulatedWallClock {
    /// Does something while the clock shows another time, in milliseconds since 1970.
    fileprivate func at(_ time: Int64, _ body: () -> Void) {
        let right = offset
        offset += time - now
        body()
        offset = right
    }
}
