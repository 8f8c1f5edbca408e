import Logging
import LoveseatModel
package import LoveseatReplication
import LoveseatStorage
import Synchronization

/// A document that was fetched while no other connection was open.
struct FetchedDocument: Hashable {
    let collection: Int
    let documentID: String
}

extension Replicator {
    /// Pulls documents by their IDs over another connection, since a peer serves one subscription on each.
    ///
    /// A peer that takes one connection at a time is asked when this one has ended, and then connected to again.
    ///
    /// - Returns: whether the peer was asked for all of them.
    func fetch(
        _ notice: FetchNotice,
        _ setup: ReplicationSetup,
        _ worker: ConflictWorker,
        _ events: DocumentEvents
    ) async -> Bool {
        guard (config.target as? any PeerEndpoint)?.takesSecondConnection == false else {
            return await fetchNow(notice, setup, worker, events)
        }
        return state.withLock { state in
            func outcome(_ id: String) -> Bool? {
                state.fetchedAside[FetchedDocument(collection: notice.collection, documentID: id)]
            }
            let new = notice.documentIDs.filter { outcome($0) == nil }
            if !new.isEmpty {
                state.postponed.append(FetchNotice(collection: notice.collection, documentIDs: new))
            }
            return notice.documentIDs.allSatisfy { outcome($0) == true }
        }
    }

    /// Fetches documents that had to wait for the end of the last connection. Each is tried once per run.
    func fetchPostponed() async {
        let notices = state.withLock { state in
            defer { state.postponed = [] }
            return state.postponed
        }
        if notices.isEmpty { return }
        // If the database was closed or fails, the connection that follows ends with that error, and the documents stay pending.
        guard let setup = try? ReplicationSetup(config) else { return }
        let worker = ConflictWorker(store: setup.store, config: config, runtime: runtime)
        let events = DocumentEvents(runtime) { [weak self] in self?.deliver($0) }
        for notice in notices {
            let isComplete = await fetchNow(notice, setup, worker, events)
            state.withLock { state in
                for id in notice.documentIDs {
                    let document = FetchedDocument(collection: notice.collection, documentID: id)
                    state.fetchedAside[document] = isComplete
                }
            }
        }
        events.flush()
    }

    private func fetchNow(
        _ notice: FetchNotice,
        _ setup: ReplicationSetup,
        _ worker: ConflictWorker,
        _ events: DocumentEvents
    ) async -> Bool {
        let failed: DocumentSet
        do { failed = try await pull(notice, setup, worker, events) } catch {
            // The documents stay pending, and the next replication asks for them.
            if Task.isCancelled { return false }
            let count = notice.documentIDs.count.counted("document")
            LogDomain.replicator.log(
                .warning,
                "\(self): cannot fetch \(count) over another connection: \(error)"
            )
            return false
        }
        // A document that the peer no longer shows did not fail.
        let settled = notice.documentIDs.filter { !failed.contains($0) }
        // The next run finds the rest, so a failure here changes nothing.
        try? DocumentFailure.forgetPulls(
            settled,
            in: setup.handles[notice.collection],
            remote: setup.remote,
            setup.store
        )
        return true
    }

    /// Pulls documents over another connection.
    ///
    /// - Returns: The documents that failed.
    /// - Throws: the reason why the connection failed: the peer may be gone, or refuse a second one.
    private func pull(
        _ notice: FetchNotice,
        _ setup: ReplicationSetup,
        _ worker: ConflictWorker,
        _ events: DocumentEvents
    ) async throws -> DocumentSet {
        let index = notice.collection
        let failed = Mutex<DocumentSet>([])
        let request = try request { [self] () throws(LoveseatError) in
            var hooks = ReplicationHooks()
            hooks.resolve = {
                await worker.resolve(
                    ConflictNotice(collection: index, documentID: $0.documentID, peer: $0.peer)
                )
            }
            hooks.report = { [weak self] report in
                if case .document(let event) = report, event.error != nil {
                    failed.withLock { _ = $0.insert(event.documentID) }
                }
                // Other reports are about a connection that the app did not open.
                guard let moved = report.moved(to: index) else { return }
                self?.received(moved, events, setup)
            }
            return ReplicationRequest.Work(
                plan: setup.fetchingPlan(notice),
                store: setup.store,
                replicas: setup.fetchingReplicas(index),
                observed: [],
                hooks: hooks
            )
        }
        guard let endpoint = config.target as? any PeerEndpoint else {
            throw LoveseatError(.invalidParameter, "a replicator cannot use this endpoint")
        }
        let replication = try await endpoint.replicate(with: request)
        let failure = await withTaskCancellationHandler {
            await replication.run()
        } onCancel: {
            runtime.task { await replication.stop() }
        }
        if let failure { throw failure }
        try Task.checkCancellation()
        return failed.withLock { $0 }
    }
}

extension ReplicationSetup {
    /// Marks made by a fetch are not covered by the checkpoint of the session that it serves.
    private func fetchID(_ index: Int) -> String { checkpointIDs[index] + "/fetch" }

    fileprivate func fetchingPlan(_ notice: FetchNotice) -> ActivePlan {
        var binding = ActivePlan.Binding(
            name: handles[notice.collection].name,
            checkpointID: fetchID(notice.collection)
        )
        binding.documentIDs = notice.documentIDs
        binding.filtersPull = config.collections[notice.collection].pullFilter != nil
        var plan = ActivePlan(collections: [binding], pushes: false, pulls: true, isContinuous: false)
        plan.isFetch = true
        plan.autoPurges = config.enableAutoPurge
        return plan
    }

    fileprivate func fetchingReplicas(_ index: Int) -> sending DatabaseReplicas {
        DatabaseReplicas(
            store: store,
            collections: [handles[index]],
            checkpointIDs: [fetchID(index)],
            remote: remote,
            rules: [rules[index]],
            nowMilliseconds: { ExpirationTimer.now }
        )
    }
}

extension ReplicationReport {
    /// The same report for another collection of the session; nil for a report about the connection.
    package func moved(to collection: Int) -> ReplicationReport? {
        switch self {
        case .document(var event):
            event.collection = collection
            return .document(event)
        case .blob(var event):
            event.collection = collection
            return .blob(event)
        case .propertiesLeftOut(_, let id, let names):
            return .propertiesLeftOut(collection: collection, documentID: id, names: names)
        case .activity, .checkpointNotSaved, .failure: return nil
        }
    }
}
