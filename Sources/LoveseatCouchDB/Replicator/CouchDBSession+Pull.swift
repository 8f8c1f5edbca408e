import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// What is pulled: all leaves that are not here, with their histories (protocol/couchdb.md §3.1, §3.6).
extension CouchDBSession {
    private static let pageSize = 500
    /// When a continuous pull asks again for what could not be fetched.
    private static let firstRetryDelay = Duration.seconds(2)
    private static let maximumRetryDelay = Duration.seconds(600)

    func pull(_ index: Int) async throws {
        let lane = lanes[index]
        setBusy(true)
        try await retryUnreadable(lane)
        let earlier = try failures(lane)
        if lane.checkpoint.checkpoint.remote == nil {
            // Everything is listed anyway.
            lane.missing.insert(contentsOf: earlier)
        } else {
            try await retry(earlier, lane)
        }
        var isWaiting = false
        while true {
            var query = ChangesQuery(
                lane.selection,
                since: lane.checkpoint.checkpoint.remote,
                limit: Self.pageSize
            )
            query.asksRevocations = plan.autoPurges
            if isWaiting { query.heartbeat = heartbeat }
            let begin = runtime.uptime()
            guard let page = try await page(query, index, isWaiting: isWaiting) else {
                setBusy(true)
                try await retry(try failures(lane), lane)
                lane.retryDelay = lane.retryDelay.map { min($0 * 2, Self.maximumRetryDelay) }
                if lane.unsettled.isEmpty { lane.retryDelay = nil }
                await saveCheckpoint(lane, isLast: true)
                setBusy(false)
                continue
            }
            if isWaiting, page.isEmpty, runtime.uptime() - begin < .seconds(1) {
                // A remote that does not wait is not asked all the time.
                try await runtime.clock.sleep(for: .seconds(1))
            }
            let next = page.end.lastSequence ?? page.changes.last?.sequence
            if page.isEmpty {
                lane.checkpoint.advance(to: next)
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
            guard next != nil, next != query.since else {
                throw LoveseatError(.remoteError, "the peer's list of changes does not go on")
            }
            if isWaiting { setBusy(true) }
            isWaiting = false
            note(page.unreadable, since: query.since, lane)
            try await pull(page.changes, lane)
            lane.checkpoint.advance(to: next)
            await saveCheckpoint(lane)
        }
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
            lane.checkpoint = RemoteCheckpoint(Checkpoint(completed: lane.checkpoint.checkpoint.completed))
            var query = query
            query.since = nil
            return try await lane.remote.changes(query)
        }
    }

    // MARK: What could not be fetched

    /// The documents that could not be pulled, and that this replication is to pull.
    private func failures(_ lane: Lane) throws -> [String] {
        try replica.failures(in: lane.index).filter { lane.documentIDs?.contains($0) ?? true }
    }

    /// Asks again for documents of which a revision could not be fetched or stored. Those of which the remote lists nothing more that is
    /// not here are settled.
    private func retry(_ ids: [String], _ lane: Lane) async throws {
        lane.missing = []
        if ids.isEmpty { return }
        lane.unsettled.subtract(DocumentSet(ids))
        try await pull(try await lane.remote.changes(of: ids), lane)
        for id in lane.missing.sorted {
            let error = LoveseatError(
                .httpNotFound,
                "the peer lists a revision that it does not have now: it is asked for again in the next run"
            )
            report(id, lane, isPush: false, isDeleted: false, error: error)
        }
        lane.missing = []
        try replica.forgetFailures(ids.filter { !lane.unsettled.contains($0) }, in: lane.index)
    }

    /// Reads those places of the feed again where rows could not be read in earlier sessions.
    private func retryUnreadable(_ lane: Lane) async throws {
        let places = lane.checkpoint.unreadable
        lane.checkpoint.unreadable = []
        for place in places {
            let query = ChangesQuery(lane.selection, since: place, limit: 100)
            let page = try await changes(query, of: lane)
            note(page.unreadable, since: place, lane)
            try await pull(page.changes, lane)
        }
    }

    private func note(_ rows: [UnreadableChange], since: RemoteSequence?, _ lane: Lane) {
        for row in rows {
            lane.checkpoint.noteUnreadable(after: row.after ?? since)
            let error = LoveseatError(
                .remoteError,
                "this row of the peer's list of changes cannot be read (\(row.reason)): it is read again in the next run"
            )
            report(row.name, lane, isPush: false, isDeleted: false, error: error)
        }
    }
}
