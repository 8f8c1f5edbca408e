import LoveseatReplication
import LoveseatTesting
import Testing

/// `RetryGate`: where a replicator waits between two attempts.
struct RetryGateTests {
    /// @unchecked because everything runs on the thread that steps the clock.
    private final class Waiter: @unchecked Sendable {
        let clock = VirtualClock()
        let runtime: ReplicationRuntime
        let gate = RetryGate()
        /// When each wait ended, in milliseconds, and whether the gate was opened.
        private(set) var ends: [(time: Int, isOpened: Bool)] = []

        init() { runtime = SimulatedRuntime(clock, seed: 0).runtime() }

        func wait(seconds: Double) {
            runtime.task { [self] in
                let isOpened = await gate.wait(seconds: seconds, runtime)
                ends.append((clock.now, isOpened))
            }
        }

        func run(until limit: Int = .max) { while clock.step(until: limit) {} }
    }

    @Test func `the retry gate lets a wait through when its time is up`() {
        let waiter = Waiter()
        waiter.wait(seconds: 5)
        waiter.run(until: 4_999)
        #expect(waiter.ends.isEmpty)
        waiter.run()
        #expect(waiter.ends.map(\.time) == [5_000])
        #expect(waiter.ends.map(\.isOpened) == [false])
    }

    @Test func `the retry gate lets a wait through at once when it is opened`() {
        let waiter = Waiter()
        waiter.wait(seconds: 5)
        waiter.run(until: 1_000)
        waiter.gate.open()
        waiter.run(until: 1_001)
        #expect(waiter.ends.count == 1)
        #expect(waiter.ends.allSatisfy { $0.isOpened && $0.time < 5_000 })
        // The timer of the first wait does not end the second.
        waiter.wait(seconds: 60)
        waiter.run()
        #expect(waiter.ends.count == 2 && waiter.ends[1].time >= 60_000 && !waiter.ends[1].isOpened)
    }

    @Test func `the retry gate that was opened while nothing waited lets one wait through`() {
        let waiter = Waiter()
        waiter.gate.open()
        waiter.wait(seconds: 5)
        waiter.run(until: 1)
        #expect(waiter.ends.map(\.isOpened) == [true])
        waiter.wait(seconds: 5)
        waiter.run()
        #expect(waiter.ends.map(\.isOpened) == [true, false])
    }

    @Test func `the retry gate that was closed again lets nothing through before its time`() {
        let waiter = Waiter()
        waiter.gate.open()
        waiter.gate.close()
        waiter.wait(seconds: 5)
        waiter.run()
        #expect(waiter.ends.map(\.time) == [5_000])
        #expect(waiter.ends.map(\.isOpened) == [false])
    }
}
