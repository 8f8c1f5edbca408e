import LoveseatModel
import LoveseatStorage

/// Histories in which one of the peers is a CouchDB.
extension SimulationRun {
    func makeCouch(_ names: [CollectionName]) throws {
        // Histories of Couchbase's protocol alone have none.
        guard worlds.contains(.couch), let wire = simulation.wire else { return }
        let index = peers.count
        let couch = try SimulatedPeer(
            index: index,
            collections: names,
            blobFolder: "\(folder)/\(index)",
            seed: untidyDice.next(),
            clock: clock,
            // Nobody edits, crashes or restores it as if it were a Loveseat.
            isHub: true,
            runsTasksInPlace: true
        )
        couch.foreign = wire.makeForeignDatabases(of: index)
        for source in 0..<report.peers where untidyDice.chance(0.7) || source == 0 {
            edges.append(Edge(source, index))
            foreignEdges.insert(Edge(source, index))
        }
        peers.append(couch)
    }

    func scheduleCouch() {
        for peer in peers where peer.foreign != nil {
            for _ in 0..<untidyDice.int(3...30) {
                untidyAt(0...20_000) { [unowned self] in editForeign(peer) }
            }
            for _ in 0..<untidyDice.int(0...3) {
                untidyAt(0...20_000) { [unowned self] in
                    trace("\(peer.index) is compacted")
                    peer.foreign?.compact()
                }
            }
        }
    }

    private func editForeign(_ peer: SimulatedPeer) {
        let collection = untidyDice.int(0...peer.collections.count - 1)
        let id = "doc\(untidyDice.int(0...untidyDice.pick([3, 12, 40])))"
        let key = "\(collection)/\(id)"
        let isDeleted = untidyDice.chance(0.15)
        let base = peer.tree(id, in: collection)?.current
        // Only what is alive can be deleted.
        if isDeleted, base?.isDeleted ?? true { return }
        let body: JSONText =
            isDeleted
            ? .emptyObject
            : JSONText(canonical: [
                "n": JSONValue(untidyDice.int(0...1_000_000)), "by": JSONValue(peer.index),
            ])
        trace("\(peer.index) edits \(key) in CouchDB")
        peer.foreign?.edit(
            id,
            in: peer.collections[collection].name,
            body: body,
            isDeleted: isDeleted,
            digest: untidyDice.bytes(16)
        )
        if let tree = peer.tree(id, in: collection) { oracle.edited(peer.index, key, tree, base: base?.id) }
        noteEdit(key, peer, isDeleted ? nil : body)
    }
}
