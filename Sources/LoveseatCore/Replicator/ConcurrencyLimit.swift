/// Lets so many tasks in at a time.
actor ConcurrencyLimit {
    private var free: Int
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(_ limit: Int) { free = limit }

    /// Runs work once there is room for it, away from the caller's executor.
    nonisolated func run<T: Sendable>(_ work: @escaping @Sendable () async -> T) async -> T {
        await enter()
        let result = await Task.detached { await work() }.value
        await leave()
        return result
    }

    private func enter() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiters.append($0) }
        }
    }

    private func leave() {
        if waiters.isEmpty { free += 1 } else { waiters.removeFirst().resume() }
    }
}
