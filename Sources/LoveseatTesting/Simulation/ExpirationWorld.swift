import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// Documents expire, and some are kept at the last moment.
struct ExpirationWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.untidy.int(2...12) {
            let time = dice.untidy.pick([50, 500, 3_000])
            untidyAt(0...18_000) {
                let peer = pickUser()
                let (collection, id, _) = edits.pickPlace(at: peer)
                try expire(id, collection, at: peer, after: time)
            }
        }
        for number in 0..<dice.untidy.int(1...3) {
            untidyAt(0...15_000) { try keepAtLast(number) }
        }
    }

    private func expire(_ id: String, _ collection: Int, at peer: SimulatedPeer, after time: Int) throws {
        let isThere = try peer.store.write {
            try $0.setExpiration(id, in: peer.collections[collection], at: peer.wall.now + Int64(time))
        }
        if !isThere { return }
        trace("\(collection)/\(id) at \(peer.index) expires in \(time)")
        // The timer may have to wait for a transaction.
        let delay = dice.untidy.pick([0, 0, 50, 1_000])
        later(time + delay, "an expiration") { try purgeExpired(at: peer) }
    }

    /// A database purges what has expired when it is opened, and so do the timers of those that stay open.
    func purgeExpired(at peer: SimulatedPeer) throws {
        if !worlds.contains(.expirations) { return }
        for (collection, handle) in peer.collections.enumerated() {
            let now = peer.wall.now
            for id in try peer.store.read({ try $0.expired(in: handle, at: now).ids }) {
                trace("\(collection)/\(id) has expired at \(peer.index)")
                ledger.noteRemoval("\(collection)/\(id)", at: peer)
                if simulation.fault != .deleteWhatExpires { continue }
                _ = try peer.edit(id, in: collection, .emptyObject, isDeleted: true)
            }
            if simulation.fault == .deleteWhatExpires { continue }
            _ = try ExpirationTimer.purgeExpired(in: handle, of: peer.store, at: now)
        }
    }

    /// Makes a document that expires, and takes the expiration back, perhaps after that time and just before the timer comes.
    private func keepAtLast(_ number: Int) throws {
        let peer = pickUser()
        let (id, time) = ("expiring\(number)", dice.untidy.pick([20, 1_000]))
        let body = JSONText(canonical: ["n": JSONValue(number), "by": JSONValue(peer.index)])
        let key = "0/\(id)"
        trace("\(peer.index) makes \(id), which expires in \(time)")
        try edits.save(id, 0, at: peer, body)
        ledger.noteFresh(key, peer, body)
        let handle = peer.collections[0]
        _ = try peer.store.write { try $0.setExpiration(id, in: handle, at: peer.wall.now + Int64(time)) }
        later(time + dice.untidy.int(-10...200), "an expiration") {
            trace("\(peer.index) keeps \(id)")
            let handle = peer.collections[0]
            let isThere = try peer.store.write { try $0.setExpiration(id, in: handle, at: nil) }
            // Another timer was faster, or the commit was lost.
            if !isThere { ledger.noteRemoval(key, at: peer) }
        }
    }
}
