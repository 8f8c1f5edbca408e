import LoveseatModel
import LoveseatStorage

/// Two devices begin with one copied folder, or with one backup.
struct TwinWorld: HistoryWorld {
    unowned let run: SimulationRun

    private var backups: BackupWorld { BackupWorld(run: run) }

    func schedule() {
        for _ in 0..<dice.untidy.int(1...2) {
            let (delay, kind) = (dice.untidy.pick([0, 2_000, 6_000]), dice.untidy.int(0...2))
            untidyAt(2_000...12_000) {
                let users = mesh.users.filter { !mesh.sharesGrants($0) }
                if users.count < 2 { return }
                let pair = users.shuffled(using: &dice.untidy).prefix(2)
                let backup = try pair[0].backUp(oracle, isClosed: true)
                later(delay, "an untidy event") {
                    trace("\(pair[1].index) begins with a copy of \(pair[0].index) from \(delay) ago")
                    if kind == 0 { backups.putBack(pair[0], backup) }
                    mesh.restored.insert(pair[1].index)
                    accidents.restart(pair[1]) {
                        try pair[1].restore(backup, as: backups.newIdentity(), oracle)
                    }
                    try join(pair[0].index, pair[1].index)
                }
            }
        }
    }

    /// Both devices sync with the same peers.
    private func join(_ first: Int, _ second: Int) throws {
        let others = peers.filter {
            ![first, second].contains($0.index) && $0.foreign == nil && !mesh.isGuest($0)
        }
        if !others.isEmpty, !mesh.edges.contains(where: { $0.source == first && $0.target != second }) {
            mesh.edges.append(Edge(first, dice.untidy.pick(others).index))
        }
        for edge in mesh.edges where edge.source == first && edge.target != second {
            let other = Edge(second, edge.target)
            if mesh.edges.contains(other) { continue }
            mesh.edges.append(other)
            if mesh.foreignEdges.contains(edge) { mesh.foreignEdges.insert(other) }
        }
        for edge in mesh.edges where [first, second].contains(edge.source) {
            for _ in 0..<dice.untidy.int(0...2) { untidyAt(0...10_000) { traffic.connect(edge) } }
        }
        let shared = mesh.edges.filter { edge in
            edge.source == second && mesh.edges.contains(Edge(first, edge.target))
                && peers[edge.target].foreign == nil && !mesh.sharesGrants(peers[edge.target])
        }
        if !shared.isEmpty, dice.untidy.chance(0.7) { try putBackPeer(of: first, dice.untidy.pick(shared)) }
    }

    /// A peer of both devices is put back to what it was before the second one synced with it, and then the first one syncs.
    private func putBackPeer(of first: Int, _ edge: Edge) throws {
        let peer = peers[edge.target]
        let backup = try peer.backUp(oracle)
        trace("\(peer.index) is backed up")
        for device in [first, edge.source] {
            let body = JSONText(canonical: [
                "n": JSONValue(dice.untidy.int(0...1_000_000)), "by": JSONValue(device),
            ])
            let id = "doc\(dice.untidy.int(0...40))"
            trace("\(device) edits 0/\(id)")
            try edits.save(id, 0, at: peers[device], body)
            ledger.noteEdit("0/\(id)", peers[device], body)
        }
        syncWhole(edge)
        let delay = dice.untidy.int(1_000...5_000)
        clock.schedule(after: delay) {
            backups.putBack(peer, backup)
            syncWhole(Edge(first, edge.target))
        }
    }

    /// As in the end, and not with a filter or in one direction only.
    private func syncWhole(_ edge: Edge) {
        let isLinked = traffic.connections.contains {
            $0.source.index == edge.source && $0.target.index == edge.target
        }
        if !run.isQuiescing, !isLinked { traffic.open(edge, SimulatedConnection.Plan()) }
    }
}
