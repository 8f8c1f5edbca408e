import LoveseatModel
import LoveseatStorage

/// Compares all peers, at the end of a history.
struct FinalComparison: HistoryPart {
    unowned let run: SimulationRun

    func compare() throws {
        try checkStores()
        if mesh.mayDisagree { return }
        try GuestComparison(run: run).compareGuests()
        let peers = mesh.guests.isEmpty ? peers : peers.filter { !mesh.isGuest($0) }
        for collection in peers[0].collections.indices {
            let first = try peers[0].state(of: collection)
            journal.report.documents += first.count
            checkLosses(collection)
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
                    if journal.isVerbose {
                        print("peer 0 knows", peers[0].tree(id, in: collection)?.summary ?? "one line")
                        print(
                            "peer \(peer.index) knows",
                            peer.tree(id, in: collection)?.summary ?? "one line"
                        )
                    }
                    journal.add(
                        "\(collection)/\(id): peer 0 has \(first[id].map(\.description) ?? "nothing"), peer \(peer.index) has \(other[id].map(\.description) ?? "nothing")"
                    )
                }
            }
            for (id, state) in first.sorted(by: { $0.key < $1.key }) {
                if state.hasConflict, simulation.wire == nil {
                    journal.add("\(collection)/\(id): the conflict is not resolved")
                }
                checkSoleEditor("\(collection)/\(id)", state)
            }
            for (key, entry) in ledger.soleEditors.sorted(by: { $0.key < $1.key })
            where key.hasPrefix("\(collection)/") {
                if entry?.body != nil, first[String(key.dropFirst(2))] == nil {
                    journal.add("\(key): lost everywhere")
                }
            }
        }
    }

    private func checkStores() throws {
        VersionChecks(run: run).checkLists { try $0.unserved() }
        for peer in peers {
            journal.report.problems += try peer.store.check().map { "peer \(peer.index): \($0)" }
            for (digest, content) in ledger.blobContents where peer.store.blobs.contains(digest) {
                if try peer.store.blobs.read(digest, from: 0, count: content.count + 1) != content {
                    journal.add("peer \(peer.index): blob \(digest) has other content")
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
        guard mesh.hubs > 0 else { return one == other }
        guard one?.isDeleted ?? true || other?.isDeleted ?? true else { return one?.body == other?.body }
        return one?.isDeleted ?? true && other?.isDeleted ?? true
    }

    /// Asks the oracle. If an app merges, the version that is left is nobody's edit.
    private func checkLosses(_ collection: Int) {
        if mesh.merges || !mesh.verdicts.isEmpty { return }
        for id in (0...40).map({ "doc\($0)" }) + ["large0"] {
            // A peer that lacks a tombstone must not hide what the others show.
            let others = peers.lazy.filter { !self.mesh.isGuest($0) }.compactMap {
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
            if simulation.wire != nil, ledger.purgedKeys.contains("\(collection)/\(id)") { continue }
            journal.add(finding)
            guard journal.isVerbose else { continue }
            print(oracle.account(of: "\(collection)/\(id)"))
            for peer in peers {
                print("peer \(peer.index) knows", peer.tree(id, in: collection)?.description ?? "nothing")
            }
        }
    }

    /// If only one peer ever edited a document, all peers must have its last version.
    private func checkSoleEditor(_ key: String, _ state: SimulatedPeer.DocumentState) {
        // Several peers edited it, or a purge or a power loss took edits away.
        guard let entry = ledger.soleEditors[key] ?? nil else { return }
        if let body = entry.body {
            if state.isDeleted || state.body != body {
                journal.add("\(key): the last edit of peer \(entry.peer) is lost")
            }
        } else if !state.isDeleted {
            journal.add("\(key): the deletion by peer \(entry.peer) is lost")
        }
    }
}
