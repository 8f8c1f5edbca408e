import Logging
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import Synchronization

/// The replications that clients started with `_replicate`. They run until they are done, fail or are cancelled, or the listener stops.
final class ReplicationJobs: Sendable {
    /// The maximum number of replications that run at once.
    static let maximum = 16

    /// The state of a running replication, as `_active_tasks` shows it.
    final class Progress: Sendable {
        private let state: Mutex<ReplicationTask>

        init(_ task: ReplicationTask) { state = Mutex(task) }

        var task: ReplicationTask { state.withLock { $0 } }

        func update(_ counts: ReplicationLog.Counts, _ position: ReplicationTask.Position? = nil) {
            state.withLock { task in
                task.documentsRead = UInt64(counts.read)
                task.documentsWritten = UInt64(counts.written)
                task.writeFailures = UInt64(counts.failures)
                task.revisionsChecked = UInt64(counts.checked)
                task.missingRevisions = UInt64(counts.missing)
                if let position { task.position = position }
                task.updated = ReplicatingClients.now
            }
        }
    }

    struct Job: Sendable {
        let progress: Progress
        let task: Task<JSONValue, any Error>
    }

    private struct State {
        var jobs: [ExactText: Job] = [:]
        var isStopped = false
    }

    private let state = Mutex(State())

    /// The replications that are running.
    var tasks: [ReplicationTask] { state.withLock { Array($0.jobs.values) }.map(\.progress.task) }

    /// Starts a replication, or returns the one that runs under this name.
    ///
    /// - Throws: `service_unavailable` if too many are running, or the listener stops.
    func start(
        _ name: String,
        _ task: ReplicationTask,
        _ work: @escaping @Sendable (Progress) async throws -> JSONValue
    ) throws(CouchDBError) -> Job {
        let job: Job? = state.withLock { state in
            if let running = state.jobs[ExactText(name)] { return running }
            guard !state.isStopped, state.jobs.count < Self.maximum else { return nil }
            let progress = Progress(task)
            let job = Job(
                progress: progress,
                task: Task(executorPreference: BlockingThreads.requests) {
                    defer { self.remove(name) }
                    do { return try await work(progress) } catch {
                        if !(error is CancellationError) {
                            LogDomain.listener.log(
                                .warning,
                                "the replication of \(task.source) to \(task.target) failed: \(CouchDBServer.error(error).reason)"
                            )
                        }
                        throw error
                    }
                }
            )
            state.jobs[ExactText(name)] = job
            return job
        }
        guard let job else {
            throw CouchDBError(
                503,
                "service_unavailable",
                "\(Self.maximum) replications are running: cancel one, or try again later"
            )
        }
        return job
    }

    private func remove(_ name: String) {
        state.withLock { _ = $0.jobs.removeValue(forKey: ExactText(name)) }
    }

    /// Cancels a replication, and waits for its end. Returns false if none runs under this name.
    func cancel(_ name: String) async -> Bool {
        guard let job = state.withLock({ $0.jobs[ExactText(name)] }) else { return false }
        job.task.cancel()
        _ = await job.task.result
        return true
    }

    /// Cancels everything, waits for the end, and starts nothing more.
    func stop() async {
        let jobs = state.withLock { state in
            state.isStopped = true
            return Array(state.jobs.values)
        }
        for job in jobs { job.task.cancel() }
        for job in jobs { _ = await job.task.result }
    }
}
