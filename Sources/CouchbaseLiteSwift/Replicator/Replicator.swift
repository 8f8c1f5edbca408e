import Logging
import LoveseatCore
import LoveseatModel
import Synchronization

#if canImport(Security)
public import Security
#endif

/// Replicates collections of a database with a peer, in one pass or continuously.
///
/// A started replicator is kept alive until it stops, and stops when its database closes. It can be started again, and continues where it was.
/// It is safe to use from any thread, and none of its calls blocks for the network; unchecked, since the configuration never changes, and
/// Couchbase Lite's filters and resolvers do not say that they are safe.
public final class Replicator: @unchecked Sendable {
    private struct State {
        /// The latest run; nil before the first start.
        var run: ReplicatorRun?
        var listeners: [AddedListener<ReplicatorChange>] = []
        var documentListeners: [AddedListener<DocumentReplication>] = []
    }

    /// The configuration with which the replicator was created.
    public let config: ReplicatorConfiguration
    private let engineConfig: LoveseatCore.ReplicatorConfiguration
    private let state = Mutex(State())

    /// Creates a replicator. It connects when it is started. A configuration without collections ends the program.
    public init(config: ReplicatorConfiguration) {
        if config.collections.isEmpty { programmerError("name at least one collection to replicate") }
        self.config = config
        engineConfig = config.engine
    }

    /// The current state, progress and error.
    public var status: Status { run.map { Status($0.engine.status) } ?? .initial }

    /// The certificate that the server showed last, even if it was not trusted; nil before the first TLS handshake.
    public var serverCertificate: SecCertificate? {
        run?.engine.serverCertificate.flatMap { SecCertificate.make($0) }
    }

    /// An ID of the latest run, by which logs name it; nil before the first start.
    public var correlationID: String? { run?.id }

    private var run: ReplicatorRun? { state.withLock { $0.run } }

    // MARK: Starting and stopping

    /// Starts the replicator, unless it is running. Returns at once; errors arrive as a ``Status``.
    public func start() { start(reset: false) }

    /// Starts the replicator, unless it is running. Returns at once; errors arrive as a ``Status``.
    ///
    /// - Parameter reset: Whether to compare all documents again instead of those that changed. This brings back documents that were purged
    ///   here.
    public func start(reset: Bool) {
        let started = state.withLock { state -> ReplicatorRun? in
            if state.run?.isRunning == true { return nil }
            let run = ReplicatorRun(engineConfig, after: state.run)
            state.run = run
            if !state.documentListeners.isEmpty { observeDocuments(of: run) }
            run.start(reset: reset) { [self] in report($0) }
            return run
        }
        if let started {
            LogDomain.replicator.log(.info, "\(started.engine): run \(started.id)")
        } else {
            LogDomain.replicator.log(.warning, "a replicator that is running cannot be started: ignored")
        }
    }

    /// Stops the replicator. Returns at once; it has stopped when its status is ``ActivityLevel/stopped``.
    public func stop() {
        if let run, run.isRunning {
            run.engine.stop()
        } else {
            LogDomain.replicator.log(.warning, "a replicator that is not running cannot be stopped: ignored")
        }
    }

    // MARK: Observing

    func add(_ added: AddedListener<ReplicatorChange>) { state.withLock { $0.listeners.append(added) } }

    func add(_ added: AddedListener<DocumentReplication>) {
        state.withLock { state in
            state.documentListeners.append(added)
            if let run = state.run { observeDocuments(of: run) }
        }
    }

    func remove(_ token: ListenerToken) {
        state.withLock { state in
            state.listeners.removeAll { $0.token === token }
            state.documentListeners.removeAll { $0.token === token }
        }
    }

    private func report(_ status: Status) {
        let change = ReplicatorChange(replicator: self, status: status)
        for listener in state.withLock({ $0.listeners }) { listener.send(change) }
    }

    private func observeDocuments(of run: ReplicatorRun) { run.observeDocuments { [self] in report($0) } }

    private func report(_ replication: LoveseatCore.DocumentReplication) {
        if replication.missed > 0 {
            LogDomain.replicator.log(
                .warning,
                "events of \(replication.missed.counted("document")) were lost: too many of them waited"
            )
        }
        let event = DocumentReplication(
            replicator: self,
            isPush: replication.isPush,
            documents: replication.documents.map { ReplicatedDocument($0) }
        )
        for listener in state.withLock({ $0.documentListeners }) { listener.send(event) }
    }

    // MARK: Pending documents

    /// Returns the IDs of documents with changes that this configuration would push and has not pushed, deletions included.
    ///
    /// The push filter is called for each of them. No connection is needed.
    ///
    /// - Throws: `unsupported` for a replicator that only pulls; `invalidParameter` if the collection is not in the configuration; `notOpen` if
    ///   it was deleted or closed.
    public func pendingDocumentIds(collection: Collection) throws -> Set<String> {
        try requireReplicated(collection)
        return try CBLError.converting { Set(try engine.pendingDocumentIds(collection: collection.engine)) }
    }

    /// Returns whether a document has a change that this configuration would push and has not pushed.
    ///
    /// - Throws: As ``pendingDocumentIds(collection:)``.
    public func isDocumentPending(_ documentID: String, collection: Collection) throws -> Bool {
        try requireReplicated(collection)
        return try CBLError.converting {
            try engine.isDocumentPending(documentID, collection: collection.engine)
        }
    }

    private func requireReplicated(_ collection: Collection) throws {
        if config.index(of: collection) != nil { return }
        throw CBLError.make(
            CBLError.invalidParameter,
            "the replicator does not replicate the collection \(collection.fullName): add it to the configuration"
        )
    }

    private var engine: EngineReplicator { run?.engine ?? EngineReplicator(engineConfig) }
}
