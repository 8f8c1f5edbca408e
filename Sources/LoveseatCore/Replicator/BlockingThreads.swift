private import Dispatch
private import Synchronization

/// Threads for tasks that may block them, and for work that blocked threads wait for.
///
/// Swift's pool has one thread for each processor. An app that blocks all of those delays nothing here: a job gets a thread of its own, and waits
/// only if as many jobs as there may be threads are running. A thread that has no job stays for ``patience``, since the jobs of a replication
/// come one soon after the other.
package final class BlockingThreads: TaskExecutor {
    /// The threads of everything that a blocking call waits for, and of the replications beside their drivers.
    package static let shared = BlockingThreads(label: "loveseat.work")

    private static let patience = DispatchTimeInterval.milliseconds(500)

    private struct State {
        var threads = 0
        /// The threads that wait for a job.
        var idle = 0
        /// The jobs that no thread has begun, in order.
        var waiting: ArraySlice<UnownedJob> = []
    }

    /// The thread that begins a job that was enqueued.
    private enum Starter { case idleThread, newThread, nextFreeThread }

    private let label: String
    private let limit: Int
    private let state = Mutex(State())
    /// Wakes idle threads. One that wakes without need waits again.
    private let jobs = DispatchSemaphore(value: 0)

    /// `limit`: the maximum number of threads.
    package init(label: String, limit: Int = 64) {
        self.label = label
        self.limit = limit
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let starter: Starter = state.withLock { state in
            state.waiting.append(job)
            // Each idle thread begins one of the jobs that wait.
            if state.waiting.count <= state.idle { return .idleThread }
            guard state.threads < limit else { return .nextFreeThread }
            state.threads += 1
            return .newThread
        }
        switch starter {
        case .nextFreeThread: break
        case .idleThread: jobs.signal()
        // A serial queue gets a thread even if those of all processors are blocked, which a concurrent queue does not.
        case .newThread: DispatchQueue(label: label).async { [self] in run() }
        }
    }

    private func run() {
        while let job = next() ?? laterJob() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Returns the next job of a thread; nil if there is none, and the thread is idle now.
    private func next() -> UnownedJob? {
        state.withLock { state in
            let job = state.waiting.popFirst()
            if job == nil { state.idle += 1 }
            return job
        }
    }

    /// Returns a job that comes while a thread is idle; nil if none comes, and the thread ends.
    private func laterJob() -> UnownedJob? {
        var isOver = false
        while !isOver {
            isOver = jobs.wait(timeout: .now() + Self.patience) == .timedOut
            let job = state.withLock { state in
                let job = state.waiting.popFirst()
                if job != nil || isOver { state.idle -= 1 }
                if job == nil, isOver { state.threads -= 1 }
                return job
            }
            if job != nil { return job }
        }
        return nil
    }
}
