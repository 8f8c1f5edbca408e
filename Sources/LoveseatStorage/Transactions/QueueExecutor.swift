private import Dispatch

/// Runs an actor on its own dispatch queue, where it may block, as calls of the database do.
///
/// A task that prefers it needs no thread of Swift's pool after it has waited: without a preference, it would be resumed there, and go on to
/// the actor from there.
package final class QueueExecutor: SerialExecutor, TaskExecutor {
    private let queue: DispatchQueue

    package init(label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async {
            job.runSynchronously(
                isolatedTo: self.asUnownedSerialExecutor(),
                taskExecutor: self.asUnownedTaskExecutor()
            )
        }
    }

    /// Runs a closure on the queue.
    func run(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
