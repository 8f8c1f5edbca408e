private import Foundation
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
private import Synchronization

/// The active peer: replicates collections of a database with a peer, in one pass or continuously.
///
/// ```swift
/// let replicator = Replicator(configuration)
/// replicator.start()
/// for await status in replicator.statuses { print(status.activity, status.progress.documents) }
/// ```
///
/// A started replicator lives until it stops, whoever still refers to it. It can be started again after it stopped, and
/// goes on where it was. Safe to use from any thread.
public final class Replicator: Sendable {
    /// What it was made with.
    public let config: ReplicatorConfiguration
    private let state = Mutex(State())

    private struct State {
        var status = Status.initial
        var wasStarted = false
        var task: Task<Void, Never>?
        var conversation: Conversation?
        var isStopping = false
        var nextFeed = 0
        var statusFeeds: [Int: FeedBuffer<Status>] = [:]
        var documentFeeds: [Int: FeedBuffer<DocumentReplication>] = [:]
    }

    /// Makes a replicator, which connects when it is started.
    public init(_ config: ReplicatorConfiguration) { self.config = config }

    /// Makes a replicator, which connects when it is started.
    public convenience init(config: ReplicatorConfiguration) { self.init(config) }

    // MARK: Observing

    /// What it is doing now.
    public var status: Status { state.withLock { $0.status } }

    /// Its status from now on: the current one first if it was started, then every change. Ends when it stops.
    public var statuses: Feed<Status> {
        let buffer = FeedBuffer<Status>(limit: 32 << 10, cost: { _ in 128 }, merge: { $0 = $1 })
        let number = state.withLock { state in
            state.nextFeed += 1
            if state.wasStarted { buffer.push(state.status) }
            if state.wasStarted, state.task == nil {
                buffer.finish()
            } else {
                state.statusFeeds[state.nextFeed] = buffer
            }
            return state.nextFeed
        }
        return Feed(buffer) { [weak self] in
            self?.state.withLock { _ = $0.statusFeeds.removeValue(forKey: number) }
        }
    }

    /// Documents as they are replicated or cannot be, from now on. Ends when the replicator stops.
    public var documentReplications: Feed<DocumentReplication> {
        let buffer = FeedBuffer<DocumentReplication>(
            cost: { $0.documents.reduce(64) { $0 + 128 + $1.id.utf8.count } },
            merge: { $0.missed += $1.documents.count }
        )
        let number = state.withLock { state in
            state.nextFeed += 1
            if state.wasStarted, state.task == nil {
                buffer.finish()
            } else {
                state.documentFeeds[state.nextFeed] = buffer
            }
            return state.nextFeed
        }
        return Feed(buffer) { [weak self] in
            self?.state.withLock { _ = $0.documentFeeds.removeValue(forKey: number) }
        }
    }

    private func setStatus(
        _ activity: ActivityLevel,
        _ progress: Progress? = nil,
        error: LoveseatError? = nil
    ) {
        state.withLock { state in
            let status = Status(activity: activity, progress: progress ?? state.status.progress, error: error)
            guard status != state.status else { return }
            state.status = status
            for feed in state.statusFeeds.values { feed.push(status) }
        }
    }

    // MARK: Starting and stopping

    /// Starts, unless it is running. Problems come as a ``Status`` with an error.
    ///
    /// `reset`: forget what was replicated before, and look at every document again.
    public func start(reset: Bool = false) {
        state.withLock { state in
            guard state.task == nil else { return }
            state.wasStarted = true
            state.isStopping = false
            state.status = Status(activity: .connecting, progress: .none, error: nil)
            for feed in state.statusFeeds.values { feed.push(state.status) }
            state.task = Task.detached { [self] in await run(reset: reset) }
        }
    }

    /// Stops, in good order but without waiting long for the peer. Returns at once; the status tells when it is done.
    public func stop() {
        let conversation = state.withLock { state in
            guard state.task != nil else { return nil as Conversation? }
            state.isStopping = true
            state.task?.cancel()
            return state.conversation
        }
        if let conversation { Task { await conversation.stop() } }
    }

    /// Waits until it has stopped, and returns the status with which it did.
    @discardableResult
    public func waitUntilStopped() async -> Status {
        await state.withLock { $0.task }?.value
        return status
    }

    // MARK: Running

