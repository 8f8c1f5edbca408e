import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Worlds as untidy as people's: clocks, expirations, purges, compactions, and the same content in many places.
extension SimulationRun {
    func scheduleUntidyWorlds() {
        if worlds.contains(.backups) { scheduleOwnBackups() }
        if worlds.contains(.twins) { scheduleTwins() }
        if worlds.contains(.doubles) { scheduleDoubles() }
        if worlds.contains(.clocks) { scheduleClocks() }
        if worlds.contains(.expirations) { scheduleExpirations() }
        if worlds.contains(.purges) { schedulePurges() }
        if worlds.contains(.imports) { scheduleImports() }
        if worlds.contains(.compactions) { scheduleCompactions() }
        if worlds.contains(.couch) { scheduleCouch() }
        if worlds.contains(.largeConflicts) { scheduleLargeConflicts() }
    }

    func untidyAt(_ times: ClosedRange<Int>, _ event: @escaping () throws -> Void) {
        clock.schedule(after: untidyDice.int(times)) { [unowned self] in
            if isQuiescing { return }
            do { try event() } catch { report.problems.append("an untidy event failed: \(error)") }
        }
    }

    /// A peer that does what people do.
    func pickUser() -> SimulatedPeer { untidyDice.pick(peers.filter { !$0.isHub && !isGuest($0) }) }

    private func pickPlace(at peer: SimulatedPeer) -> (collection: Int, id: String, key: String) {
        let collection = untidyDice.int(0...peer.collections.count - 1)
        let id = "doc\(untidyDice.int(0...untidyDice.pick([3, 12, 40])))"
        return (collection, id, "\(collection)/\(id)")
    }

    @discardableResult
    func save(_ id: String, _ collection: Int, at peer: SimulatedPeer, _ body: JSONText) throws -> Bool {
        let base = peer.tree(id, in: collection)?.current?.id
        let made = try peer.edit(id, in: collection, body)
        if let tree = peer.tree(id, in: collection) {
            oracle.edited(peer.index, "\(collection)/\(id)", tree, base: base)
        }
        return made
    }

    // MARK: Two replicators at once

    func mayDouble() -> Bool { worlds.contains(.doubles) && untidyDice.chance(0.7) }

    private func scheduleDoubles() {
        for _ in 0..<untidyDice.int(2...8) {
            let (edge, second) = (untidyDice.pick(edges), untidyDice.int(0...400))
            untidyAt(0...20_000) { [unowned self] in
                connect(edge)
                clock.schedule(after: second) { [unowned self] in connect(edge) }
            }
        }
    }

    // MARK: The same content in many places

    /// The same document in the other collection.
    func editNamesake(of id: String, _ collection: Int, at peer: SimulatedPeer, _ body: JSONText) throws {
        if !untidyDice.chance(0.5) { return }
        let other = (collection + 1) % peer.collections.count
        trace("\(peer.index) edits \(id) in \(other), too")
        try save(id, other, at: peer, body)
        noteEdit("\(other)/\(id)", peer, body)
    }

    /// Attaches one or two of five contents, of which the first is empty; or one of its own, where databases are compacted.
    func shareBlobs(at peer: SimulatedPeer, _ value: inout JSONValue) throws {
        if worlds.contains(.compactions), untidyDice.chance(0.4) {
            let content = untidyDice.bytes(untidyDice.pick([10, 3_000, 60_000]))
            value["own"] = try blob(content, at: peer).json
        }
        if !worlds.contains(.sharedBlobs) || !untidyDice.chance(0.6) { return }
        for name in ["one", "two"] where untidyDice.chance(0.7) {
            let number = untidyDice.int(0...4)
            let content = [UInt8](repeating: UInt8(number), count: [0, 30, 4_000, 70_000, 150_000][number])
            let type = untidyDice.pick(["text/plain", "image/jpeg"])
            value[name] = try blob(content, at: peer, type: type).json
        }
    }

    // MARK: Clocks

    private static let year: Int64 = 365 * 24 * 3_600_000

    private func scheduleClocks() {
        // None is ahead of what it was by more than minutes: that would make everything old, and nobody could tell.
        for peer in peers { peer.wall.offset = untidyDice.pick([0, 0, Self.year, -Self.year, 600_000]) }
        for _ in 0..<untidyDice.int(2...8) {
            let number = untidyDice.int(0...1_000)
            let jump = untidyDice.pick([-Self.year, -600_000, -5_000, 60_000])
            untidyAt(0...20_000) { [unowned self] in
                let peer = peers[number % peers.count]
                trace("the clock of \(peer.index) jumps by \(jump)")
                peer.setClock(peer.wall.offset + jump)
            }
        }
        for _ in 0..<untidyDice.int(1...4) {
            untidyAt(0...20_000) { [unowned self] in
                let peer = untidyDice.pick(peers)
                trace("\(peer.index) forgets old tombstones")
                let removed = try peer.store.removeTombstones(olderThan: 24 * 3_600)
                if removed > 0 {
                    report.problems.append("peer \(peer.index) forgot \(removed) tombstones of seconds ago")
                }
            }
        }
    }

    // MARK: Expirations

    private func scheduleExpirations() {
        for _ in 0..<untidyDice.int(2...12) {
            let time = untidyDice.pick([50, 500, 3_000])
            untidyAt(0...18_000) { [unowned self] in
                let peer = pickUser()
                let (collection, id, _) = pickPlace(at: peer)
                try expire(id, collection, at: peer, after: time)
            }
        }
        for number in 0..<untidyDice.int(1...3) {
            untidyAt(0...15_000) { [unowned self] in try keepAtLast(number) }
        }
    }

