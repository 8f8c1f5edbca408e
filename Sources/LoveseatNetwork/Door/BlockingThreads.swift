import Dispatch

/// Threads for tasks that may block them, so that Swift's own threads, of which there are few, stay free, and an app that blocks those
/// delays nothing here.
package final class BlockingThreads: TaskExecutor {
    /// The threads of the decisions of handshakes, in which an app's closure may take several seconds.
    static let handshakes = BlockingThreads(label: "loveseat.handshake")

    private let queue: DispatchQueue

    package init(label: String) { queue = DispatchQueue(label: label, attributes: .concurrent) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
