import Dispatch
import LoveseatCore
import LoveseatReplication
import LoveseatTesting
import Synchronization
import Testing

/// `BlockingThreads`, and the clock of replications.
struct BlockingThreadsTests {
    private func block(on threads: BlockingThreads, until end: DispatchSemaphore) -> Task<Void, Never> {
        Task.detached(executorPreference: threads) { wait(for: end) }
    }

    @Test func `a job gets a thread although more jobs than there are processors block theirs`() async {
        let threads = BlockingThreads(label: "test")
        let end = DispatchSemaphore(value: 0)
        let blocked = (0..<32).map { _ in block(on: threads, until: end) }
        await Task.detached(executorPreference: threads) {}.value
        for _ in blocked { end.signal() }
        for task in blocked { await task.value }
    }

    @Test func `jobs beyond the limit wait for a thread, and run in order`() async {
        let threads = BlockingThreads(label: "test", limit: 1)
        let end = DispatchSemaphore(value: 0)
        let first = block(on: threads, until: end)
        let order = Mutex<[Int]>([])
        let later = (0..<20).map { number in
            Task.detached(executorPreference: threads) { @Sendable in order.withLock { $0.append(number) } }
        }
        #expect(order.withLock { $0 } == [])
        end.signal()
        await first.value
        for task in later { await task.value }
        #expect(order.withLock { $0 } == Array(0..<20))
    }

    @Test func `every job runs once, whatever is enqueued while threads become idle`() async {
        let threads = BlockingThreads(label: "test", limit: 3)
        let runs = Mutex(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { @Sendable in
                    for round in 0..<500 {
                        let jobs = (0..<round % 4).map { _ in
                            Task.detached(executorPreference: threads) { @Sendable in
                                runs.withLock { $0 += 1 }
                            }
                        }
                        for job in jobs { await job.value }
                    }
                }
            }
        }
        let expected = 6_000
        #expect(runs.withLock { $0 } == expected)
    }

    @Test func `the clock of replications sleeps as long as it is told to, and not after it is cancelled`()
        async throws
    {
        let clock = ReplicationRuntime.system.clock
        let before = ContinuousClock.now
        try await clock.sleep(for: .milliseconds(20))
        #expect(before.duration(to: .now) >= .milliseconds(20))
        let sleeping = Task { try await clock.sleep(for: .seconds(600)) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
        #expect(before.duration(to: .now) < .seconds(300))
    }
}

/// Blocks the thread.
private func wait(for end: DispatchSemaphore) { end.wait() }
