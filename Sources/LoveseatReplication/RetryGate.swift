private import Synchronization

/// A gate at which a replicator waits between two attempts, or while it is suspended.
package final class RetryGate: Sendable {
    private struct State {
        /// Opened while nothing waited.
        var isOpen = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Waits until ``open()``.
    ///
    /// - Returns: true.
    func wait() async -> Bool { await wait(timer: nil) }

    /// Waits until ``open()``, at most a number of seconds.
    ///
    /// - Returns: whether it was opened before the time was up.
    package func wait(seconds: Double, _ runtime: ReplicationRuntime) async -> Bool {
        await wait(timer: runtime.task(after: .seconds(seconds)) { self.pass(asOpened: false) })
    }

    private func wait(timer: Task<Void, Never>?) async -> Bool {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                if !state.isOpen { state.waiter = continuation }
                return !state.isOpen
            }
            if !mustWait { continuation.resume() }
        }
        timer?.cancel()
        return state.withLock { state in
            defer { state.isOpen = false }
            return state.isOpen
        }
    }

    /// Ends the current wait, or else the next one.
    package func open() { pass(asOpened: true) }

    /// Forgets that it was opened.
    package func close() { state.withLock { $0.isOpen = false } }

    private func pass(asOpened isOpened: Bool) {
        state.withLock { state in
            if isOpened { state.isOpen = true }
            defer { state.waiter = nil }
            return state.waiter
        }?.resume()
    }
}
