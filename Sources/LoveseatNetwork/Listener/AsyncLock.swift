import LoveseatReplication
import NIOConcurrencyHelpers

/// A lock for tasks, in the order of arrival. It is not reentrant.
package final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        var waiters: [@Sendable (Bool) -> Bool] = []
    }

    private let state = NIOLockedValueBox(State())

    package init() {}

    /// Waits until the lock is free. Returns false if the task was cancelled first; then it must not be released.
    package func acquire() async -> Bool {
        await unlessCancelled { finish in
            let isFree = state.withLockedValue { state in
                guard state.isHeld else {
                    state.isHeld = true
                    return true
                }
                state.waiters.append(finish)
                return false
            }
            if isFree, !finish(true) { release() }
        } ?? false
    }

    package func release() {
        while true {
            let next = state.withLockedValue { state -> (@Sendable (Bool) -> Bool)? in
                guard !state.waiters.isEmpty else {
                    state.isHeld = false
                    return nil
                }
                return state.waiters.removeFirst()
            }
            // A waiter that was cancelled leaves the lock to the next one.
            guard let next, !next(true) else { return }
        }
    }
}
