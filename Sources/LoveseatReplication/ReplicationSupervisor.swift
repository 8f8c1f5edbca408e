package import LoveseatModel
private import Synchronization

/// Keeps a replication running: connects, replicates until the connection ends, and connects again when a ``RetryPolicy`` says so. It can
/// be stopped, suspended and resumed from any thread.
package final class ReplicationSupervisor: Sendable {
    /// The steps that differ between replications.
    package struct Steps: Sendable {
        /// Connects to the peer. Its task is cancelled when the replication is stopped or suspended. `isFirst`: whether there was no
        /// connection before.
        package var connect: @Sendable (_ isFirst: Bool) async throws -> any Replication
        /// Emits when connecting again may help; nil if only time does.
        package var networkChanges: @Sendable () -> AsyncStream<Void>? = { nil }
        /// Whether to connect again after a connection that ended normally.
        package var connectsAgain: @Sendable () -> Bool = { false }
        package var report: @Sendable (Event) -> Void = { _ in }

        package init(connect: @escaping @Sendable (_ isFirst: Bool) async throws -> any Replication) {
            self.connect = connect
        }
    }

    package enum Event: Hashable, Sendable {
        case connecting
        /// It is suspended.
        case suspended
        /// The connection has ended.
        case disconnected
        /// The network changed while it waits.
        case networkChanged
        /// It connects again after a number of seconds.
        case waiting(LoveseatError, seconds: Double)
    }

    private struct State {
        var isStopping = false
        var isSuspended = false
        /// The current attempt to connect.
        var connecting: Task<any Replication, any Error>?
        var replication: (any Replication)?

        var mustEnd: Bool { isStopping || isSuspended }
    }

    private let runtime: ReplicationRuntime
    private let state = Mutex(State())
    /// The gate at which it waits between attempts.
    private let gate = RetryGate()

    package init(runtime: ReplicationRuntime) { self.runtime = runtime }

    // MARK: From outside

    /// Forgets an earlier ``stop()``. Call this before ``run(_:_:)``.
    package func prepare() {
        state.withLock { $0.isStopping = false }
        gate.close()
    }

    /// Ends the replication normally, without waiting long for the peer.
    package func stop() {
        interrupt { state in
            state.isStopping = true
            return true
        }
    }

    /// Disconnects until ``resume()``.
    package func suspend() {
        interrupt { state in
            defer { state.isSuspended = true }
            return !state.isSuspended
        }
    }

    /// Continues after ``suspend()``. Connects at once if it waits to connect again.
    package func resume() {
        state.withLock { $0.isSuspended = false }
        gate.open()
    }

    /// Ends the current connection or attempt, if `change` returns true.
    private func interrupt(_ change: (inout State) -> Bool) {
        let interrupted = state.withLock { change(&$0) ? ($0.connecting, $0.replication) : nil }
        // It is suspended already.
        guard let (connecting, replication) = interrupted else { return }
        connecting?.cancel()
        gate.open()
        if let replication { runtime.task { await replication.stop() } }
    }

    /// The replication over the current connection; nil if there is none.
    package var replication: (any Replication)? { state.withLock { $0.replication } }

    // MARK: Running

    private var isStopping: Bool { state.withLock { $0.isStopping } }
    private var isSuspended: Bool { state.withLock { $0.isSuspended } }

    /// Connects until a connection ends normally, an error is final, or ``stop()`` is called; returns the final error.
    package func run(_ policy: RetryPolicy, _ steps: Steps) async -> LoveseatError? {
        var retry = policy
        var isFirst = true
        while !isStopping {
            guard !isSuspended else {
                steps.report(.suspended)
                _ = await gate.wait()
                continue
            }
            steps.report(.connecting)
            let (failure, wasConnected) = await attempt(steps, isFirst)
            if wasConnected {
                retry.connected()
                isFirst = false
            }
            if isStopping { return nil }
            if isSuspended { continue }
            guard let failure else {
                if steps.connectsAgain() { continue }
                return nil
            }
            guard let wait = retry.wait(after: failure) else { return failure }
            let seconds = retry.spread(wait, after: failure, random: runtime.spread())
            steps.report(.waiting(failure, seconds: seconds))
            if await waitToRetry(seconds, steps) { retry.connected() }
        }
        return nil
    }

    /// Waits for the next attempt.
    ///
    /// - Returns: whether it comes early, because the network changed or ``resume()`` was called: earlier failures then
    ///   do not count.
    private func waitToRetry(_ seconds: Double, _ steps: Steps) async -> Bool {
        let watcher = steps.networkChanges().map { changes in
            runtime.task { [gate] in
                for await _ in changes {
                    steps.report(.networkChanged)
                    gate.open()
                }
            }
        }
        defer { watcher?.cancel() }
        return await gate.wait(seconds: seconds, runtime)
    }

    /// Makes one connection and replicates over it.
    private func attempt(_ steps: Steps, _ isFirst: Bool) async -> (
        failure: LoveseatError?, wasConnected: Bool
    ) {
        let replication: any Replication
        do { replication = try await connect(steps, isFirst) } catch {
            return (
                (error as? LoveseatError) ?? LoveseatError(.unexpectedError, "cannot connect: \(error)"),
                false
            )
        }
        let mustStop = state.withLock { state in
            state.replication = replication
            return state.mustEnd
        }
        if mustStop { await replication.stop() }
        let failure = await replication.run()
        state.withLock { $0.replication = nil }
        steps.report(.disconnected)
        return (failure, true)
    }

    private func connect(_ steps: Steps, _ isFirst: Bool) async throws -> any Replication {
        let task = Task(executorPreference: runtime.executor) { try await steps.connect(isFirst) }
        let mustStop = state.withLock { state in
            state.connecting = task
            return state.mustEnd
        }
        if mustStop { task.cancel() }
        defer { state.withLock { $0.connecting = nil } }
        return try await task.value
    }
}
