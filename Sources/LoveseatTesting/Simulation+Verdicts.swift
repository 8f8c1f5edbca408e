import LoveseatAssertions
import LoveseatModel
import LoveseatStorage

/// Histories in which every peer has a resolver of its own, and people decide too, each as they like.
extension SimulationRun {
    func drawVerdicts() {
        if !worlds.contains(.verdicts) { return }
        let shared = worldDice.chance(0.2) ? worldDice.pick(SimulatedVerdict.allCases) : nil
        for peer in peers where !peer.isHub && !isGuest(peer) {
            let verdict = worldDice.pick(SimulatedVerdict.allCases)
            verdicts[peer.index] = shared ?? verdict
        }
        trace("verdicts \(verdicts.sorted { $0.key < $1.key }.map(\.value))")
    }

    /// Whether peers may come to different ends, as they do if their resolvers contradict each other.
    var mayDisagree: Bool {
        let kinds = Set(verdicts.values)
        return kinds.count > 1 || kinds.contains { !$0.isSymmetric }
    }

    func scheduleVerdicts() {
        for _ in 0..<worldDice.int(4...20) { at(0...20_000) { [unowned self] in try decide() } }
    }

    /// A person ends a conflict.
    private func decide() throws {
        let peer = worldDice.pick(peers.filter { !$0.isHub && !isGuest($0) })
        let collection = worldDice.int(0...peer.collections.count - 1)
        var conflicts: [(id: String, versions: [RevisionID])] = []
        for number in 0...40 {
            let id = "doc\(number)"
            if let versions = versions(of: id, at: peer, in: collection) { conflicts.append((id, versions)) }
        }
        if conflicts.isEmpty { return }
        let conflict = worldDice.pick(conflicts)
        let (id, kept) = (conflict.id, worldDice.pick(conflict.versions))
        let edit: JSONText? =
            worldDice.chance(0.3) ? JSONText(canonical: ["decided": JSONValue(peer.index)]) : nil
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
        soleEditors["\(collection)/\(id)"] = .some(nil)
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

    /// Checks that every way of fetching serves the leaves that a feed lists.
    func judgeLists(_ unserved: (SimulatedPeer) throws -> [String]) {
        if !report.problems.isEmpty, simulation.fault == nil { return }
        do { for peer in peers { report.problems += try unserved(peer) } } catch {
            report.problems.append("the leaves of a database cannot be read: \(error)")
        }
    }

    /// Checks that a document which somebody made and nobody deleted is there, whatever was decided about it.
    func judgeVersions() {
        if !report.problems.isEmpty, simulation.fault == nil { return }
        for key in oracle.undeleted {
            guard let collection = Int(key.prefix(1)) else { continue }
            let id = String(key.dropFirst(2))
            let isThere = peers.contains { peer in
                guard let tree = peer.tree(id, in: collection) else { return false }
                return tree.current?.isDeleted == false || tree.pending.contains { !$0.isDeleted }
            }
            if !isThere {
                report.problems.append("NOBODY has a version of \(key), which nobody deleted")
                return
            }
        }
    }
}
