/// The clock, the executors and the random numbers of a replication.
///
/// They come from outside, so that the simulator runs the code that ships on a virtual clock and a seeded executor
/// (docs/decisions/0008-one-driver.md).
package struct ReplicationRuntime: Sendable {
    /// Measures every delay.
    package var clock: any Clock<Duration>
    /// Runs tasks that belong to no driver; nil for Swift's own pool. The standard library's `sleep` leaves the executor of its
    /// caller, which is why tasks that wait need one.
    package var executor: (any TaskExecutor)?
    /// Whether a driver's tasks begin on the executor of the driver. In a simulation, where all jobs take turns, they begin on ``executor``.
    package var beginsOnDrivers: Bool
    /// Makes the executor of one driver. It may block, since the database is called on it.
    package var makeDriverExecutor: @Sendable () -> any SerialExecutor
    /// Unix time in milliseconds.
    package var unixTime: @Sendable () -> Int64
    /// How far the ``clock`` has come since some moment: it only grows.
    package var uptime: @Sendable () -> Duration
    /// A random number from -1 to 1, which spreads waits.
    package var spread: @Sendable () -> Double
    /// Whether libraries may be used that only some machines have, which makes the bytes that are sent depend on the machine.
    package var usesLibrariesOfMachine: Bool

    package init(
        clock: any Clock<Duration>,
        executor: (any TaskExecutor)?,
        beginsOnDrivers: Bool = false,
        makeDriverExecutor: @escaping @Sendable () -> any SerialExecutor,
        unixTime: @escaping @Sendable () -> Int64,
        uptime: @escaping @Sendable () -> Duration,
        spread: @escaping @Sendable () -> Double,
        usesLibrariesOfMachine: Bool = false
    ) {
        self.clock = clock
        self.executor = executor
        self.beginsOnDrivers = beginsOnDrivers
        self.makeDriverExecutor = makeDriverExecutor
        self.unixTime = unixTime
        self.uptime = uptime
        self.spread = spread
        self.usesLibrariesOfMachine = usesLibrariesOfMachine
    }

    /// Begins a task that belongs to no actor.
    @discardableResult
    package func task(_ work: sending @escaping () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: executor, operation: work)
    }

    /// Begins a task that does its work after a delay, unless it is cancelled before.
    package func task(after delay: Duration, _ work: @escaping @Sendable () async -> Void) -> Task<
        Void, Never
    > {
        let clock = clock
        return task {
            // The task was cancelled before the delay was over.
            guard (try? await clock.sleep(for: delay)) != nil else { return }
            await work()
        }
    }

    /// Begins a task that calls an actor, on the executor that ``beginsOnDrivers`` says. `driver`: the actor's executor.
    ///
    /// The work is not isolated to the actor: a closure that is changes executors more often in debug builds, and a seed then gives another
    /// history.
    @discardableResult
    package func task(on driver: any SerialExecutor, _ work: sending @escaping () async -> Void) -> Task<
        Void, Never
    > {
        let preferred = beginsOnDrivers ? driver as? any TaskExecutor : executor
        return Task(executorPreference: preferred, operation: work)
    }

    /// Lets other work of an actor have a turn. `Task.yield` goes by way of Swift's own pool, whatever the task runs on.
    package func yield<Owner: Actor>(of owner: isolated Owner, on driver: any SerialExecutor) async {
        await task(on: driver) {}.value
    }
}
