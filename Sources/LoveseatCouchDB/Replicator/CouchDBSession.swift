import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// One replication with a remote over CouchDB's wire (protocol/couchdb.md §3.1).
actor CouchDBSession: Replication {
    /// The state of one collection.
    final class Lane {
        let index: Int
        let name: CollectionName
        let handle: CollectionHandle
        let replica: any Replica
        let remote: RemoteDatabase
        let checkpointID: String
        let rules: CollectionRules
        let selection: ChangesQuery.Selection
        let documentIDs: DocumentSet?
        var checkpoints: CheckpointMachine
        /// How far the pull is.
        var checkpoint = RemoteCheckpoint()
        /// How far the remote's list of changes was read; nil for its beginning. The checkpoint is behind it while it is held.
        var position: RemoteSequence?
        /// How far both directions are.
        var progress: RemoteCheckpoint {
            var progress = checkpoint
            progress.checkpoint.completed = push.machine.completed
            return progress
        }
        /// Notices a list of changes that repeats itself.
        var repeated = RepeatedPages()
        /// How many answers in succession listed nothing, although changes follow.
        var emptyAnswers = 0
        /// Documents of which a revision could not be fetched, since they were listed last.
        var unsettled: DocumentSet = []
        /// Documents of which a revision is listed that the remote did not have when it was asked for.
        var missing: DocumentSet = []
        let push: Running<PushMachine>
        /// When a continuous pull asks again for what could not be fetched; nil if there is nothing.
        var retryDelay: Duration?
        /// Whether resolvers made changes after the push had ended.
        var hasResolved = false

        init(
            index: Int,
            name: CollectionName,
            handle: CollectionHandle,
            replica: any Replica,
            remote: RemoteDatabase,
            checkpointID: String,
            rules: CollectionRules,
            selection: ChangesQuery.Selection,
            documentIDs: DocumentSet?,
            source: any PushSource,
            plan: ActivePlan
        ) {
            self.index = index
            self.name = name
            self.handle = handle
            self.replica = replica
            self.remote = remote
            self.checkpointID = checkpointID
            self.rules = rules
            self.selection = selection
            self.documentIDs = documentIDs
            checkpoints = CheckpointMachine(replica, plan)
            push = Running(PushMachine(source, replica, collection: index))
        }
    }

    nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    let client: RemoteClient
    let runtime: ReplicationRuntime
    private let creates: Bool
    let plan: ActivePlan
    let store: DocumentStore
    let replicas: DatabaseReplicas
    let hooks: ReplicationHooks
    private(set) var lanes: [Lane]
    /// Why some collections are not replicated; nil if all are.
    private var omission: LoveseatError?
    /// How often a waiting remote shows that it is there, in milliseconds.
    let heartbeat: Int
    private var progress = ReplicationProgress()
    private var busy = 0
    private var work: Task<Void, any Error>?
    private var isStopping = false
    /// Why everything has to be compared anew; nil if it has not.
    private var lost: LoveseatError?

    init(
        _ work: sending ReplicationRequest.Work,
        client: RemoteClient,
        address: RemoteAddress,
        endpoint: CouchDBEndpoint,
        runtime: ReplicationRuntime,
        heartbeat: Double
    ) throws(LoveseatError) {
        executor = runtime.makeDriverExecutor()
        unownedExecutor = executor.asUnownedSerialExecutor()
        self.client = client
        self.runtime = runtime
        creates = endpoint.createsTarget
        (plan, store, hooks) = (work.plan, work.store, work.hooks)
        let (bindings, observed, rules) = (work.plan.collections, work.observed, work.replicas.rules)
        replicas = work.replicas
        let made = work.replicas.makeReplicas()
        let selector = try endpoint.localSelector
        self.heartbeat = Int(min(max(heartbeat, 1), 30) * 1_000)
        let selection = try endpoint.remoteSelection
        var lanes: [Lane] = []
        for (index, binding) in bindings.enumerated() {
            guard binding.channels.isEmpty else {
                throw LoveseatError(
                    .invalidParameter,
                    "a CouchDB has no channels: use a selector, a filter or document IDs"
                )
            }
            let ids = binding.documentIDs
            var chosen = selection
            if let ids, case .all = selection { chosen = .documents(ids) }
            let rules = index < rules.count ? rules[index] : CollectionRules()
            let documentIDs = ids.map { DocumentSet($0) }
            let source = LocalChanges(
                store,
                observed[index],
                rules,
                selector: selector,
                documentIDs: documentIDs,
                nowMilliseconds: replicas.nowMilliseconds
            )
            lanes.append(
                Lane(
                    index: index,
                    name: binding.name,
                    handle: observed[index],
                    replica: made[index],
                    remote: RemoteDatabase(
                        client: client,
                        path: endpoint.path(of: binding.name, at: address)
                    ),
                    checkpointID: RemoteRequest.checkpointName(binding.checkpointID),
                    rules: rules,
                    selection: chosen,
                    documentIDs: documentIDs,
                    source: source,
                    plan: plan
                )
            )
        }
        self.lanes = lanes
    }

    // MARK: Running

    /// Looks for the remote's databases, and reads the checkpoints.
    func open() async throws {
        for (lane, instance) in try await openDatabases() {
            try await readCheckpoint(lane, instance: instance)
        }
        if client.isGateway {
            hooks.notify(
                "the server is a Sync Gateway, whose conflicts, channels and revoked access this protocol does not know: use ws:// or wss:// instead of http:// or https:// in its URL"
            )
        }
        // Histories from CouchDB's peers are longer than our own.
        if store.revisionLimit < 1_000 {
            try await store.writeFromTask(within: nil) { try $0.setRevisionLimit(1_000) }
        }
    }

    /// The errors that concern one database, and not the remote as a whole. CouchDB refuses names by a 400.
    private static let lacksDatabase: [LoveseatError.Code] = [.init(10_400), .httpForbidden, .httpNotFound]

    /// Leaves out collections whose databases the remote does not have, unless it has none of them.
    ///
    /// - Returns: the others, each with the remote database's `instance_start_time`.
    private func openDatabases() async throws -> [(lane: Lane, instance: String?)] {
        var opened: [(lane: Lane, instance: String?)] = []
        var left: [(lane: Lane, error: LoveseatError)] = []
        for lane in lanes {
            do { opened.append((lane, try await lane.remote.open(creates: creates))) } catch let error
                as LoveseatError
            {
                guard Self.lacksDatabase.contains(error.code) else { throw error }
                left.append((lane, error))
            }
        }
        // The remote has a database for each collection.
        guard let first = left.first else { return opened }
        guard !opened.isEmpty else { throw first.error }
        let names = left.map(\.lane.name.path).joined(separator: ", ")
        let error = LoveseatError(
            first.error.code,
            "not replicated: \(names): \(first.error.message); choose databases for them"
        )
        if plan.isContinuous { hooks.notify(error.message) }
        (lanes, omission) = (opened.map(\.lane), error)
        return opened
    }

    func run() async -> LoveseatError? {
        let task = Task(executorPreference: runtime.executor) { try await self.replicate() }
        work = task
        if isStopping { task.cancel() }
        let result = await task.result
        // Finished work is saved, so that it is not repeated. A remote that does not answer is not waited for.
        let farewell = runtime.task(after: .seconds(3)) { [client] in await client.shutDown() }
        for lane in lanes { await saveCheckpoint(lane, isLast: true) }
        farewell.cancel()
        await client.shutDown()
        if let lost, !isStopping { return lost }
        guard case .failure(let error) = result, !(isStopping && error is CancellationError) else {
            return isStopping ? nil : omission
        }
        return isStopping ? nil : ended(by: Self.failure(of: error))
    }

    /// The error that ends the session. A database that was there and is missing may be in the course of being recreated: the next session
    /// finds out.
    private func ended(by error: LoveseatError) -> LoveseatError {
        guard plan.isContinuous, error.code == .httpNotFound else { return error }
        return LoveseatError(.webSocketAbnormalClose, error.message)
    }

    /// Returns nothing: the database knows which documents are pending, and this wire knows no others.
    func pending(listing limit: Int, unread: Int) -> PendingTransfers { PendingTransfers() }

    func stop() {
        isStopping = true
        work?.cancel()
    }

    static func failure(of error: any Error) -> LoveseatError {
        switch error {
        case let error as RemoteFailure: error.failure(of: "a request")
        case let error as AnswerTooLarge: error.failure
        case let error as UnreadableAnswer: error.failure
        case let error as CouchDBError:
            LoveseatError(.remoteError, "the peer's answer is not valid: \(error.reason)")
        default: LoveseatError(http: error)
        }
    }

    private func replicate() async throws {
        report()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in lanes.indices {
                group.addTask { try await self.replicate(index) }
            }
            // The first that fails ends the others, which may be waiting.
            for try await _ in group {}
        }
    }

    private func replicate(_ index: Int) async throws {
        let (pulls, pushes) = (plan.pulls, plan.pushes)
        try await withThrowingTaskGroup(of: Void.self) { group in
            if pulls { group.addTask { try await self.pull(index) } }
            if pushes { group.addTask { try await self.push(at: index) } }
            for try await _ in group {}
        }
        // Pushes the changes that resolvers made after the push had ended.
        if pushes, !plan.isContinuous, lanes[index].hasResolved {
            lanes[index].push.machine.noteChange()
            try await push(at: index)
        }
    }

    private func push(at index: Int) async throws { try await push(lanes[index]) }

    // MARK: Reports

    /// Marks the beginning or the end of work.
    func setBusy(_ isBusy: Bool) {
        busy += isBusy ? 1 : -1
        report()
    }

    private func report() {
        hooks.report(.activity(isBusy: busy > 0 || !plan.isContinuous, progress))
    }

    /// Units of work are found among so many changes: one for each revision.
    func expect(_ count: Int, among changes: Int) {
        if changes == 0 { return }
        progress.compared += UInt64(changes)
        progress.total += UInt64(count)
        report()
    }

    func finish(_ count: Int, bytes: Int = 0, documents: Int = 0, isPush: Bool) {
        progress.total += UInt64(bytes)
        progress.completed = min(progress.completed + UInt64(count + bytes), progress.total)
        progress.documents += UInt64(documents)
        if isPush { progress.documentsPushed += UInt64(documents) }
        report()
    }

    func report(_ id: String, _ lane: Lane, isPush: Bool, isDeleted: Bool, error: LoveseatError? = nil) {
        hooks.report(
            .document(
                DocumentEvent(
                    collection: lane.index,
                    documentID: id,
                    isPush: isPush,
                    isDeleted: isDeleted,
                    error: error
                )
            )
        )
    }

    // MARK: Machines

    /// A machine that the driver runs.
    final class Running<Machine: RequestMachine> {
        var machine: Machine

        init(_ machine: Machine) { self.machine = machine }
    }

    /// Runs a machine until it is caught up. `send`: sends a request, and returns the answer.
    func run<Machine: RequestMachine>(
        _ running: Running<Machine>,
        _ lane: Lane,
        _ send: @escaping @Sendable (Machine.Request) async throws -> Machine.Answer
    ) async throws {
        try await withThrowingTaskGroup(of: (Int, Machine.Answer).self) { group in
            var underWay = 0
            while true {
                try running.machine.goOn()
                for report in running.machine.takeReports() { await perform(report, lane) }
                while let next = try running.machine.next(atOnce: client.requestsAtOnce) {
                    underWay += 1
                    group.addTask { (next.number, try await send(next.request)) }
                }
                if underWay == 0 {
                    if running.machine.isCaughtUp { return }
                    try Task.checkCancellation()
                    continue
                }
                // As many are under way.
                guard let (number, answer) = try await group.next() else { return }
                underWay -= 1
                try running.machine.receive(answer, to: number)
            }
        }
    }

    private func perform(_ report: SessionReport, _ lane: Lane) async {
        switch report {
        case .busy(let isBusy): setBusy(isBusy)
        case .found(let count, let changes): expect(count, among: changes)
        case .finished(let count, let bytes, let documents):
            finish(count, bytes: bytes, documents: documents, isPush: true)
        case .document(let event): hooks.report(.document(event))
        case .resolve(let notice): await resolve(notice, lane)
        case .checkpoint(let isLast): await saveCheckpoint(lane, isLast: isLast)
        }
    }

    // MARK: Checkpoints

    private func readCheckpoint(_ lane: Lane, instance: String?) async throws {
        var step = try lane.checkpoints.open(instance: instance)
        while case .ask(let request) = step {
            let answer = try await lane.remote.answer(request, lane.checkpointID)
            step = lane.checkpoints.receive(
                answer,
                progress: lane.checkpoint,
                hasRestarted: client.hasRestarted
            )
        }
        if case .end(let error) = step { throw error }
        lane.checkpoint = lane.checkpoints.start
        lane.push.machine.begin(after: lane.checkpoint.checkpoint.completed)
    }

    /// Saves how far both directions are, at most every few seconds, or at the end of what is known.
    func saveCheckpoint(_ lane: Lane, isLast: Bool = false) async {
        if lost != nil { return }
        var step = lane.checkpoints.save(
            lane.progress,
            now: runtime.uptime(),
            time: runtime.unixTime() / 1_000,
            isLast: isLast,
            hasRestarted: client.hasRestarted
        )
        while case .ask(let request) = step {
            let answer: CheckpointMachine.Answer
            do { answer = try await lane.remote.answer(request, lane.checkpointID) } catch {
                answer = .failed(Self.failure(of: error))
            }
            step = lane.checkpoints.receive(
                answer,
                progress: lane.progress,
                hasRestarted: client.hasRestarted
            )
        }
        switch step {
        case .ask, .done: break
        case .notSaved(let error): hooks.report(.checkpointNotSaved(error))
        case .end(let error):
            lost = error
            work?.cancel()
        }
    }
}
