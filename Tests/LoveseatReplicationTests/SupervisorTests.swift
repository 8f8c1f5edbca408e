import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// `ReplicationSupervisor` on a virtual clock, over connections that the test begins and ends.
struct SupervisorTests {
    /// @unchecked because everything runs on the thread that steps the clock.
    private final class Connection: Replication, @unchecked Sendable {
        private var continuation: CheckedContinuation<LoveseatError?, Never>?
        private var hasEnded = false
        private(set) var stops = 0

        func run() async -> LoveseatError? {
            if hasEnded { return nil }
            return await withCheckedContinuation { continuation = $0 }
        }

        func stop() async {
            stops += 1
            end(nil)
        }

        func end(_ error: LoveseatError?) {
            hasEnded = true
            continuation?.resume(returning: error)
            continuation = nil
        }

        func pending(listing limit: Int, unread: Int) async -> PendingTransfers { PendingTransfers() }
    }

    /// @unchecked because everything runs on the thread that steps the clock.
    private final class Bench: @unchecked Sendable {
        let clock = VirtualClock()
        let runtime: ReplicationRuntime
        let supervisor: ReplicationSupervisor
        /// Why the next attempts fail; nil for one that connects, as all later ones do.
        var failures: [(any Error)?] = []
        var connectsAgain = false
        /// Connecting takes very long.
        var hangs = false
        private(set) var network: AsyncStream<Void>.Continuation?
        private(set) var events: [String] = []
        private(set) var waits: [Double] = []
        private(set) var connections: [Connection] = []
        private(set) var firsts: [Bool] = []
        private(set) var hasEnded = false
        private(set) var error: LoveseatError?

        init() {
            runtime = SimulatedRuntime(clock, seed: 0).runtime()
            supervisor = ReplicationSupervisor(runtime: runtime)
        }

        func start(_ policy: RetryPolicy = RetryPolicy(isContinuous: true)) {
            var steps = ReplicationSupervisor.Steps { [self] isFirst in
                firsts.append(isFirst)
                if hangs { try await runtime.clock.sleep(for: .seconds(1_000)) }
                if !failures.isEmpty, let failure = failures.removeFirst() { throw failure }
                let connection = Connection()
                connections.append(connection)
                return connection
            }
            steps.connectsAgain = { [self] in connectsAgain }
            steps.networkChanges = { [self] in AsyncStream { network = $0 } }
            steps.report = { [self] event in
                switch event {
                case .waiting(_, let seconds):
                    waits.append(seconds)
                    events.append("waiting")
                default: events.append("\(event)")
                }
            }
            hasEnded = false
            supervisor.prepare()
            runtime.task { [self, steps] in
                error = await supervisor.run(policy, steps)
                hasEnded = true
            }
        }

        /// Lets so many milliseconds pass.
        func run(for time: Int) {
            let end = clock.now + time
            clock.schedule(after: time) {}
            while clock.step(until: end) {}
        }
    }

    private static let busy = LoveseatError(.init(10_503), "busy")

