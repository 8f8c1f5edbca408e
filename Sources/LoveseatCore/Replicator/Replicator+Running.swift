import Logging
import LoveseatAssertions
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Synchronization

extension Replicator {
    /// Runs from a start to the next stop.
    func run(_ reset: ActivePlan.Reset) async {
        LogDomain.replicator.log(.info, "\(self): starting\(reset != .none ? " anew" : "")")
        let error = await attempts(reset)
        if let error {
            LogDomain.replicator.log(.error, "\(self): stopped: \(error.message) (\(error.code))")
        } else {
            LogDomain.replicator.log(.info, "\(self): stopped")
        }
        config.collections.first?.collection.database.session.release(self)
        let (status, feeds, documentFeeds, blobFeeds) = state.withLock { state in
            let status = Status(activity: .stopped, progress: state.status.progress, error: error)
            state.status = status
            state.task = nil
            return (
                status, state.statusFeeds.removeAll(), state.documentFeeds.removeAll(),
                state.blobFeeds.removeAll()
            )
        }
        for feed in feeds {
            feed.push(status)
            feed.finish()
        }
        for feed in documentFeeds { feed.finish() }
        for feed in blobFeeds { feed.finish() }
    }

    /// Connects until a connection ends normally, an error is final, or the replicator is stopped.
    private func attempts(_ reset: ActivePlan.Reset) async -> LoveseatError? {
        do throws(LoveseatError) {
            try config.validate()
            try config.collections.first?.collection.database.session.adopt(self)
        } catch { return error }
        guard let endpoint = config.target as? any PeerEndpoint else {
            return LoveseatError(.invalidParameter, "a replicator cannot use this endpoint")
        }
        let policy = RetryPolicy(
            isContinuous: config.continuous,
            maxAttempts: config.maxAttempts,
            maxWait: config.maxAttemptWaitTime == 0
                ? nil : UInt(min(config.maxAttemptWaitTime, 1e9).rounded(.up)),
            reconnectsAfterGoingAway: config.reconnectsAfterGoingAway
        )
        var steps = ReplicationSupervisor.Steps(
            connect: { [self] isFirst in
                await fetchPostponed()
                let request = try request { [self] () throws(LoveseatError) in
                    try work(isFirst ? reset : .none)
                }
                return try await endpoint.replicate(with: request)
            }
        )
        steps.networkChanges = { endpoint.networkChanges() }
        steps.connectsAgain = { [self] in state.withLock { !$0.postponed.isEmpty } }
        steps.report = { [self] in handle($0) }
        return await supervisor.run(policy, steps)
    }

    private func handle(_ event: ReplicationSupervisor.Event) {
        switch event {
        case .connecting: setStatus(.connecting)
        case .suspended: setStatus(.offline)
        case .disconnected: state.withLock { $0.documentEvents }?.flush()
        case .networkChanged: LogDomain.network.log(.debug, "\(self): the network changed")
        case .waiting(let failure, let seconds):
            LogDomain.replicator.log(
                .notice,
                "\(self): offline: \(failure.message) (\(failure.code)); next attempt in \((seconds * 10).rounded() / 10) s"
            )
            setStatus(.offline, error: failure, wait: seconds)
        }
    }

    /// A request to the endpoint.
    func request(_ begin: @escaping @Sendable () throws(LoveseatError) -> sending ReplicationRequest.Work)
        throws(LoveseatError) -> ReplicationRequest
    {
        ReplicationRequest(
            options: try connectionOptions(),
            runtime: runtime,
            compressionLevel: config.compressionLevel,
            allowsDeltas: config.enableDeltaSync,
            recordName: { [config] name throws(LoveseatError) in
                guard let database = config.collections.first?.collection.database,
                    let endpoint = config.target as? any PeerEndpoint
                else { return impossible("no collections or endpoint for \(name)") }
                try ReplicationSetup.record(name, of: endpoint.remoteName, try database.store)
            },
            begin: begin
        )
    }