    private func run(reset: Bool) async {
        let error = await attempts(reset: reset)
        let feeds = state.withLock { state in
            let status = Status(activity: .stopped, progress: state.status.progress, error: error)
            state.status = status
            state.task = nil
            state.conversation = nil
            defer { (state.statusFeeds, state.documentFeeds) = ([:], [:]) }
            return (status, Array(state.statusFeeds.values), Array(state.documentFeeds.values))
        }
        config.collections.first?.collection.database.release(self)
        for feed in feeds.1 {
            feed.push(feeds.0)
            feed.finish()
        }
        for feed in feeds.2 { feed.finish() }
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Connects until a connection ends well, an error is final, or somebody stops it.
    private func attempts(reset: Bool) async -> LoveseatError? {
        do throws(LoveseatError) {
            try config.validate()
            try config.collections.first?.collection.database.adopt(self)
        } catch { return error }
        var retry = RetryPolicy(
            isContinuous: config.continuous,
            maxAttempts: config.maxAttempts == 0 ? nil : config.maxAttempts,
            maxWait: config.maxAttemptWaitTime == 0
                ? nil : UInt(min(config.maxAttemptWaitTime, 1e9).rounded(.up))
        )
        var resets = reset
        while !isStopping {
            setStatus(.connecting)
            let (failure, wasConnected) = await attempt(resets)
            if wasConnected {
                retry.connected()
                resets = false
            }
            guard let failure, !isStopping else { return nil }
            guard let seconds = retry.wait(after: failure) else { return failure }
            setStatus(.offline, error: failure)
            // Stopping cancels the task, which ends the wait.
            try? await Task.sleep(for: .seconds(Int64(clamping: seconds)))
        }
        return nil
    }

    /// Makes one connection and replicates over it.
    private func attempt(_ resets: Bool) async -> (failure: LoveseatError?, wasConnected: Bool) {
        guard let endpoint = config.target as? any PeerEndpoint else { return (nil, false) }
        let connection: PeerConnection
        do { connection = try await endpoint.connect(connectionOptions) } catch {
            return (
                (error as? LoveseatError) ?? LoveseatError(.unexpectedError, "cannot connect: \(error)"),
                false
            )
        }
        do throws(LoveseatError) {
            let conversation = try makeConversation(endpoint, connection.channel, resets: resets)
            let mustStop = state.withLock { state in
                state.conversation = conversation
                return state.isStopping
            }
            if mustStop { await conversation.stop() }
            let failure = await conversation.run(connection.negotiated)
            state.withLock { $0.conversation = nil }
            return (failure, true)
        } catch {
            await connection.channel.close(code: 1001, reason: "")
            return (error, false)
        }
    }

    private var connectionOptions: ConnectionOptions {
        var options = ConnectionOptions()
        options.authenticator = config.authenticator
        options.headers = config.headers
        options.heartbeat =
            config.heartbeat == 0 ? ReplicatorConfiguration.defaultHeartbeat : config.heartbeat
        return options
    }

    private func makeConversation(
        _ endpoint: any PeerEndpoint,
        _ channel: any LoveseatReplication.MessageChannel,
        resets: Bool
    ) throws(LoveseatError) -> Conversation {
        guard let database = config.collections.first?.collection.database else {
            throw LoveseatError(.invalidParameter, "no collections")
        }
        let store = try database.store
        let handles = config.collections.map(\.collection.handle)
        for entry in config.collections { _ = try entry.collection.openStore }
        let remoteName = endpoint.remoteName
        let pushes = config.replicatorType != .pull
        let pulls = config.replicatorType != .push
        let (remote, uuid) = try DocumentStore.wrapping {
            try store.write { (try $0.remoteNumber(remoteName), try $0.info("private_uuid") ?? "") }
        }
        let bindings = handles.map { handle in
            let id = CheckpointID(
                privateUUID: Array(uuid.utf8),
                collection: handle.name,
                pulls: pulls,
                pushes: pushes,
                remote: remoteName
            )
            let hash = handle.name == .default ? Hashing.sha1(id.hashInput) : Hashing.sha256(id.hashInput)
            var binding = ActivePlan.Binding(name: handle.name, checkpointID: "cp-" + Base64.encode(hash))
            binding.isEmpty = store.lastSequence(handle) == 0
            return binding
        }
        var plan = ActivePlan(
            collections: bindings,
            pushes: pushes,
            pulls: pulls,
            isContinuous: config.continuous
        )
        plan.resets = resets
        let limit = ConcurrencyLimit(8)
        return Conversation(
            session: ReplicationSession(active: plan),
            replica: StoreReplica(
                store: store,
                collections: handles,
                checkpointIDs: bindings.map(\.checkpointID),
                remote: remote,
                nowMilliseconds: { ExpirationTimer.now }
            ),
            store: store,
            collections: handles,
            channel: channel,
            resolve: { [config] notice in
                await limit.run { await Self.resolve(notice, store: store, config: config) }
            },
            report: { [weak self] in self?.heard($0) }
        )
    }

    private static func resolve(
        _ notice: ConflictNotice,
        store: DocumentStore,
        config: ReplicatorConfiguration
    ) async -> LoveseatError? {
        let entry = config.collections[notice.collection]
        let resolution = ConflictResolution(
            store: store,
            collection: entry.collection.handle,
            documentID: notice.documentID,
            closesBranches: notice.closesBranches
        )
        let resolver = entry.conflictResolver ?? ConflictResolver.default
        do {
            try await resolution.run { conflict in
                try conflict.resolution(try await resolver.resolve(conflict: Conflict(conflict)))
            }
            return nil
        } catch { return LoveseatError(storage: error) }
    }

    private func heard(_ report: ReplicationReport) {
        switch report {
        case .activity(let isBusy, let progress):
            setStatus(
                isBusy ? .busy : .idle,
                Progress(completed: progress.completed, total: progress.total, documents: progress.documents)
            )
        case .document(let event):
            let feeds = state.withLock { Array($0.documentFeeds.values) }
            guard !feeds.isEmpty else { return }
            let name = config.collections[event.collection].collection.handle.name
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
            for feed in feeds { feed.push(DocumentReplication(isPush: event.isPush, documents: [document])) }
        case .failure: break
        }
    }
}

extension Replicator: DatabaseService {
    package func endWithDatabase() async {
        stop()
        await waitUntilStopped()
    }
}
