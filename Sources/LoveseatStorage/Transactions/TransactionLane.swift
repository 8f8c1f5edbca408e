/// A thread on which the transactions of tasks run one after another, since they may block it.
///
/// The closure stays part of its task: it sees the task's local values, and whether the task is cancelled.
actor TransactionLane {
    private let executor: QueueExecutor

    init(label: String) { executor = QueueExecutor(label: label) }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func run<T: Sendable>(_ body: @Sendable () throws -> T) throws -> T { try body() }
}

/// The thread on which tasks wait for a place behind an ``AccessGate``. Nothing blocks it.
///
/// If a task waited on its own actor, it would need that actor to continue once it has its place. The actor's thread
/// may be blocked by a call that waits behind this very task.
actor WaitingRoom {
    private let executor = QueueExecutor(label: "loveseat.waiting")

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - gate: What the place is behind. `body` leaves it.
    ///   - timeout: How long to wait at most; nil for as long as it takes.
    ///   - body: Gets what is left of the timeout.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws, `AccessGate.TimedOut`, or `CancellationError`.
    func wait<T: Sendable>(
        at gate: AccessGate,
        within timeout: Duration?,
        then body: @Sendable (Duration?) async throws -> T
    ) async throws -> T {
        try await body(try await gate.enter(within: timeout))
    }
}
