import LoveseatModel
import LoveseatStorage

/// People purge a lot, and make anew what they purged.
struct PurgeWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.untidy.int(4...16) {
            untidyAt(0...20_000) {
                let peer = pickUser()
                let (collection, id, key) = edits.pickPlace(at: peer)
                let body = peer.tree(id, in: collection)?.current?.body
                // Nobody made it, or it was purged before.
                guard body != nil else { return }
                trace("\(peer.index) purges \(key)")
                ledger.noteRemoval(key, at: peer)
                if simulation.fault == .deleteWhatIsPurged {
                    _ = try peer.edit(id, in: collection, .emptyObject, isDeleted: true)
                } else {
                    _ = try peer.store.write { try $0.purge(id, in: peer.collections[collection]) }
                }
                // CouchDB's wire cannot tell what is made anew with an earlier content from the earlier revision.
                guard simulation.wire == nil, let body, dice.untidy.chance(0.5) else { return }
                let delay = dice.untidy.pick([0, 100, 2_000])
                later(delay, "an edit") {
                    trace("\(peer.index) makes \(key) anew")
                    // A compaction may have removed the contents in the meantime.
                    for reference in BlobReference.all(in: body) {
                        guard let content = ledger.blobContents[reference.digest] else { continue }
                        _ = try edits.blob(content, at: peer)
                    }
                    try edits.save(id, collection, at: peer, body)
                }
            }
        }
    }
}
