import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// How a history ends: everybody syncs until nothing changes, and then all is compared.
extension SimulationRun {
    func runUntilQuiet(limit: Int) throws {
        let start = clock.steps
        while clock.step() {
            noteChanges()
            judgeLists { try $0.newlyUnserved() }
            guard clock.steps - start < limit else {
                report.problems.append("the history does not end: \(limit) events and more to come")
                return
            }
        }
    }

    /// Everybody syncs with everybody reachable, over good links, until a whole round changes nothing.
    func quiesce() throws {
        isQuiescing = true
        for connection in connections { connection.abandon() }
        try runUntilQuiet(limit: 1_000_000)
        for peer in peers { try purgeExpired(at: peer) }
        if !worlds.isDisjoint(with: [.collections, .filters, .access, .expirations]) {
            try syncAll(resets: false)
            try compareWithoutReset()
        }
        try syncAll(resets: true)
        judgeVersions()
        try compareContents()
        if simulation.wire != nil { try compareWires() }
        if report.problems.isEmpty || simulation.isPlanted { try compare() }
    }

    /// `resets`: whether peers begin anew that may lack documents which a checkpoint covers.
    private func syncAll(resets: Bool) throws {
        var rounds = 0
        while report.problems.isEmpty {
            let before = try peers.map { peer in try peer.collections.indices.map { try peer.state(of: $0) } }
            // Not in step: among several hubs a fixed order can repeat itself for ever.
            for edge in hubs == 0 ? edges : edges.shuffled(using: &extras) {
                var plan = SimulatedConnection.Plan()
                if resets, rounds == 0 {
                    // Documents that a guest may have now do not come by themselves: its checkpoint is past them.
                    let isRestricted = guests.contains { $0.isRestricted && $0.peer.index == edge.source }
                    plan.reset = hasPurged ? .checkpointAndMarks : isRestricted ? .checkpoint : .none
                }
                plan.link.latency = 0...1
                plan.link.capacity = rounds % 2 == 0 ? 1 << 20 : 1
                (plan.activeDeltas, plan.passiveDeltas) = (rounds % 2 == 0, true)
                open(edge, plan)
                let connection = connections.last
                try runUntilQuiet(limit: 1_000_000)
                if let connection { judge(connection) }
            }
            rounds += 1
            let after = try peers.map { peer in try peer.collections.indices.map { try peer.state(of: $0) } }
            if before == after, rounds > 1 { break }
            // Contradictions come back a few times before they are given up.
            if rounds > 3 * peers.count + (worlds.contains(.verdicts) ? 50 : 5) {
                report.problems.append("no rest after \(rounds) rounds")
                break
            }
        }
    }

    private func judge(_ connection: SimulatedConnection) {
        let name = "\(connection.source.index)>\(connection.target.index)"
        if connection.isOpen { report.problems.append("session \(name) does not end") }
        let progress = connection.progress
        if progress.completed != progress.total {
            report.problems.append("session \(name) ended at \(progress.completed) of \(progress.total)")
        }
    }

