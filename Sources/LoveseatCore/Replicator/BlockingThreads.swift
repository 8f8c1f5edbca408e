private import Dispatch
private import Synchronization

/// Threads for tasks that may block them, and for work that blocked threads wait for.
///
/// Swift's pool has one thread for each processor. An app that blocks all of those delays nothing here: a job gets a thread of its own, and waits
/// only if as many jobs as there may be threads are running.
package final class BlockingThreads: TaskExecutor {
    /// The threads of everything that a blocking call waits for, and of the replications beside their drivers.
    package static let shared = BlockingThreads(label: "loveseat.work")

    private struct State {
        var threads = 0
        /// The jobs for which there is no thread, in order.
        var waiting: ArraySlice<UnownedJob> = []

        /// Returns the next job of a thread, or ends the thread.
        mutating func next() -> UnownedJob? {
            let job = waiting.popFirst()
            if job == nil { threads -= 1 }
            return job
        }
    }

    private let label: String
    private let limit: Int
    private let state = Mutex(State())

    /// `limit`: the maximum number of threads.
    package init(label: String, limit: Int = 64) {
        self.label = label
        self.limit = limit
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasThread = state.withLock { state in
            guard state.threads < limit else {
                state.waiting.append(job)
                return false
            }
            state.threads += 1
            return true
        }
        if hasThread {
            // A serial queue gets a thread even if those of all processors are blocked, which a concurrent queue does not.
            DispatchQueue(label: label).async { [self] in run(job) }
        }
    }

    private func run(_ first: UnownedJob) {
        var next: UnownedJob? = first
        while let job = next {
            job.runSynchronously(on: asUnownedTaskExecutor())
            next = state.withLock { $0.next() }
        }
    }
}