    private func connectionOptions() throws(LoveseatError) -> ConnectionOptions {
        var options = ConnectionOptions()
        options.authenticator = config.authenticator
        options.headers = config.headers ?? [:]
        options.heartbeat =
            config.heartbeat == 0 ? ReplicatorConfiguration.defaultHeartbeat : config.heartbeat
        options.networkInterface = config.networkInterface
        options.cookies = try cookieStorage()
        options.pinnedServerCertificate = config.pinnedServerCertificate
        options.pinnedServerFingerprint = try config.pinnedFingerprint()
        options.acceptsOnlySelfSigned = config.acceptOnlySelfSignedServerCertificate
        options.rootCertificates = config.rootCertificates
        options.proxy = config.proxy
        options.sawServerCertificate = { [weak self] certificate in
            self?.state.withLock { $0.serverCertificate = certificate }
        }
        return options
    }

    /// The work for one connection.
    private func work(_ reset: ActivePlan.Reset) throws(LoveseatError) -> sending ReplicationRequest.Work {
        let setup = try ReplicationSetup(config)
        try setup.recordUser()
        var plan = setup.plan
        plan.reset = reset
        let worker = ConflictWorker(store: setup.store, config: config, runtime: runtime)
        let events = DocumentEvents(runtime) { [weak self] in self?.deliver($0) }
        state.withLock { $0.documentEvents = events }
        var hooks = ReplicationHooks()
        hooks.notify = { [weak self] in self?.notify($0) }
        hooks.resolve = { await worker.resolve($0) }
        hooks.fetch = { [weak self] in await self?.fetch($0, setup, worker, events) ?? false }
        hooks.report = { [weak self] in self?.received($0, events, setup) }
        return ReplicationRequest.Work(
            plan: plan,
            store: setup.store,
            replicas: setup.replicas,
            observed: setup.handles,
            hooks: hooks
        )
    }

    func received(
        _ report: ReplicationReport,
        _ events: DocumentEvents,
        _ setup: ReplicationSetup
    ) {
        switch report {
        case .activity(let isBusy, let progress):
            events.flush()
            setStatus(isBusy ? .busy : .idle, Progress(progress))
        case .document(let event):
            if let error = event.error, event.isPush {
                DocumentFailure.notePush(error, of: event.documentID, event.collection, setup)
            }
            let name = config.collections[event.collection].collection.handle.name
            log(event, name)
            if state.withLock({ $0.documentFeeds.isEmpty }) { return }
            var flags: DocumentFlags = []
            if event.isDeleted { flags.insert(.deleted) }
            if event.isAccessRemoved { flags.insert(.accessRemoved) }
            let document = ReplicatedDocument(
                id: event.documentID,
                scope: name.scope,
                collection: name.name,
                flags: flags,
                error: event.error
            )
            events.add(document, isPush: event.isPush)
        case .blob(let event):
            event.logFailure(in: .replicator, of: description)
            let transfer = BlobTransfer(event)
            for feed in state.withLock({ $0.blobFeeds.all }) { feed.push(transfer) }
        case .checkpointNotSaved(let error):
            LogDomain.replicator.log(
                .warning,
                "\(self): the checkpoint is not saved, some work will be done again: \(error.message) (\(error.code))"
            )
        case .propertiesLeftOut(let collection, let id, let names):
            let name = config.collections[collection].collection.handle.name
            LogDomain.replicator.log(
                .warning,
                "\(self): \(name.fullName)/\(id) is stored without \(names.joined(separator: ", ")): names that begin with _ belong to replication; an edit here removes these properties at the peer too"
            )
        case .failure: break
        }
    }

    /// Keeps a message about the peer for the user.
    func notify(_ text: String) {
        lastNotice.withLock { $0 = text }
        LogDomain.replicator.log(.warning, "\(self): \(text)")
    }

    /// A message about the peer for the user; nil if there is none.
    package var notice: String? { lastNotice.withLock { $0 } }

    private func log(_ event: DocumentEvent, _ name: CollectionName) {
        let verb = event.isPush ? "push" : "pull"
        if let error = event.error {
            LogDomain.replicator.log(
                .warning,
                "\(self): cannot \(verb) \(name.fullName)/\(event.documentID): \(error.message) (\(error.code))"
            )
        } else {
            let what = event.isAccessRemoved ? ", access removed" : event.isDeleted ? ", deleted" : ""
            LogDomain.replicator.log(
                .debug,
                "\(self): \(verb)ed \(name.fullName)/\(event.documentID)\(what)"
            )
        }
    }

    func deliver(_ batch: DocumentReplication) {
        for feed in state.withLock({ $0.documentFeeds.all }) { feed.push(batch) }
    }
}
