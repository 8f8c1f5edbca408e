package import LoveseatReplication

/// The runtime of the real driver in a simulation: a virtual clock, and executors that take turns as a seed decides.
///
/// If two executors have work at the same time, seeded dice decide which goes first. The jobs of one driver keep their order.
///
/// Each job takes a turn, so a seed gives the same history only in builds whose tasks change executors equally often. Debug and release builds do
/// over BLIP; over CouchDB's wire they do not, because the optimizer leaves out changes between functions of `HTTPDriver`.
///
/// @unchecked because everything of a simulation runs on the thread that calls ``VirtualClock/step()``.
package final class SimulatedRuntime: @unchecked Sendable {
    /// The Unix time at which every simulation begins, in milliseconds.
    package static let beginning: Int64 = 1_700_000_000_000

    package let clock: VirtualClock
    private var dice: SeededGenerator

    package init(_ clock: VirtualClock, seed: UInt64) {
        self.clock = clock
        dice = SeededGenerator(seed: seed)
    }

    fileprivate func nextRank() -> Int {
        clock.checkThread()
        return 1 + Int(truncatingIfNeeded: dice.next() & 3)
    }

    /// `driver`: the executor that the next drivers get; a new one for each by default. `wall`: the wall clock; the right one by default.
    package func runtime(driver: SimulatedExecutor? = nil, wall: SimulatedWallClock? = nil)
        -> ReplicationRuntime
    {
        ReplicationRuntime(
            clock: SimulatedTime(clock: clock),
            executor: SimulatedTaskExecutor(self),
            makeDriverExecutor: { [self] in driver ?? SimulatedExecutor(self) },
            unixTime: { [clock] in wall?.now ?? Self.beginning + Int64(clock.now) },
            uptime: { [clock] in .milliseconds(clock.now) },
            spread: { [self] in Double.random(in: -1...1, using: &dice) }
        )
    }
}

/// Runs one driver's jobs, in order, one at each turn.
package final class SimulatedExecutor: SerialExecutor, @unchecked Sendable {
    private let runtime: SimulatedRuntime
    private var jobs: [UnownedJob] = []
    private var first = 0
    private var hasTurn = false
    private var freeAt = 0

    package init(_ runtime: SimulatedRuntime) { self.runtime = runtime }

    /// Blocks, as a database does, for so many milliseconds after the job that runs now.
    func block(for milliseconds: Int) { freeAt = max(freeAt, runtime.clock.now) + milliseconds }

    package func enqueue(_ job: consuming ExecutorJob) {
        runtime.clock.checkThread()
        jobs.append(UnownedJob(job))
        if !hasTurn { scheduleTurn() }
    }

    private func scheduleTurn() {
        hasTurn = true
        runtime.clock.schedule(after: freeAt - runtime.clock.now, rank: runtime.nextRank()) { [self] in turn()
        }
    }

    private func turn() {
        let job = jobs[first]
        first += 1
        if first == jobs.count { (jobs, first) = ([], 0) }
        job.runSynchronously(on: asUnownedSerialExecutor())
        if jobs.isEmpty { hasTurn = false } else { scheduleTurn() }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}

/// Runs the jobs of tasks that belong to no driver, in any order.
private final class SimulatedTaskExecutor: TaskExecutor, @unchecked Sendable {
    private let runtime: SimulatedRuntime

    init(_ runtime: SimulatedRuntime) { self.runtime = runtime }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        runtime.clock.schedule(after: 0, rank: runtime.nextRank()) { [self] in
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

/// The virtual clock as Swift's tasks see it.
struct SimulatedTime: Clock {
    struct Instant: InstantProtocol {
        /// Milliseconds since the simulation began.
        let time: Int

        func advanced(by duration: Duration) -> Instant {
            // Up, so that nobody wakes too early.
            let (seconds, rest) = duration.components
            return Instant(
                time: time + Int(seconds) * 1_000 + Int((rest + 999_999_999_999_999) / 1_000_000_000_000_000)
            )
        }

        func duration(to other: Instant) -> Duration { .milliseconds(other.time - time) }

        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.time < rhs.time }
    }

    package let clock: VirtualClock
    private let sleepers = Sleepers()

    init(clock: VirtualClock) { self.clock = clock }

    /// How many tasks sleep.
    var sleeping: Int { sleepers.count }

    private final class Sleepers: @unchecked Sendable { var count = 0 }

    var now: Instant { Instant(time: clock.now) }
    var minimumResolution: Duration { .milliseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let sleeper = Sleeper(clock)
        sleepers.count += 1
        defer { sleepers.count -= 1 }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { sleeper.begin($0, until: deadline.time) }
        } onCancel: {
            sleeper.cancel()
        }
    }

    private final class Sleeper: @unchecked Sendable {
        private let clock: VirtualClock
        private var continuation: CheckedContinuation<Void, any Error>?
        private var token: VirtualClock.Token?
        private var isCancelled = false

        init(_ clock: VirtualClock) { self.clock = clock }

        func begin(_ continuation: CheckedContinuation<Void, any Error>, until time: Int) {
            guard !isCancelled else { return continuation.resume(throwing: CancellationError()) }
            self.continuation = continuation
            token = clock.schedule(after: time - clock.now) { [self] in
                self.continuation?.resume()
                self.continuation = nil
            }
        }

        func cancel() {
            isCancelled = true
            // The sleep has not begun, or is over.
            guard let continuation else { return }
            if let token { clock.cancel(token) }
            self.continuation = nil
            continuation.resume(throwing: CancellationError())
        }
    }
}
