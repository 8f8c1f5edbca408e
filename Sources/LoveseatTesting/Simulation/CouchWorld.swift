import LoveseatModel
import LoveseatStorage

/// One of the peers is a CouchDB.
struct CouchWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for peer in peers where peer.foreign != nil {
            for _ in 0..<dice.untidy.int(3...30) {
                untidyAt(0...20_000) { editForeign(peer) }
            }
            for _ in 0..<dice.untidy.int(0...3) {
                untidyAt(0...20_000) {
                    trace("\(peer.index) is compacted")
                    peer.foreign?.compact()
                }
            }
        }
    }

    private func editForeign(_ peer: SimulatedPeer) {
        let collection = dice.untidy.int(0...peer.collections.count - 1)
        let id = "doc\(dice.untidy.int(0...dice.untidy.pick([3, 12, 40])))"
        let key = "\(collection)/\(id)"
        let isDeleted = dice.untidy.chance(0.15)
        let base = peer.tree(id, in: collection)?.current
        // Only what is alive can be deleted.
        if isDeleted, base?.isDeleted ?? true { return }
        let body: JSONText =
            isDeleted
            ? .emptyObject
            : JSONText(canonical: [
                "n": JSONValue(dice.untidy.int(0...1_000_000)), "by": JSONValue(peer.index),
            ])
        trace("\(peer.index) edits \(key) in CouchDB")
        peer.foreign?.edit(
            id,
            in: peer.collections[collection].name,
            body: body,
            isDeleted: isDeleted,
            digest: dice.untidy.bytes(16)
        )
        if let tree = peer.tree(id, in: collection) { oracle.edited(peer.index, key, tree, base: base?.id) }
        ledger.noteEdit(key, peer, isDeleted ? nil : body)
    }
}
