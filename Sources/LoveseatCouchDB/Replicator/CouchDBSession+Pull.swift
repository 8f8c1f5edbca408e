import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Pulls all leaves that are not here, with their histories (protocol/couchdb.md §3.1, §3.6).
extension CouchDBSession {
    /// When a continuous pull asks again for what could not be fetched.
    private static let firstRetryDelay = Duration.seconds(2)
    private static let maximumRetryDelay = Duration.seconds(600)
    /// How often a remote is asked again that lists nothing, although it says that changes follow.
    private static let maximumEmptyAnswers = 4

    func pull(_ index: Int) async throws {
        let lane = lanes[index]
        setBusy(true)
        try await retryUnreadable(lane)
        lane.position = lane.checkpoint.checkpoint.remote
        let earlier = try failures(lane)
        if lane.position == nil {
            // Everything is listed anyway.
            lane.missing.insert(contentsOf: earlier)
        } else {
            try await retry(earlier, lane)
        }
        var isWaiting = false
        while true {
            var query = ChangesQuery(lane.selection, since: lane.position, limit: ChangesQuery.pageSize)
            query.asksRevocations = plan.autoPurges
            if isWaiting { query.heartbeat = heartbeat }
            let begin = runtime.uptime()
            guard let page = try await page(query, index, isWaiting: isWaiting) else {
                try await retryFailures(lane)
                continue
            }
            if try lacksRows(page, lane) {
                try await runtime.clock.sleep(for: .milliseconds(125 << lane.emptyAnswers))
                continue
            }
            if isWaiting, page.isEmpty, runtime.uptime() - begin < .seconds(1) {
                // A remote that does not wait is not asked all the time.
                try await runtime.clock.sleep(for: .seconds(1))
            }
            if page.isEmpty {
                lane.repeated = RepeatedPages()
                if let next = page.next { advance(lane, to: next, past: []) }
                if !isWaiting { try await retry(lane.missing.sorted, lane) }
                if !plan.isContinuous {
                    await saveCheckpoint(lane, isLast: true)
                    return setBusy(false)
                }
                if !isWaiting {
                    if try failures(lane).isEmpty {
                        lane.retryDelay = nil
                    } else if lane.retryDelay == nil {
                        lane.retryDelay = Self.firstRetryDelay
                    }
                    await saveCheckpoint(lane, isLast: true)
                    setBusy(false)
                    isWaiting = true
                }
                try Task.checkCancellation()
                continue
            }
            if isWaiting { setBusy(true) }
            isWaiting = false
            try await pull(page, lane)
            await saveCheckpoint(lane)
        }
    }

    /// Asks again for what could not be fetched, while the feed waits.
    private func retryFailures(_ lane: Lane) async throws {
        setBusy(true)
        try await retry(try failures(lane), lane)
        lane.retryDelay = lane.retryDelay.map { min($0 * 2, Self.maximumRetryDelay) }
        if lane.unsettled.isEmpty { lane.retryDelay = nil }
        await saveCheckpoint(lane, isLast: true)
        setBusy(false)
    }

    /// Whether the remote says that changes follow, but lists none of them. A change may have come while it answered. Where documents are
    /// selected, a remote may also count those that are not (protocol/couchdb-corrections.md 33).
    ///
    /// - Throws: `remoteError` if that is so again and again: what follows would be passed over.
    private func lacksRows(_ page: RemoteDatabase.ChangesPage, _ lane: Lane) throws -> Bool {
        guard page.isEmpty, case .all = lane.selection, let pending = page.end.pending, pending > 0 else {
            lane.emptyAnswers = 0
            return false
        }
        lane.emptyAnswers += 1
        guard lane.emptyAnswers <= Self.maximumEmptyAnswers else {
            throw LoveseatError(
                .remoteError,
                "the peer's list of changes is empty, although the peer says that \(pending.counted("change")) follow"
            )
        }
        return true
    }

    /// Pulls what a page lists, and goes on after it.
    private func pull(_ page: RemoteDatabase.ChangesPage, _ lane: Lane) async throws {
        // The sequence of the query is another one if the remote did not know it any more.
        let since = lane.position
        guard let next = page.next, next != since else {
            throw LoveseatError(.remoteError, "the peer's list of changes does not go on")
        }
        try lane.repeated.note(page.changes, page.unreadable)
        report(page.unreadable, lane)
        try await pull(page.changes, lane)
        advance(lane, to: next, past: page.unreadable.map { $0.after ?? since })
    }

