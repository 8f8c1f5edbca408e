public import LoveseatModel
import LoveseatReplication
import Synchronization

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
    let state = Mutex(State())
    let runtime: ReplicationRuntime
    let supervisor: ReplicationSupervisor

    struct State {
        var status = Status.initial
        var wasStarted = false
        var task: Task<Void, Never>?
        /// What becomes of documents over the last connection.
        var documentEvents: DocumentEvents?
        /// Cookies that live as long as the replicator.
        var cookies = CookieJar()
        var serverCertificate: TLSCertificate?
        var nextFeed = 0
        var statusFeeds: [Int: FeedBuffer<Status>] = [:]
        var documentFeeds: [Int: FeedBuffer<DocumentReplication>] = [:]
    }

    /// Makes a replicator, which connects when it is started.
    public init(_ config: ReplicatorConfiguration) {
        self.config = config
        runtime = .system
        supervisor = ReplicationSupervisor(runtime: .system)
    }

    /// Makes a replicator, which connects when it is started.
    public convenience init(config: ReplicatorConfiguration) { self.init(config) }

    // MARK: Observing

    /// What it is doing now.
    public var status: Status { state.withLock { $0.status } }

    /// The certificate that the server showed last, also if it was not trusted; nil before the first TLS handshake.
    public var serverCertificate: TLSCertificate? { state.withLock { $0.serverCertificate } }

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

    func setStatus(
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
    /// - Parameters:
    ///   - reset: Whether to look at every document again, as after a purge that shall be undone. Documents that the peer is
    ///     known to have are not sent again.
    ///   - resetMarks: Whether to forget as well what the peer is known to have, and to offer it every document again. This
    ///     brings back documents that were purged at the peer. Implies `reset`.
    public func start(reset: Bool = false, resetMarks: Bool = false) {
        state.withLock { state in
            guard state.task == nil else { return }
            state.wasStarted = true
            supervisor.prepare()
            state.status = Status(activity: .connecting, progress: .none, error: nil)
            for feed in state.statusFeeds.values { feed.push(state.status) }
            let kind: ActivePlan.Reset = resetMarks ? .checkpointAndMarks : reset ? .checkpoint : .none
            state.task = runtime.task { [self] in await run(kind) }
        }
    }

    /// Stops, in good order but without waiting long for the peer. Returns at once; the status tells when it is done.
    public func stop() {
        state.withLock { if $0.task != nil { supervisor.stop() } }
    }

    /// Disconnects, and is ``ActivityLevel/offline`` until ``resume()``: for apps that go to the background. What is
    /// done is kept; what is under way is done again afterwards.
    public func suspend() { supervisor.suspend() }

    /// Goes on after ``suspend()``. If it waits to connect again, it does so now, as on a change of the network.
    public func resume() { supervisor.resume() }

    /// Waits until it has stopped, and returns the status with which it did.
    @discardableResult
    public func waitUntilStopped() async -> Status {
        await state.withLock { $0.task }?.value
        return status
    }
}

extension Replicator: DatabaseService {
    package func endWithDatabase() async {
        stop()
        await waitUntilStopped()
    }
}

extension Replicator: CustomStringConvertible {
    /// The database and its peer.
    public var description: String {
        let database = config.collections.first?.collection.database.name ?? "nothing"
        let peer = (config.target as? any PeerEndpoint)?.remoteName ?? "\(config.target)"
        return "\(database) with \(peer)"
    }
}