    private func compare() throws {
        try checkStores()
        if mayDisagree { return }
        try compareGuests()
        let peers = guests.isEmpty ? peers : peers.filter { !isGuest($0) }
        for collection in peers[0].collections.indices {
            let first = try peers[0].state(of: collection)
            report.documents += first.count
            judgeLosses(collection)
            for peer in peers.dropFirst() {
                let other = try peer.state(of: collection)
                for id in Set(first.keys).union(other.keys).sorted() where !agree(first[id], other[id]) {
                    // A peer that lacks a tombstone cannot pass it on either.
                    let isTombstone = (first[id] ?? other[id])?.isDeleted == true
                    if first[id] == nil || other[id] == nil, isTombstone,
                        peers.contains(where: \.mayLackTombstones)
                    {
                        continue
                    }
                    if simulation.isVerbose {
                        print("peer 0 knows", peers[0].tree(id, in: collection)?.summary ?? "one line")
                        print(
                            "peer \(peer.index) knows",
                            peer.tree(id, in: collection)?.summary ?? "one line"
                        )
                    }
                    report.problems.append(
                        "\(collection)/\(id): peer 0 has \(first[id].map(\.description) ?? "nothing"), peer \(peer.index) has \(other[id].map(\.description) ?? "nothing")"
                    )
                }
            }
            for (id, state) in first.sorted(by: { $0.key < $1.key }) {
                if state.hasConflict, simulation.wire == nil {
                    report.problems.append("\(collection)/\(id): the conflict is not resolved")
                }
                checkSoleEditor("\(collection)/\(id)", state)
            }
            for (key, entry) in soleEditors.sorted(by: { $0.key < $1.key })
            where key.hasPrefix("\(collection)/") {
                if entry?.body != nil, first[String(key.dropFirst(2))] == nil {
                    report.problems.append("\(key): lost everywhere")
                }
            }
        }
    }

    private func checkStores() throws {
        judgeLists { try $0.unserved() }
        for peer in peers {
            report.problems += try peer.store.check().map { "peer \(peer.index): \($0)" }
            for (digest, content) in blobContents where peer.store.blobs.contains(digest) {
                if try peer.store.blobs.read(digest, from: 0, count: content.count + 1) != content {
                    report.problems.append("peer \(peer.index): blob \(digest) has other content")
                }
            }
        }
    }

    /// A hub may hold the same under another revision.
    private func agree(_ one: SimulatedPeer.DocumentState?, _ other: SimulatedPeer.DocumentState?) -> Bool {
        if simulation.wire != nil {
            // Which of several tombstones stands for a deleted document depends on the order in which they came.
            if one?.isDeleted == true, other?.isDeleted == true { return true }
            return one?.revision == other?.revision && one?.isDeleted == other?.isDeleted
                && one?.body == other?.body
        }
        guard hubs > 0 else { return one == other }
        guard one?.isDeleted ?? true || other?.isDeleted ?? true else { return one?.body == other?.body }
        return one?.isDeleted ?? true && other?.isDeleted ?? true
    }

    /// Asks the oracle. If an app merges, the version that is left is nobody's edit.
    private func judgeLosses(_ collection: Int) {
        if merges || !verdicts.isEmpty { return }
        for id in (0...40).map({ "doc\($0)" }) + ["large0"] {
            // A peer that lacks a tombstone must not hide what the others show.
            let others = peers.lazy.filter { !self.isGuest($0) }.compactMap {
                $0.tree(id, in: collection)?.current
            }
            let left = others.first
            let finding = oracle.problem(
                with:
                    "\(collection)/\(id)",
                isDeleted: left?.isDeleted ?? true,
                body: left?.body
            )
            guard let finding else { continue }
            // A document that is made anew after a purge has the revision ID of one that others deleted, and CouchDB's wire cannot tell them apart.
            if simulation.wire != nil, purgedKeys.contains("\(collection)/\(id)") { continue }
            report.problems.append(finding)
            guard simulation.isVerbose else { continue }
            print(oracle.account(of: "\(collection)/\(id)"))
            for peer in peers {
                print("peer \(peer.index) knows", peer.tree(id, in: collection)?.description ?? "nothing")
            }
        }
    }

    /// If only one peer ever edited a document, all peers must have its last version.
    private func checkSoleEditor(_ key: String, _ state: SimulatedPeer.DocumentState) {
        // Several peers edited it, or a purge or a power loss took edits away.
        guard let entry = soleEditors[key] ?? nil else { return }
        if let body = entry.body {
            if state.isDeleted || state.body != body {
                report.problems.append("\(key): the last edit of peer \(entry.peer) is lost")
            }
        } else if !state.isDeleted {
            report.problems.append("\(key): the deletion by peer \(entry.peer) is lost")
        }
    }
}