    /// Goes on after a sequence. The checkpoint follows, unless it is held. `places`: where rows are before it that could not be read.
    private func advance(_ lane: Lane, to sequence: RemoteSequence, past places: [RemoteSequence?]) {
        lane.position = sequence
        lane.checkpoint.advance(to: sequence, past: places)
    }

    /// The next part of the feed; nil when it is time to ask again for what could not be fetched.
    private func page(_ query: ChangesQuery, _ index: Int, isWaiting: Bool) async throws
        -> RemoteDatabase.ChangesPage?
    {
        guard isWaiting, let delay = lanes[index].retryDelay else {
            return try await changes(query, at: index)
        }
        let clock = runtime.clock
        return try await withThrowingTaskGroup(of: RemoteDatabase.ChangesPage?.self) { group in
            group.addTask { try await self.changes(query, at: index) }
            group.addTask {
                try await clock.sleep(for: delay)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private func changes(_ query: ChangesQuery, at index: Int) async throws -> RemoteDatabase.ChangesPage {
        try await changes(query, of: lanes[index])
    }

    private func changes(_ query: ChangesQuery, of lane: Lane) async throws -> RemoteDatabase.ChangesPage {
        do { return try await lane.remote.changes(query) } catch let failure as RemoteFailure {
            // A sequence that the remote does not know any more.
            guard failure.status == 400, query.since != nil, failure.reason.lowercased().contains("since")
            else {
                throw failure.failure(of: "_changes")
            }
            lane.checkpoint = RemoteCheckpoint()
            lane.position = nil
            var query = query
            query.since = nil
            return try await lane.remote.changes(query)
        }
    }

    // MARK: Documents that could not be fetched

    /// The documents that could not be pulled, and that this replication is to pull.
    private func failures(_ lane: Lane) throws -> [String] {
        try lane.replica.failures().filter { lane.documentIDs?.contains($0) ?? true }
    }

    /// Asks again for documents of which a revision could not be fetched or stored. A document is settled once the remote lists no revision
    /// of it that is missing here.
    private func retry(_ ids: [String], _ lane: Lane) async throws {
        lane.missing = []
        if ids.isEmpty { return }
        lane.unsettled.subtract(DocumentSet(ids))
        let listed = try await lane.remote.changes(of: ids)
        try await pull(listed.changes, lane)
        for id in lane.missing.sorted {
            let error = LoveseatError(
                .httpNotFound,
                "the peer lists a revision that it does not have now: it is asked for again in the next run"
            )
            report(id, lane, isPush: false, isDeleted: false, error: error)
        }
        lane.missing = []
        // The row of a document that is not listed may be one that cannot be read.
        let named = listed.isReadable ? DocumentSet(ids) : DocumentSet(listed.changes.map(\.documentID))
        for id in ids where !named.contains(id) {
            lane.unsettled.insert(id)
            let error = LoveseatError(
                .remoteError,
                "the peer's list of changes cannot be read where this document may be: it is asked for again in the next run"
            )
            report(id, lane, isPush: false, isDeleted: false, error: error)
        }
        try lane.replica.forgetFailures(ids.filter { !lane.unsettled.contains($0) })
    }

    /// Reads those places of the feed again where rows could not be read in earlier sessions. A place is forgotten once its rows were read,
    /// or are gone.
    private func retryUnreadable(_ lane: Lane) async throws {
        for place in lane.checkpoint.unreadable {
            // The unreadable rows of a place are at most one page after it.
            let query = ChangesQuery(lane.selection, since: place, limit: ChangesQuery.pageSize)
            let page = try await changes(query, of: lane)
            let known = lane.checkpoint.unreadable
            // The remote does not know the sequence any more: everything is listed anew.
            guard known.contains(place) else { return }
            // The rows after the checkpoint's are listed again.
            let end = lane.checkpoint.checkpoint.remote
            let after = page.changes.map(\.sequence).drop { $0 != end }
            let rows = page.unreadable.filter { row in !after.contains { $0 == row.after } }
            try await pull(page.changes, lane)
            if page.isWhole {
                lane.checkpoint.replaceUnreadable(place, with: rows.map { $0.after ?? place })
            }
            // The rows of other places are reported when these are read.
            let noted = lane.checkpoint.unreadable.filter { !known.contains($0) }
            report(rows.filter { row in row.after.map { noted.contains($0) } ?? true }, lane)
        }
    }

    private func report(_ rows: [UnreadableChange], _ lane: Lane) {
        for row in rows {
            let error = LoveseatError(
                .remoteError,
                "this row of the peer's list of changes cannot be read (\(row.reason)): it is read again in the next run"
            )
            report(row.name, lane, isPush: false, isDeleted: false, error: error)
        }
    }
}
