import Logging
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Synchronization

extension Replicator {
    /// Runs from a start to the stop that follows it.
    func run(_ reset: ActivePlan.Reset) async {
        LogDomain.replicator.log(.info, "\(self): starting\(reset != .none ? " anew" : "")")
        let error = await attempts(reset)
        if let error {
            LogDomain.replicator.log(.error, "\(self): stopped: \(error.message) (\(error.code))")
        } else {
            LogDomain.replicator.log(.info, "\(self): stopped")
        }
        config.collections.first?.collection.database.release(self)
        let (status, feeds, documentFeeds) = state.withLock { state in
            let status = Status(activity: .stopped, progress: state.status.progress, error: error)
            state.status = status
            (state.task, state.conversation, state.connecting) = (nil, nil, nil)
            defer { (state.statusFeeds, state.documentFeeds) = ([:], [:]) }
            return (status, Array(state.statusFeeds.values), Array(state.documentFeeds.values))
        }
        for feed in feeds {
            feed.push(status)
            feed.finish()
        }
        for feed in documentFeeds { feed.finish() }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }
    private var isSuspended: Bool { state.withLock { $0.isSuspended } }

    /// Connects until a connection ends well, an error is final, or somebody stops it.
    private func attempts(_ reset: ActivePlan.Reset) async -> LoveseatError? {
        do throws(LoveseatError) {
            try config.validate()
            try config.collections.first?.collection.database.adopt(self)
        } catch { return error }
        var retry = RetryPolicy(
            isContinuous: config.continuous,
            maxAttempts: config.maxAttempts,
            maxWait: config.maxAttemptWaitTime == 0
                ? nil : UInt(min(config.maxAttemptWaitTime, 1e9).rounded(.up)),
            reconnectsAfterGoingAway: config.reconnectsAfterGoingAway
        )
        var reset = reset
        while !isStopping {
            guard !isSuspended else {
                setStatus(.offline)
                _ = await gate.wait()
                continue
            }
            setStatus(.connecting)
            let (failure, wasConnected) = await attempt(reset)
            if wasConnected {
                retry.connected()
                reset = .none
            }
            if isStopping { return nil }
            if isSuspended { continue }
            guard let failure else {
                if state.withLock({ !$0.postponed.isEmpty }) { continue }
                return nil
            }
            guard let wait = retry.wait(after: failure) else { return failure }
            let seconds = RetryPolicy.spread(wait, after: failure, random: .random(in: -1...1))
            LogDomain.replicator.log(
                .notice,
                "\(self): offline: \(failure.message) (\(failure.code)); next attempt in \((seconds * 10).rounded() / 10) s"
            )
            setStatus(.offline, error: failure)
            if await waitToRetry(seconds) { retry.connected() }
        }
        return nil
    }

    /// Waits for the next attempt.
    ///
    /// - Returns: whether it comes early, because the network changed or somebody asked for it: the failures before say
    ///   nothing then.
    private func waitToRetry(_ seconds: Double) async -> Bool {
        let changes = (config.target as? any PeerEndpoint)?.networkChanges()
        let watcher = changes.map { changes in
            Task {
                for await _ in changes {
                    LogDomain.network.log(.debug, "\(self): the network changed")
                    gate.open()
                }
            }
        }
        defer { watcher?.cancel() }
        return await gate.wait(seconds: seconds)
    }

    /// Makes one connection and replicates over it.
    private func attempt(_ reset: ActivePlan.Reset) async -> (failure: LoveseatError?, wasConnected: Bool) {
        guard let endpoint = config.target as? any PeerEndpoint else {
            return (LoveseatError(.invalidParameter, "a replicator cannot use this endpoint"), false)
        }
        await fetchPostponed()
        let connection: PeerConnection
        do { connection = try await connect(endpoint) } catch {
            return (
                (error as? LoveseatError) ?? LoveseatError(.unexpectedError, "cannot connect: \(error)"),
                false
            )
        }
        do throws(LoveseatError) {
            let events = DocumentEvents { [weak self] in self?.deliver($0) }
            let conversation = try makeConversation(connection.channel, events, reset)
            let mustStop = state.withLock { state in
                state.conversation = conversation
                return state.isStopping || state.isSuspended
            }
            if mustStop { await conversation.stop() }
            let failure = await conversation.run(connection.negotiated)
            state.withLock { $0.conversation = nil }
            events.flush()
            return (failure, true)
        } catch {
            await connection.channel.close(code: 1001, reason: "")
            return (error, false)
        }
    }

    /// Connects, until somebody stops or suspends the replicator.
    private func connect(_ endpoint: any PeerEndpoint) async throws -> PeerConnection {
        let options = try connectionOptions()
        let task = Task { try await endpoint.connect(options) }
        let mustStop = state.withLock { state in
            state.connecting = task
            return state.isStopping || state.isSuspended
        }
        if mustStop { task.cancel() }
        defer { state.withLock { $0.connecting = nil } }
        return try await task.value
    }

    func connectionOptions() throws(LoveseatError) -> ConnectionOptions {
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

    private func makeConversation(
        _ channel: any LoveseatReplication.MessageChannel,
        _ events: DocumentEvents,
        _ reset: ActivePlan.Reset
    ) throws(LoveseatError) -> Conversation {
        let setup = try ReplicationSetup(config)
        try setup.recordUser()
        var plan = setup.plan
        plan.reset = reset
        let worker = ConflictWorker(store: setup.store, config: config)
        return Conversation(
            session: ReplicationSession(active: plan),
            replica: setup.replica,
            store: setup.store,
            collections: setup.handles,
            channel: channel,
            // Within a process nothing is saved by it.
            compressionLevel: config.target is DatabaseEndpoint ? 0 : config.compressionLevel,
            resolve: { await worker.resolve($0) },
            fetch: { [weak self] in await self?.fetch($0, setup, worker, events) ?? false },
            report: { [weak self] in self?.heard($0, events, setup) }
        )
    }

    func heard(
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
            guard state.withLock({ !$0.documentFeeds.isEmpty }) else { return }
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
        case .checkpointNotSaved(let error):
            LogDomain.replicator.log(
                .warning,
                "\(self): the checkpoint is not saved, some work will be done again: \(error.message) (\(error.code))"
            )
        case .failure: break
        }
    }

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
        for feed in state.withLock({ Array($0.documentFeeds.values) }) { feed.push(batch) }
    }
}