    private func expire(_ id: String, _ collection: Int, at peer: SimulatedPeer, after time: Int) throws {
        let isThere = try peer.store.write {
            try $0.setExpiration(id, in: peer.collections[collection], at: peer.wall.now + Int64(time))
        }
        if !isThere { return }
        trace("\(collection)/\(id) at \(peer.index) expires in \(time)")
        // The timer may have to wait for a transaction.
        let delay = untidyDice.pick([0, 0, 50, 1_000])
        clock.schedule(after: time + delay) { [unowned self] in
            if isQuiescing { return }
            do { try purgeExpired(at: peer) } catch {
                report.problems.append("an expiration failed: \(error)")
            }
        }
    }

    /// A database purges what has expired when it is opened, and so do the timers of those that stay open.
    func purgeExpired(at peer: SimulatedPeer) throws {
        if !worlds.contains(.expirations) { return }
        for (collection, handle) in peer.collections.enumerated() {
            let now = peer.wall.now
            for id in try peer.store.read({ try $0.expired(in: handle, at: now).ids }) {
                trace("\(collection)/\(id) has expired at \(peer.index)")
                noteRemoval("\(collection)/\(id)", at: peer)
                if simulation.fault != .deleteWhatExpires { continue }
                _ = try peer.edit(id, in: collection, .emptyObject, isDeleted: true)
            }
            if simulation.fault == .deleteWhatExpires { continue }
            _ = try ExpirationTimer.purgeExpired(in: handle, of: peer.store, at: now)
        }
    }

    private func noteRemoval(_ key: String, at peer: SimulatedPeer) {
        hasPurged = true
        purgedKeys.insert(key)
        oracle.purged(peer.index, key)
        soleEditors[key] = .some(nil)
        freshDocuments[key] = nil
    }

    /// Makes a document that expires, and takes the expiration back, perhaps after that time and just before the timer comes.
    private func keepAtLast(_ number: Int) throws {
        let peer = pickUser()
        let (id, time) = ("expiring\(number)", untidyDice.pick([20, 1_000]))
        let body = JSONText(canonical: ["n": JSONValue(number), "by": JSONValue(peer.index)])
        let key = "0/\(id)"
        trace("\(peer.index) makes \(id), which expires in \(time)")
        try save(id, 0, at: peer, body)
        (freshDocuments[key], soleEditors[key]) = ((peer.index, body), (peer.index, body))
        let handle = peer.collections[0]
        _ = try peer.store.write { try $0.setExpiration(id, in: handle, at: peer.wall.now + Int64(time)) }
        clock.schedule(after: time + untidyDice.int(-10...200)) { [unowned self] in
            if isQuiescing { return }
            trace("\(peer.index) keeps \(id)")
            do {
                let handle = peer.collections[0]
                let isThere = try peer.store.write { try $0.setExpiration(id, in: handle, at: nil) }
                // Another timer was faster, or the commit was lost.
                if !isThere { noteRemoval(key, at: peer) }
            } catch { report.problems.append("an expiration failed: \(error)") }
        }
    }

    // MARK: Purges

    private func schedulePurges() {
        for _ in 0..<untidyDice.int(4...16) {
            untidyAt(0...20_000) { [unowned self] in
                let peer = pickUser()
                let (collection, id, key) = pickPlace(at: peer)
                let body = peer.tree(id, in: collection)?.current?.body
                // Nobody made it, or it was purged before.
                guard body != nil else { return }
                trace("\(peer.index) purges \(key)")
                noteRemoval(key, at: peer)
                if simulation.fault == .deleteWhatIsPurged {
                    _ = try peer.edit(id, in: collection, .emptyObject, isDeleted: true)
                } else {
                    _ = try peer.store.write { try $0.purge(id, in: peer.collections[collection]) }
                }
                // CouchDB's wire cannot tell what is made anew with an earlier content from the earlier revision.
                guard simulation.wire == nil, let body, untidyDice.chance(0.5) else { return }
                let delay = untidyDice.pick([0, 100, 2_000])
                clock.schedule(after: delay) { [unowned self] in
                    if isQuiescing { return }
                    trace("\(peer.index) makes \(key) anew")
                    do { try save(id, collection, at: peer, body) } catch {
                        report.problems.append("an edit failed: \(error)")
                    }
                }
            }
        }
    }

    // MARK: Compactions

    private func scheduleCompactions() {
        for _ in 0..<untidyDice.int(5...30) {
            let number = untidyDice.int(0...1_000)
            untidyAt(0...22_000) { [unowned self] in
                let busy = connections.flatMap { [$0.target, $0.source] }
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

    // MARK: Large documents in conflict

    private func scheduleLargeConflicts() {
        let length = untidyDice.int(1...5) << 20
        let first = untidyDice.int(0...12_000)
        let block = untidyDice.bytes(24 << 10).map { String($0, radix: 16) }.joined()
        let text = String(repeating: block, count: max(1, length / block.utf8.count))
        for number in 0..<untidyDice.int(2...5) {
            untidyAt(first...first + 4_000) { [unowned self] in
                let peer = pickUser()
                trace("\(peer.index) saves \(text.utf8.count) bytes")
                let body = JSONText(canonical: [
                    "n": JSONValue(number), "by": JSONValue(peer.index), "text": .string(text),
                ])
                try save("large0", 0, at: peer, body)
            }
        }
    }
}
