private import Synchronization

/// Waits for something that goes on even if the waiting task is cancelled.
///
/// - Parameter begin: Begins the wait. It is given a closure that ends the wait with a value. That closure returns false if the wait has
///   ended already, so that the value can be released.
/// - Returns: The value; nil as soon as the task is cancelled.
package func unlessCancelled<Value: Sendable>(
    _ begin: (_ finish: @escaping @Sendable (Value) -> Bool) -> Void
) async -> Value? {
    let wait = CancellableWait<Value>()
    return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            if wait.begin(continuation) { begin { wait.end($0) } }
        }
    } onCancel: {
        wait.end(nil)
    }
}

/// Runs work that has to be completed, such as closing something, whatever becomes of the task that waits for it.
///
/// If the task is cancelled during the wait, the wait ends and the work goes on. A task that was cancelled before is cleaning up: it waits
/// until the work is done.
///
/// - Parameters:
///   - executor: Where the work runs. Nil means Swift's pool, which an app may block.
///   - work: The work.
/// - Returns: The result of the work; nil if the task was cancelled first.
@discardableResult
package func finishing<Value: Sendable>(
    on executor: (any TaskExecutor)? = nil,
    _ work: @escaping @Sendable () async -> Value
) async -> Value? {
    let task = Task(executorPreference: executor) { await work() }
    return Task.isCancelled ? await task.value : await task.valueUnlessCancelled(on: executor)
}

extension Task where Failure == Never {
    /// The task's result; nil as soon as the task that waits for it is cancelled. It is waited for on an executor; nil means Swift's pool.
    package func valueUnlessCancelled(on executor: (any TaskExecutor)? = nil) async -> Success? {
        await unlessCancelled { finish in
            Task<Void, Never>(executorPreference: executor) { _ = finish(await value) }
        }
    }
}

private final class CancellableWait<Value: Sendable>: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Value?, Never>)
        case ended
    }

    private let state = Mutex(State.new)

    /// Returns whether there is anything to wait for.
    func begin(_ continuation: CheckedContinuation<Value?, Never>) -> Bool {
        let isWaiting = state.withLock { state in
            guard case .new = state else { return false }
            state = .waiting(continuation)
            return true
        }
        if !isWaiting { continuation.resume(returning: nil) }
        return isWaiting
    }

    /// Ends the wait. Returns false if it has ended already.
    @discardableResult
    func end(_ value: Value?) -> Bool {
        let before = state.withLock { state in
            defer { state = .ended }
            return state
        }
        guard case .waiting(let continuation) = before else { return false }
        continuation.resume(returning: value)
        return true
    }
}
