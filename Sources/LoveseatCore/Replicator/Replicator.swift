public import LoveseatModel
import LoveseatReplication
import Synchronization

/// Replicates collections of a database with a peer, in one pass or continuously.
///
/// ```swift
/// let replicator = Replicator(configuration)
/// replicator.start()
/// for await status in replicator.statuses { print(status.activity, status.progress.documents) }
/// ```
///
/// A started replicator is kept alive by its database until it stops, and stops when the database closes. It can be started again, and
/// continues where it was. A replicator is safe to use from any thread, and none of its calls blocks for the network.
public final class Replicator: Sendable {
    /// The configuration with which the replicator was created.
    public let config: ReplicatorConfiguration
    let state = Mutex(State())
    let runtime: ReplicationRuntime
    let supervisor: ReplicationSupervisor

    struct State {
        var status = Status.initial
        var wasStarted = false
        var task: Task<Void, Never>?
        /// The events of documents over the last connection.
        var documentEvents: DocumentEvents?
        /// Cookies without an expiration, which are kept as long as the replicator.
        var cookies = CookieJar()
        var serverCertificate: TLSCertificate?
        /// Documents to fetch when the connection has ended, and those that were (``Replicator/fetchPostponed()``).
        var postponed: [FetchNotice] = []
        var fetchedAside: [FetchedDocument: Bool] = [:]
        var statusFeeds = FeedSet<Status>()
        var documentFeeds = FeedSet<DocumentReplication>()
        var blobFeeds = FeedSet<BlobTransfer>()
    }

    /// A message about the peer for the user. It has a lock of its own, since a program may look after every status.
    let lastNotice = Mutex<String?>(nil)

    /// Creates a replicator. It connects when it is started.
    public init(_ config: ReplicatorConfiguration) {
        self.config = config.bound
        runtime = .system
        supervisor = ReplicationSupervisor(runtime: .system)
    }

    deinit {
        state.withLock { state in
            for feed in state.statusFeeds.all { feed.finish() }
            for feed in state.documentFeeds.all { feed.finish() }
            for feed in state.blobFeeds.all { feed.finish() }
        }
    }

    // MARK: Observing

    /// The current state, progress and error.
    public var status: Status { state.withLock { $0.status } }

    /// The certificate that the server showed last, even if it was not trusted; nil before the first TLS handshake.
    public var serverCertificate: TLSCertificate? { state.withLock { $0.serverCertificate } }

    /// A feed of the replicator's status from now on. It begins with the current status if the replicator was started, and ends when the
    /// replicator stops. A slow consumer misses intermediate statuses, but not the last one.
    public var statuses: Feed<Status> {
        let buffer = FeedBuffer<Status>(limit: 32 << 10, cost: { _ in 128 }, merge: { $0 = $1 })
        return feed(buffer, in: \.statusFeeds) { if $0.wasStarted { buffer.push($0.status) } }
    }

    /// A feed of the documents that are replicated, or cannot be, from now on. It ends when the replicator stops.
    ///
    /// Ask for it before ``start(reset:resetMarks:)`` to get all of them. Events come in batches of up to 100 documents of one direction,
    /// at most 200 milliseconds late.
    public var documentReplications: Feed<DocumentReplication> {
        let buffer = FeedBuffer<DocumentReplication>(
            cost: { $0.documents.reduce(64) { $0 + 128 + $1.id.utf8.count } },
            merge: { $0.missed += $1.documents.count }
        )
        return feed(buffer, in: \.documentFeeds)
    }

    /// A feed of the pieces of blobs that are sent and received, from now on. It ends when the replicator stops.
    ///
    /// There is one event for each piece of up to 256 kB. A consumer that falls behind misses events.
    public var blobTransfers: Feed<BlobTransfer> { feed(.ofTransfers(), in: \.blobFeeds) }

    /// A feed from now on, which ends at once if the replicator has stopped. `begin` is called within the lock.
    private func feed<Element>(
        _ buffer: FeedBuffer<Element>,
        in feeds: any WritableKeyPath<State, FeedSet<Element>> & Sendable,
        _ begin: (State) -> Void = { _ in }
    ) -> Feed<Element> {
        state.withLock { state in
            begin(state)
            if state.wasStarted, state.task == nil {
                buffer.finish()
            } else {
                state[keyPath: feeds].insert(buffer)
            }
        }
        return Feed(buffer) { [weak self] in self?.state.withLock { $0[keyPath: feeds].remove(buffer) } }
    }

    func setStatus(
        _ activity: ActivityLevel,
        _ progress: Progress? = nil,
        error: LoveseatError? = nil,
        wait: Double? = nil
    ) {
        state.withLock { state in
            var status = Status(activity: activity, progress: progress ?? state.status.progress, error: error)
            status.wait = wait
            if status == state.status { return }
            state.status = status
            for feed in state.statusFeeds.all { feed.push(status) }
        }
    }

    // MARK: Starting and stopping

    /// Starts the replicator, unless it is running. Returns at once; errors arrive as a ``Status``.
    ///
    /// - Parameters:
    ///   - reset: Whether to compare all documents again instead of those that changed. This brings back documents that were purged
    ///     here. Documents that the peer is known to have are not sent again.
    ///   - resetMarks: Whether to forget what the peer is known to have as well, and to offer it every document again. This
    ///     brings back documents that were purged at the peer. Implies `reset`.
    public func start(reset: Bool = false, resetMarks: Bool = false) {
        state.withLock { state in
            if state.task != nil { return }
            state.wasStarted = true
            (state.postponed, state.fetchedAside) = ([], [:])
            supervisor.prepare()
            state.status = Status(activity: .connecting, progress: .none, error: nil)
            for feed in state.statusFeeds.all { feed.push(state.status) }
            let kind: ActivePlan.Reset = resetMarks ? .checkpointAndMarks : reset ? .checkpoint : .none
            state.task = runtime.task { [self] in await run(kind) }
        }
    }

    /// Stops the replicator. Returns at once; ``waitUntilStopped()`` waits for the end. Does nothing if the replicator is not running.
    public func stop() {
        state.withLock { if $0.task != nil { supervisor.stop() } }
    }

    /// Disconnects until ``resume()``, for apps that go to the background. Returns at once.
    ///
    /// The replicator is ``ActivityLevel/offline`` meanwhile. Documents that were being transferred are transferred again afterwards.
    public func suspend() { supervisor.suspend() }

    /// Connects again after ``suspend()``. A replicator that waits before its next attempt tries at once. Returns at once.
    public func resume() { supervisor.resume() }

    /// Waits until the replicator has stopped, and returns its last status.
    ///
    /// Returns at once if the replicator is not running. A continuous replicator stops only with an error, or when ``stop()`` is called.
    /// If the task is cancelled, the wait ends and the current status is returned; the replicator goes on.
    @discardableResult
    public func waitUntilStopped() async -> Status {
        _ = await state.withLock { $0.task }?.valueUnlessCancelled(on: BlockingThreads.shared)
        return status
    }

    /// Waits until the replicator has stopped, even if the task is cancelled.
    @discardableResult
    package func waitToTheEnd() async -> Status {
        await state.withLock { $0.task }?.value
        return status
    }
}

extension Replicator: DatabaseService {
    package func endWithDatabase() async {
        stop()
        await waitToTheEnd()
    }
}

extension Replicator: CustomStringConvertible {
    /// The names of the database and its peer, for logs.
    public var description: String {
        let database = config.collections.first?.collection.database.name ?? "nothing"
        let peer = (config.target as? any PeerEndpoint)?.remoteName ?? "\(config.target)"
        return "\(database) with \(peer)"
    }
}
