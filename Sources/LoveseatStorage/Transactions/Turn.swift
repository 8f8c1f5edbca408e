import Dispatch
import LoveseatAssertions
private import Synchronization

/// A task's turn behind an ``AccessGate``: the actor on which the task goes on once it has its place.
///
/// The task's job waits at the gate, not a thread. It needs a thread only when its turn comes, and then that of a lane: calls that wait
/// behind this task may block every thread of Swift's pool, or the thread of the task's own actor.
package actor Turn {
    private let executor: TurnExecutor

    /// - Parameters:
    ///   - gate: The gate behind which the place is.
    ///   - timeout: How long to wait at most; nil for as long as it takes.
    ///   - lane: Returns the lane on which to go on, once there is a place.
    package init(
        at gate: AccessGate,
        within timeout: Duration?,
        then lane: @escaping @Sendable () -> TransactionLane
    ) {
        executor = TurnExecutor(gate, timeout, lane)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Waits for the turn, and runs a closure. Called once.
    ///
    /// - Parameter body: Gets the lane on whose thread it runs, and the rest of the timeout. It leaves the gate.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws, `AccessGate.TimedOut`, or `CancellationError` if ``cancel()`` came first.
    package func run<T: Sendable>(_ body: @Sendable (TransactionLane, Duration?) throws -> T) throws -> T {
        let (lane, timeLeft) = try executor.place
        return try body(lane, timeLeft)
    }

    /// Ends the wait.
    package nonisolated func cancel() { executor.cancel() }
}

/// Keeps the job of a ``Turn`` until there is a place.
private final class TurnExecutor: SerialExecutor {
    private struct State {
        var isCancelled = false
        var outcome: AccessGate.Outcome?
        var lane: TransactionLane?
    }

    private let gate: AccessGate
    private let ticket: UInt64
    private let deadline: ContinuousClock.Instant?
    private let lane: @Sendable () -> TransactionLane
    private let state = Mutex(State())

    init(_ gate: AccessGate, _ timeout: Duration?, _ lane: @escaping @Sendable () -> TransactionLane) {
        self.gate = gate
        self.lane = lane
        ticket = gate.newTicket()
        deadline = timeout.map { ContinuousClock.now.advanced(by: $0) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        gate.wait(ticket, until: deadline) { [self] outcome in
            let lane = outcome == .admitted ? lane() : nil
            state.withLock { ($0.outcome, $0.lane) = (outcome, lane) }
            let goOn: @Sendable () -> Void = { [self] in
                job.runSynchronously(on: asUnownedSerialExecutor())
            }
            if let lane {
                lane.executor.run(goOn)
            } else {
                // As a lane does, a queue of its own gets a thread even if those of Swift's pool are all blocked.
                DispatchQueue(label: "loveseat.turn").async(execute: goOn)
            }
        }
        // A cancellation before the job was in the queue did not find the job there.
        if state.withLock({ $0.isCancelled }) { gate.cancel(ticket) }
    }

    func cancel() {
        state.withLock { $0.isCancelled = true }
        gate.cancel(ticket)
    }

    /// The lane that it runs on, and the rest of the timeout.
    var place: (TransactionLane, Duration?) {
        get throws {
            switch state.withLock({ ($0.outcome, $0.lane) }) {
            case (.admitted, let lane?):
                return (lane, deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) })
            case (.timedOut, _): throw AccessGate.TimedOut()
            case (.cancelled, _): throw CancellationError()
            case (.admitted, nil), (nil, _):
                impossible("a turn begins without its place")
                throw CancellationError()
            }
        }
    }
}
