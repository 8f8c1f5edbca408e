import LoveseatAssertions
import LoveseatModel
import LoveseatStorage

/// Every peer has a resolver of its own, and people decide too, each as they like.
struct VerdictWorld: HistoryWorld {
    unowned let run: SimulationRun

    func schedule() {
        for _ in 0..<dice.worlds.int(4...20) { at(0...20_000) { try decide() } }
    }

    /// A person ends a conflict.
    private func decide() throws {
        let peer = dice.worlds.pick(mesh.users)
        let collection = dice.worlds.int(0...peer.collections.count - 1)
        var conflicts: [(id: String, versions: [RevisionID])] = []
        for number in 0...40 {
            let id = "doc\(number)"
            if let versions = versions(of: id, at: peer, in: collection) { conflicts.append((id, versions)) }
        }
        if conflicts.isEmpty { return }
        let conflict = dice.worlds.pick(conflicts)
        let (id, kept) = (conflict.id, dice.worlds.pick(conflict.versions))
        let edit: JSONText? =
            dice.worlds.chance(0.3) ? JSONText(canonical: ["decided": JSONValue(peer.index)]) : nil
        trace("\(peer.index) decides \(collection)/\(id) for \(kept)")
        try peer.store.write { transaction in
            let handle = peer.collections[collection]
            guard let record = try transaction.record(id, in: handle) else {
                return impossible("peer \(peer.index) has versions of \(id), and no record")
            }
            _ = try transaction.resolve(record, in: handle, keeping: kept, edit: edit)
            if simulation.fault != .deleteWhatIsKept { return }
            _ = try transaction.save(
                id,
                in: handle,
                body: .emptyObject,
                isDeleted: true,
                condition: .lastWriteWins
            )
        }
        ledger.forgetEditor(of: "\(collection)/\(id)")
        if let tree = peer.tree(id, in: collection) { oracle.note(peer.index, "\(collection)/\(id)", tree) }
    }

    /// The versions that a person can choose from; nil without a conflict.
    private func versions(of id: String, at peer: SimulatedPeer, in collection: Int) -> [RevisionID]? {
        guard let tree = peer.tree(id, in: collection), !tree.isLine || !tree.pending.isEmpty else {
            return nil
        }
        let open = tree.open(among: tree.candidates).map(\.node) + tree.pending
        let live = Set(open.filter { !$0.isDeleted && $0.body != nil }.map(\.id))
        return live.count > 1 ? live.sorted() : nil
    }
}
