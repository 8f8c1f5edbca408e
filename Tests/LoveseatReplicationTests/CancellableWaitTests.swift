import LoveseatReplication
import Synchronization
import Testing

/// `unlessCancelled`: waits that a cancelled task need not sit out.
struct CancellableWaitTests {
    /// The closure that ends a wait.
    private typealias Finish = @Sendable (Int) -> Bool

    @Test func `a wait returns the first value that it is given, and takes no other`() async {
        let taken = Mutex<[Bool]>([])
        let value = await unlessCancelled { (finish: @escaping Finish) in
            taken.withLock { $0 = [finish(1), finish(2)] }
        }
        #expect(value == 1)
        #expect(taken.withLock { $0 } == [true, false])
    }

    @Test func `a wait ends with nothing when its task is cancelled, and gives a later value back`() async {
        let (waits, begun) = AsyncStream.makeStream(of: Finish.self)
        let task = Task {
            defer { begun.finish() }
            return await unlessCancelled { (finish: @escaping Finish) in begun.yield(finish) }
        }
        var iterator = waits.makeAsyncIterator()
        let finish = await iterator.next()
        task.cancel()
        #expect(await task.value == nil)
        #expect(finish?(1) == false)
    }

    @Test func `a task that was cancelled before does not begin to wait`() async {
        let hasBegun = Mutex(false)
        let value = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await unlessCancelled { (_: @escaping Finish) in hasBegun.withLock { $0 = true } }
        }.value
        #expect(value == nil)
        #expect(!hasBegun.withLock { $0 })
    }
}
