import LoveseatReplication

/// Limits the number of tasks that run at a time.
actor ConcurrencyLimit {
    private var free: Int
    private var waiters: [(number: Int, continuation: CheckedContinuation<Bool, Never>)] = []
    private var nextNumber = 0

    private let runtime: ReplicationRuntime

    init(_ limit: Int, _ runtime: ReplicationRuntime) {
        free = limit
        self.runtime = runtime
    }

    /// Runs work once there is room for it, away from the caller's executor.
    ///
    /// - Returns: nil if the calling task was cancelled before the work began.
    nonisolated func run<T: Sendable>(_ work: @escaping @Sendable () async -> T) async -> T? {
        guard await enter() else { return nil }
        let result = await Task(executorPreference: runtime.executor) { await work() }.value
        await leave()
        return result
    }

    private func enter() async -> Bool {
        if Task.isCancelled { return false }
        if free > 0 {
            free -= 1
            return true
        }
        nextNumber += 1
        let number = nextNumber
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled {
                    continuation.resume(returning: false)
                } else {
                    waiters.append((number, continuation))
                }
            }
        } onCancel: {
            runtime.task { await self.giveUp(number) }
        }
    }

    private func giveUp(_ number: Int) {
        // Its turn came before the cancellation did, or the cancellation before it waited.
        guard let index = waiters.firstIndex(where: { $0.number == number }) else { return }
        waiters.remove(at: index).continuation.resume(returning: false)
    }

    private func leave() {
        if waiters.isEmpty { free += 1 } else { waiters.removeFirst().continuation.resume(returning: true) }
    }
}
