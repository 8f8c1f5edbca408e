private import Dispatch
private import Synchronization

/// Work that runs once at a time. Callers that come while it runs share the next run.
final class SharedRuns<Value: Sendable>: Sendable {
    private final class Run: Sendable {
        private let end = DispatchGroup()
        private let result = Mutex<Result<Value, any Error>?>(nil)

        init() { end.enter() }

        func finish(_ result: Result<Value, any Error>) {
            self.result.withLock { $0 = result }
            end.leave()
        }

        /// Blocks the thread until the run has ended.
        func wait() -> Result<Value, any Error>? {
            end.wait()
            return result.withLock { $0 }
        }
    }

    private struct State {
        var running: Run?
        var next: Run?
    }

    private let state = Mutex(State())

    /// Whether a run waits for the end of the one before.
    var isWaiting: Bool { state.withLock { $0.next != nil } }

    /// Runs the work, or waits for a run that begins after this call. Blocks the thread.
    ///
    /// - Throws: The error that the run throws.
    func join(_ work: () throws -> Value) throws -> Value {
        let run = Run()
        let (shared, before) = state.withLock { state -> (Run?, Run?) in
            if let next = state.next { return (next, nil) }
            guard let running = state.running else {
                state.running = run
                return (nil, nil)
            }
            state.next = run
            return (nil, running)
        }
        if let result = shared?.wait() { return try result.get() }
        if let before {
            _ = before.wait()
            state.withLock { $0 = State(running: run) }
        }
        let result = Result(catching: work)
        state.withLock { if $0.running === run { $0.running = nil } }
        run.finish(result)
        return try result.get()
    }
}
