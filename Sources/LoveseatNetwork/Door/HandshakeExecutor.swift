import Dispatch

/// Runs the decisions of a handshake on threads of its own, where an app's closure may take several seconds, and where it is not
/// delayed by an app that blocks Swift's own threads.
final class HandshakeExecutor: TaskExecutor {
    static let shared = HandshakeExecutor()
    private let queue = DispatchQueue(label: "loveseat.handshake", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
