import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// Calls that block every thread of Swift's pool. They need a process of their own (./test): other tests block threads, too.
struct BlockedPoolTests {
    @Test func `a task that waits needs no thread of the pool, all of which saves block that wait behind it`()
        async throws
    {
        let scratch = try Scratch()
        // It would end with busy.
        var config = scratch.config
        config.busyTimeout = .seconds(20)
        let database = try Database(name: "blocked", config: config)
        let collection = try database.defaultCollection()
        let goOn = DispatchSemaphore(value: 0)
        let (begun, begin) = AsyncStream<Void>.makeStream()
        var steps = begun.makeAsyncIterator()
        let holding = Task {
            try await database.write { _ in
                begin.yield()
                goOn.wait()
            }
        }
        await steps.next()
        let waiting = Task {
            begin.yield()
            try await database.write { try $0.save(Document(id: "waited"), in: collection) }
        }
        await steps.next()
        let threads = ProcessInfo.processInfo.activeProcessorCount
        let blocked = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            for _ in 0..<threads { blocked.wait() }
            goOn.signal()
        }
        try await withThrowingTaskGroup { group in
            for number in 0..<threads {
                group.addTask {
                    blocked.signal()
                    try collection.save(Document(id: "blocked\(number)"))
                }
            }
            try await group.waitForAll()
        }
        try await holding.value
        try await waiting.value
        #expect(collection.count == UInt64(threads) + 1)
    }
}
