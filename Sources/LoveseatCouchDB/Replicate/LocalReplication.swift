import Foundation
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// A replication between two collections of one database. It copies leaves with their histories, and needs no connection: both
/// collections are in one file, and have their attachments in common.
struct LocalReplication: Sendable {
    private static let pageSize = 500
    private static let pageBytes = 8 << 20
    /// The maximum number of changes that are looked at without a pause.
    private static let maximumSeen = 20_000

    let id: String
    let source: Databases.Entry
    let target: Databases.Entry
    var filter = ChangesRequest.Filter.none
    var winnersOnly = false
    /// The sequence to begin after; nil to go on where the last run ended.
    var since: UInt64?
    var isContinuous = false

    /// A part of the changes.
    private struct Page: Sendable {
        /// The leaves that the target lacks.
        var missing: [(id: String, leaves: [RevisionID])] = []
        /// How many leaves were compared, and how many changes were looked at.
        var checked = 0
        var seen = 0
        var through: UInt64
    }

    /// Replicates, and returns the answer for the client.
    func run(_ progress: ReplicationJobs.Progress) async throws -> JSONValue {
        let (signals, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = source.store.changes.subscribe(
            collection: source.handle.number,
            onClose: { signal.finish() },
            { _ in signal.yield() }
        )
        defer { source.store.changes.unsubscribe(token) }
        var hasDocumentIDs = false
        if case .ids = filter { hasDocumentIDs = true }
        var log = try ReplicationLog(
            id,
            hasDocumentIDs: hasDocumentIDs,
            sides: source.handle == target.handle ? [source] : [source, target]
        )
        var position =
            try since ?? log.common.map { try source.position(of: $0) } ?? source.handle.firstSequence
        log.begin(at: source.sequence(position))
        var waiting = signals.makeAsyncIterator()
        while true {
            var pending = try source.store.readRows { view in
                guard view.contains(source.handle) else { throw CouchDBError.noDatabase }
                return try view.changeCount(in: source.handle, after: position)
            }
            progress.update(log.counts, place(position, pending))
            while let page = try nextPage(after: position) {
                try Task.checkCancellation()
                log = try await copy(page, log)
                position = page.through
                pending = max(0, pending - page.seen)
                progress.update(log.counts, place(position, pending))
            }
            guard isContinuous, await waiting.next() != nil else { break }
        }
        try Task.checkCancellation()
        return log.answer
    }

    private func place(_ position: UInt64, _ pending: Int) -> ReplicationTask.Position {
        let last = source.store.lastSequence(source.handle)
        return ReplicationTask.Position(
            source: source.changeNumber(last),
            through: source.changeNumber(position),
            pending: pending
        )
    }

    /// The next changes; nil if there are none.
    private func nextPage(after position: UInt64) throws -> Page? {
        let end = source.store.lastSequence(source.handle)
        guard end > position else { return nil }
        var (records, bytes, seen): ([DocumentRecord], Int, Int) = ([], 0, 0)
        var through: UInt64?
        try source.store.readRows { view in
            try view.changes(in: source.handle, since: position) { record in
                guard record.sequence <= end else { return false }
                seen += 1
                var isWanted = true
                if case .ids(let ids) = filter { isWanted = ids.contains(record.id) }
                if isWanted {
                    records.append(record)
                    bytes += record.body.bytes.count
                }
                let isFull =
                    records.count >= Self.pageSize || bytes >= Self.pageBytes || seen >= Self.maximumSeen
                if isFull { through = record.sequence }
                return !isFull
            }
        }
        var page = Page(seen: seen, through: through ?? end)
        let wanted = try records.map { record in
            let leaves = try leaves(of: record).filter {
                filter.passes(record.id, $0.id, isDeleted: $0.isDeleted, $0.body ?? .emptyObject)
            }
            return (id: record.id, leaves: leaves.map(\.id))
        }
        page.checked = wanted.reduce(0) { $0 + $1.leaves.count }
        page.missing = try target.store.readRows { view in
            try wanted.compactMap { id, leaves in
                let known = try view.record(id, in: target.handle).map {
                    try DocumentBranches(of: view.whole($0, ifNamedIn: leaves, in: target.handle))
                }
                let missing = leaves.filter { !(known?.contains($0) ?? false) }
                return missing.isEmpty ? nil : (id, missing)
            }
        }
        return page
    }

    /// The leaves that are replicated.
    private func leaves(of record: DocumentRecord) throws -> [DocumentBranch] {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        if let expires = record.expires, expires <= now { return [] }
        let leaves = try DocumentBranches(of: record).leaves
        return winnersOnly ? Array(leaves.prefix(1)) : leaves
    }

    /// Copies leaves as they are now. A leaf that was replaced meanwhile comes with a later change.
    private func copy(_ page: Page, _ log: ReplicationLog) async throws -> ReplicationLog {
        try await target.store.writeFromTask(within: nil) { transaction in
            var log = log
            log.counts.checked += page.checked
            for (id, wanted) in page.missing {
                guard let record = try transaction.record(id, in: source.handle) else { continue }
                let tree = try record.encodedTree.map { _ in try record.tree() }
                guard !record.isDamaged(in: tree) else {
                    log.counts.failures += 1
                    continue
                }
                let named = Set(wanted)
                let whole = try transaction.whole(record, in: source.handle)
                let leaves = try DocumentBranches(of: whole).leaves.filter { named.contains($0.id) }
                let branches = leaves.compactMap { leaf in
                    leaf.body.map {
                        ReceivedBranch(
                            history: leaf.history,
                            body: $0,
                            isDeleted: leaf.isDeleted
                        )
                    }
                }
                let results = try transaction.insertBranches(branches, of: id, in: target.handle)
                let written = results.count { if case .success = $0 { true } else { false } }
                log.counts.missing += branches.count
                log.counts.read += branches.count
                log.counts.written += written
                log.counts.failures += leaves.count - written
            }
            log.advance(to: source.sequence(page.through))
            try log.save(transaction)
            return log
        }
    }
}