    /// Without `retry.connected()`, `isFirst = false` or one of the reports.
    @Test func `attempts that fail are further and further apart, until one connects`() {
        let bench = Bench()
        bench.failures = [Self.busy, Self.busy, nil]
        bench.start()
        bench.run(for: 10_000)
        #expect(bench.events == ["connecting", "waiting", "connecting", "waiting", "connecting"])
        #expect(bench.firsts == [true, true, true])
        bench.connections.last?.end(Self.busy)
        bench.run(for: 10_000)
        #expect(bench.events.suffix(3) == ["disconnected", "waiting", "connecting"])
        #expect(bench.firsts == [true, true, true, false])
        #expect(bench.waits.count == 3)
        for (wait, usual) in zip(bench.waits, [2.0, 4, 2]) { #expect(abs(wait - usual) <= usual * 0.2) }
        #expect(!bench.hasEnded)
        bench.connections.last?.end(nil)
        bench.run(for: 1)
        #expect(bench.hasEnded)
        #expect(bench.error == nil)
    }

    /// An error that is final, or the last attempt, and yet another attempt.
    @Test func `a final error, and the last attempt, end it`() {
        let bench = Bench()
        bench.failures = [LoveseatError(.httpForbidden, "no")]
        bench.start()
        bench.run(for: 1)
        #expect(bench.hasEnded)
        #expect(bench.error?.code == .httpForbidden)
        #expect(bench.events == ["connecting"])
        bench.failures = [Self.busy, Self.busy]
        bench.start(RetryPolicy(isContinuous: false, maxAttempts: 2))
        bench.run(for: 10_000)
        #expect(bench.hasEnded)
        #expect(bench.error == Self.busy)
        #expect(bench.firsts.count == 3)
        bench.failures = [CancellationError()]
        bench.start()
        bench.run(for: 1)
        #expect(bench.error?.code == .unexpectedError)
    }

    /// `connectsAgain` that is not asked, or that is negated; `replication` that is not forgotten.
    @Test func `a connection that ended normally is made again if that is wanted`() {
        let bench = Bench()
        bench.connectsAgain = true
        #expect(bench.supervisor.replication == nil)
        bench.start()
        bench.run(for: 1)
        #expect(bench.supervisor.replication as? Connection === bench.connections.last)
        bench.connections.last?.end(nil)
        bench.run(for: 1)
        #expect(bench.events == ["connecting", "disconnected", "connecting"])
        #expect(bench.connections.count == 2)
        #expect(bench.waits.isEmpty)
        bench.connectsAgain = false
        bench.connections.last?.end(nil)
        bench.run(for: 1)
        #expect(bench.hasEnded)
        #expect(bench.supervisor.replication == nil)
    }

    /// `interrupt` that leaves out the attempt, the gate or the connection.
    @Test func `a stop ends a wait, an attempt and a connection at once`() {
        let waiting = Bench()
        waiting.failures = [Self.busy]
        let connecting = Bench()
        connecting.hangs = true
        let connected = Bench()
        for bench in [waiting, connecting, connected] {
            bench.start()
            bench.run(for: 100)
            #expect(!bench.hasEnded)
            bench.supervisor.stop()
            bench.run(for: 100)
            #expect(bench.hasEnded)
            #expect(bench.error == nil)
            #expect(bench.firsts.count == 1)
        }
        #expect(connected.connections.map(\.stops) == [1])
        #expect(connected.events == ["connecting", "disconnected"])
    }

    /// `prepare` that leaves the gate open, or the stop in force.
    @Test func `after a stop it can run again, and waits as before`() {
        let bench = Bench()
        bench.start()
        bench.run(for: 1)
        bench.supervisor.stop()
        bench.run(for: 1)
        bench.failures = [Self.busy]
        bench.start()
        bench.run(for: 1_500)
        #expect(bench.events.suffix(2) == ["connecting", "waiting"])
        #expect(!bench.hasEnded)
        bench.run(for: 1_000)
        #expect(bench.connections.count == 2)
    }

    /// `suspend` that stops a second time, or not at all; a suspension that is not looked at after an attempt.
    @Test func `while it is suspended nothing connects`() {
        let bench = Bench()
        bench.supervisor.suspend()
        bench.start()
        bench.run(for: 100_000)
        #expect(bench.events == ["suspended"])
        bench.supervisor.resume()
        bench.run(for: 1)
        #expect(bench.connections.count == 1)
        bench.supervisor.suspend()
        bench.supervisor.suspend()
        bench.run(for: 100_000)
        #expect(bench.connections.map(\.stops) == [1])
        #expect(bench.events.last == "suspended")
        #expect(bench.firsts == [true])
        bench.supervisor.resume()
        bench.run(for: 1)
        #expect(bench.firsts == [true, false])
        // An attempt is given up, too, and begun anew.
        let slow = Bench()
        slow.hangs = true
        slow.start()
        slow.run(for: 1)
        slow.supervisor.suspend()
        slow.run(for: 1)
        #expect(slow.events.last == "suspended")
        slow.hangs = false
        slow.supervisor.resume()
        slow.run(for: 1)
        #expect(slow.connections.count == 1)
        #expect(slow.waits.isEmpty)
        #expect(!slow.hasEnded)
    }

    /// A wait that counts earlier failures although it was ended, and a watcher that does not open the gate.
    @Test(arguments: [false, true])
    func `resuming and a change of the network connect at once, and forget earlier failures`(
        _ isNetwork: Bool
    ) {
        let bench = Bench()
        bench.failures = [Self.busy, Self.busy, Self.busy]
        bench.start()
        for attempt in 1...3 {
            bench.run(for: 100)
            #expect(bench.firsts.count == attempt)
            #expect(bench.waits.last.map { $0 < 2.5 } == true)
            if isNetwork { bench.network?.yield() } else { bench.supervisor.resume() }
        }
        bench.run(for: 100)
        #expect(bench.connections.count == 1)
        #expect(bench.events.contains("networkChanged") == isNetwork)
    }
}
