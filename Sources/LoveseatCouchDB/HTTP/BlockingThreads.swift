import Dispatch

/// Threads for tasks that may block them, so that Swift's own threads, of which there are few, stay free.
final class BlockingThreads: TaskExecutor {
    /// The threads of all requests: their handlers read the database, and call an app's policies and filters, which may do the same. A task
    /// that serves a connection runs here, and so does everything that it calls, its answers' streams included.
    static let requests = BlockingThreads(label: "loveseat.couchdb")

    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label, attributes: .concurrent) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
