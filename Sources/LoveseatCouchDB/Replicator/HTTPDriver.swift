import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Runs one replication with a remote over CouchDB's wire (protocol/couchdb.md §3.1): sends the requests of its machines, and hands them the
/// answers. It decides nothing about documents.
actor HTTPDriver: Replication {
    nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    private let client: RemoteClient
    private let runtime: ReplicationRuntime
    private let creates: Bool
    private let plan: ActivePlan
    private let store: DocumentStore
    private let hooks: ReplicationHooks
    private var lanes: [Lane]
    /// Why some collections are not replicated; nil if all are.
    private var omission: LoveseatError?
    private var progress = ReplicationProgress()
    private var directions = Directions()
    private var work: Task<Void, any Error>?
    private var isStopping = false
    /// Why everything has to be compared anew; nil if it has not.
    private var lost: LoveseatError?

    /// The push or the pull of one collection.
    private struct Direction: Hashable {
        let collection: CollectionName
        let isPush: Bool
    }

    private struct Directions {
        /// Those that have something to do.
        var busy: Set<Direction> = []
        /// Why the remote takes nothing, or gives nothing, once it has refused to and the session goes on in the other direction.
        var refusal: LoveseatError?
    }

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
        var lanes: [Lane] = []
        for (index, replica) in work.replicas.makeReplicas().enumerated() {
            let path = endpoint.path(of: work.plan.collections[index].name, at: address)
            lanes.append(
                try Lane(
                    index,
                    work,
                    replica: replica,
                    remote: RemoteDatabase(client: client, path: path),
                    endpoint: endpoint,
                    heartbeat: Int(min(max(heartbeat, 1), 30) * 1_000)
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
        var error = LoveseatError(
            first.error.code,
            "not replicated: \(names): \(first.error.message); choose databases for them"
        )
        error.remedy = .choosingDatabases
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
        if let refusal = directions.refusal, !isStopping, hasEndedByRefusal(result) { return refusal }
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
            if pulls { group.addTask { try await self.run(index, isPush: false) } }
            if pushes { group.addTask { try await self.run(index, isPush: true) } }
            for try await _ in group {}
        }
        let lane = lanes[index]
        // Pushes the changes that resolvers made after the push had ended.
        if pushes, !plan.isContinuous, lane.hasResolved, directions.refusal == nil {
            lane.push.machine.noteChange()
            try await push(at: index)
        }
    }

    /// Runs one direction of a collection. A remote that refuses it may still grant the other one, which goes on.
    private func run(_ index: Int, isPush: Bool) async throws {
        do { try await isPush ? push(at: index) : pull(at: index) } catch {
            let failure = Self.failure(of: error)
            guard plan.pulls, plan.pushes, failure.code == .httpForbidden else { throw error }
            directions.refusal = directions.refusal ?? failure
            directions.busy.remove(Direction(collection: lanes[index].name, isPush: isPush))
            endIfRefused()
        }
    }

    /// Ends a continuous session that the remote has refused in one direction, when there is nothing left to do in the other.
    private func endIfRefused() {
        if directions.refusal != nil, plan.isContinuous, directions.busy.isEmpty { work?.cancel() }
    }

    /// Whether a session that was refused in one direction has done the other one.
    private func hasEndedByRefusal(_ result: Result<Void, any Error>) -> Bool {
        switch result {
        case .success: true
        case .failure: plan.isContinuous && directions.busy.isEmpty
        }
    }

    private func pull(at index: Int) async throws {
        let (lane, blobs, runtime) = (lanes[index], store.blobs, runtime)
        let remote = lane.remote
        try await run(lane.pull, lane) { try await remote.answer($0, blobs, runtime) }
    }

    private func push(at index: Int) async throws {
        let (signals, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (lane, blobs) = (lanes[index], store.blobs)
        let token = store.changes.subscribe(
            collection: lane.handle.number,
            onClose: { signal.finish() },
            { _ in signal.yield() }
        )
        defer { store.changes.unsubscribe(token) }
        var waiting = signals.makeAsyncIterator()
        let remote = lane.remote
        while true {
            try await run(lane.push, lane) { try await remote.answer($0, blobs) }
            guard plan.isContinuous, await waiting.next(isolation: self) != nil else {
                return try Task.checkCancellation()
            }
            try Task.checkCancellation()
            lane.push.machine.noteChange()
        }
    }

    // MARK: Reports

    private func perform(_ report: SessionReport, _ lane: Lane, isPush: Bool) async {
        switch report {
        case .busy(let isBusy):
            let direction = Direction(collection: lane.name, isPush: isPush)
            if isBusy { directions.busy.insert(direction) } else { directions.busy.remove(direction) }
            endIfRefused()
        case .found(_, changes: 0): return
        case .found(let count, let changes):
            progress.compared += UInt64(changes)
            progress.total += UInt64(count)
        case .finished(let count, let bytes, let documents):
            progress.total += UInt64(bytes)
            progress.completed = min(progress.completed + UInt64(count + bytes), progress.total)
            progress.documents += UInt64(documents)
            if isPush { progress.documentsPushed += UInt64(documents) }
        case .document(let event): return hooks.report(.document(event))
        case .resolve(let notice): return await resolve(notice, lane)
        case .checkpoint(let isLast): return await saveCheckpoint(lane, isLast: isLast)
        }
        self.report()
    }

    private func report() {
        hooks.report(.activity(isBusy: !directions.busy.isEmpty || !plan.isContinuous, progress))
    }

    private func resolve(_ notice: ConflictNotice, _ lane: Lane) async {
        lane.hasResolved = true
        if let error = await hooks.resolve(notice) {
            hooks.report(.document(.pulled(notice.documentID, in: notice.collection, error)))
        }
    }

    // MARK: Machines

    /// Runs a machine until it is caught up. `send`: sends a request, and returns the answer.
    private func run<Machine: RequestMachine>(
        _ running: Running<Machine>,
        _ lane: Lane,
        _ send: @escaping @Sendable (Machine.Request) async throws -> Machine.Answer
    ) async throws {
        try await withThrowingTaskGroup(of: (Int, Machine.Answer).self) { group in
            var underWay = 0
            while true {
                try await step(running, lane) { try $0.goOn() }
                while let next = try running.machine.next(atOnce: client.requestsAtOnce) {
                    underWay += 1
                    group.addTask { (next.number, try await send(next.request)) }
                }
                if underWay == 0 {
                    if running.machine.isCaughtUp { return }
                    try Task.checkCancellation()
                    continue
                }
                // Some are under way, so that the group has a next one.
                guard let (number, answer) = try await group.next() else { return }
                underWay -= 1
                try await step(running, lane) { try $0.receive(answer, to: number) }
            }
        }
    }

    /// Has a machine do something, and performs what it reports, even if it fails.
    private func step<Machine: RequestMachine>(
        _ running: Running<Machine>,
        _ lane: Lane,
        _ work: (inout Machine) throws -> Void
    ) async throws {
        let result = Result { try work(&running.machine) }
        for report in running.machine.drainReports() {
            await perform(report, lane, isPush: Machine.isPush)
        }
        try result.get()
    }

    // MARK: Checkpoints

    private func readCheckpoint(_ lane: Lane, instance: String?) async throws {
        var step = try lane.checkpoints.open(instance: instance)
        while case .ask(let request) = step {
            let answer = try await lane.remote.answer(request, lane.checkpointID)
            step = lane.checkpoints.receive(
                answer,
                progress: lane.progress,
                hasRestarted: client.hasRestarted
            )
        }
        if case .end(let error) = step { throw error }
        lane.begin()
    }

    /// Saves how far both directions are, at most every few seconds, or at the end of what is known.
    private func saveCheckpoint(_ lane: Lane, isLast: Bool = false) async {
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
