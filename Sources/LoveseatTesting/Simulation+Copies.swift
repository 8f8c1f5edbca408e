import LoveseatModel
import LoveseatStorage

/// Worlds in which a database exists twice: backups, copied folders, and exports.
extension SimulationRun {
    // MARK: Backups

    func scheduleOwnBackups() {
        for _ in 0..<untidyDice.int(1...3) {
            let (number, delay) = (untidyDice.int(0...1_000), untidyDice.int(500...6_000))
            untidyAt(0...18_000) { [unowned self] in
                // A host's records of what it gave away are forgotten with the rest (docs/decisions/0006-lost-commits.md).
                let peers = peers.filter { !sharesGrants($0) && $0.foreign == nil }
                if peers.isEmpty { return }
                let peer = peers[number % peers.count]
                let backup = try peer.backUp(oracle)
                trace("\(peer.index) is backed up")
                clock.schedule(after: delay) { [unowned self] in putBack(peer, backup) }
            }
        }
    }

    private func putBack(_ peer: SimulatedPeer, _ backup: SimulatedBackup) {
        if isQuiescing { return }
        let isCopy = untidyDice.chance(0.5)
        trace("\(peer.index) is put back\(isCopy ? " into new files" : "")")
        restored.insert(peer.index)
        restart(peer) { try peer.restore(backup, as: isCopy ? newIdentity() : nil, oracle) }
    }

    private func newIdentity() -> [UInt8] { untidyDice.bytes(16) }

    // MARK: Two devices of one folder

    func scheduleTwins() {
        for _ in 0..<untidyDice.int(1...2) {
            let (delay, kind) = (untidyDice.pick([0, 2_000, 6_000]), untidyDice.int(0...2))
            untidyAt(2_000...12_000) { [unowned self] in
                let users = peers.filter { !$0.isHub && !isGuest($0) && !sharesGrants($0) }
                if users.count < 2 { return }
                let pair = users.shuffled(using: &untidyDice).prefix(2)
                let backup = try pair[0].backUp(oracle, isClosed: true)
                clock.schedule(after: delay) { [unowned self] in
                    if isQuiescing { return }
                    trace("\(pair[1].index) begins with a copy of \(pair[0].index) from \(delay) ago")
                    if kind == 0 { putBack(pair[0], backup) }
                    restored.insert(pair[1].index)
                    restart(pair[1]) { try pair[1].restore(backup, as: newIdentity(), oracle) }
                    do { try join(pair[0].index, pair[1].index) } catch {
                        report.problems.append("an untidy event failed: \(error)")
                    }
                }
            }
        }
    }

    /// Both devices sync with the same peers.
    private func join(_ first: Int, _ second: Int) throws {
        let others = peers.filter {
            ![first, second].contains($0.index) && $0.foreign == nil && !isGuest($0)
        }
        if !others.isEmpty, !edges.contains(where: { $0.source == first && $0.target != second }) {
            edges.append(Edge(first, untidyDice.pick(others).index))
        }
        for edge in edges where edge.source == first && edge.target != second {
            let other = Edge(second, edge.target)
            if edges.contains(other) { continue }
            edges.append(other)
            if foreignEdges.contains(edge) { foreignEdges.insert(other) }
        }
        for edge in edges where [first, second].contains(edge.source) {
            for _ in 0..<untidyDice.int(0...2) { untidyAt(0...10_000) { [unowned self] in connect(edge) } }
        }
        let shared = edges.filter { edge in
            edge.source == second && edges.contains(Edge(first, edge.target))
                && peers[edge.target].foreign == nil && !sharesGrants(peers[edge.target])
        }
        if !shared.isEmpty, untidyDice.chance(0.7) { try putBackPeer(of: first, untidyDice.pick(shared)) }
    }

    /// A peer of both devices is put back to what it was before the second one synced with it, and then the first one syncs.
    private func putBackPeer(of first: Int, _ edge: Edge) throws {
        let peer = peers[edge.target]
        let backup = try peer.backUp(oracle)
        trace("\(peer.index) is backed up")
        for device in [first, edge.source] {
            let body = JSONText(canonical: [
                "n": JSONValue(untidyDice.int(0...1_000_000)), "by": JSONValue(device),
            ])
            let id = "doc\(untidyDice.int(0...40))"
            trace("\(device) edits 0/\(id)")
            try save(id, 0, at: peers[device], body)
            noteEdit("0/\(id)", peers[device], body)
        }
        syncWhole(edge)
        let delay = untidyDice.int(1_000...5_000)
        clock.schedule(after: delay) { [unowned self] in
            putBack(peer, backup)
            syncWhole(Edge(first, edge.target))
        }
    }

    /// As in the end, and not with a filter or in one direction only.
    private func syncWhole(_ edge: Edge) {
        let isLinked = connections.contains {
            $0.source.index == edge.source && $0.target.index == edge.target
        }
        if !isQuiescing, !isLinked { open(edge, SimulatedConnection.Plan()) }
    }

    // MARK: Exports

    private struct Export {
        struct Line {
            let collection: Int
            let id: String
            let body: JSONText
            let revisions: ArchivedRevisions
        }

        var lines: [Line] = []
        let hasRevisions: Bool
    }

    func scheduleImports() {
        for _ in 0..<untidyDice.int(1...3) {
            let (delay, hasRevisions) = (untidyDice.int(0...8_000), untidyDice.chance(0.6))
            untidyAt(0...15_000) { [unowned self] in
                let author = pickUser()
                let reader = untidyDice.chance(0.5) ? author : pickUser()
                let export = try export(author, hasRevisions)
                trace("\(author.index) exports \(export.lines.count) documents")
                clock.schedule(after: delay) { [unowned self] in
                    if isQuiescing { return }
                    do { try importAll(export, at: reader) } catch {
                        report.problems.append("an import failed: \(error)")
                    }
                }
            }
        }
    }

    private func export(_ peer: SimulatedPeer, _ hasRevisions: Bool) throws -> Export {
        var export = Export(hasRevisions: hasRevisions)
        for (collection, handle) in peer.collections.enumerated() {
            var records: [DocumentRecord] = []
            try peer.store.read { transaction in
                try transaction.changes(in: handle, since: 0) { record in
                    records.append(record)
                    return true
                }
            }
            for record in records {
                let whole = try peer.store.whole(record, in: handle)
                export.lines.append(
                    Export.Line(
                        collection: collection,
                        id: record.id,
                        body: record.body,
                        revisions: try ArchivedRevisions(whole)
                    )
                )
            }
        }
        return export
    }

    private func importAll(_ export: Export, at peer: SimulatedPeer) throws {
        trace("\(peer.index) imports \(export.lines.count) documents")
        try peer.addBlobs(blobContents)
        for line in export.lines {
            let key = "\(line.collection)/\(line.id)"
            let handle = peer.collections[line.collection]
            guard export.hasRevisions else {
                if line.revisions.isDeleted { continue }
                let isSame = peer.tree(line.id, in: line.collection)?.current?.body == line.body
                if isSame { continue }
                try save(line.id, line.collection, at: peer, line.body)
                (soleEditors[key], freshDocuments[key]) = (.some(nil), nil)
                continue
            }
            try peer.store.write { transaction in
                if simulation.fault == .importOverCurrent {
                    _ = try transaction.purge(line.id, in: handle, isWanted: false)
                }
                _ = try transaction.restore(line.revisions, of: line.id, body: line.body, in: handle)
            }
            if let tree = peer.tree(line.id, in: line.collection) { oracle.note(peer.index, key, tree) }
        }
    }
}
