import LoveseatModel
import LoveseatStorage

/// An old export of a database is imported again, there or elsewhere.
struct ImportWorld: HistoryWorld {
    unowned let run: SimulationRun

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

    func schedule() {
        for _ in 0..<dice.untidy.int(1...3) {
            let (delay, hasRevisions) = (dice.untidy.int(0...8_000), dice.untidy.chance(0.6))
            untidyAt(0...15_000) {
                let author = pickUser()
                let reader = dice.untidy.chance(0.5) ? author : pickUser()
                let export = try export(author, hasRevisions)
                trace("\(author.index) exports \(export.lines.count) documents")
                later(delay, "an import") { try importAll(export, at: reader) }
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
        try peer.addBlobs(ledger.blobContents)
        for line in export.lines {
            let key = "\(line.collection)/\(line.id)"
            let handle = peer.collections[line.collection]
            guard export.hasRevisions else {
                if line.revisions.isDeleted { continue }
                let isSame = peer.tree(line.id, in: line.collection)?.current?.body == line.body
                if isSame { continue }
                try edits.save(line.id, line.collection, at: peer, line.body)
                ledger.forgetEditor(of: key)
                ledger.freshDocuments[key] = nil
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
