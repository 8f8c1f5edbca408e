import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// A value that tasks share.
private final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func withLock<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

// Group in ./test: programs
/// Bodies that take long to inflate and to parse, beside small ones.
struct LargeBodyTests {
    /// A document list that becomes `size` bytes, compressed a thousand times.
    private func bomb(_ size: Int) throws -> [UInt8] {
        let scratch = try Scratch()
        let path = "\(scratch.path)/body"
        _ = FileManager.default.createFile(
            atPath: path,
            contents: Data("{\"docs\":[]}".utf8) + Data(repeating: 32, count: size)
        )
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["gzip", path]
        try Lifeline.run(process)
        process.waitUntilExit()
        return Array(try Data(contentsOf: URL(filePath: path + ".gz")))
    }

    @Test func `small requests, and a larger one, are answered beside ten bodies that become 30 MB`()
        async throws
    {
        let served = try await ServedDatabase()
        _ = try await served.call("PUT", "/main/d", ["n": 1])
        let (client, body) = (served.client, try bomb(30 << 20))
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
        let left = Shared(10)
        let attackers = (0..<10).map { _ in
            Task {
                let status = try? await offPool {
                    try client.send("POST", "/main/_bulk_docs", headers, body: body).status
                }
                left.withLock { $0 -= 1 }
                return status
            }
        }
        var longest = Duration.zero
        let larger: JSONValue = ["text": .string(String(repeating: "x", count: 400_000))]
        var number = 0
        repeat {
            number += 1
            let start = ContinuousClock.now
            #expect(try await served.call("GET", "/main/d").status == 200)
            #expect(try await served.call("PUT", "/main/large\(number)", larger).status == 201)
            longest = max(longest, .now - start)
        } while left.withLock { $0 > 0 }
        for attacker in attackers { #expect([201, 503].contains(await attacker.value)) }
        #expect(longest < .seconds(2), "two requests took \(longest)")
        await served.listener.stop()
    }

    @Test func `the turn is for the client with the least work, and for the request with the least done`()
        async throws
    {
        let workers = BodyWorkers(places: 1)
        let order = Shared<[String]>([])
        let (gate, open) = AsyncStream<Void>.makeStream()
        // Holds the only place until all others wait.
        let holder = Task {
            try await workers.turn(of: "busy", done: 0) {
                let semaphore = DispatchSemaphore(value: 0)
                Task {
                    for await _ in gate { break }
                    semaphore.signal()
                }
                semaphore.wait()
            }
        }
        while workers.waiting(of: "busy") == nil { await Task.yield() }
        var tasks: [Task<Void, any Error>] = []
        for (client, done) in [("busy", 5), ("busy", 1), ("idle", 9), ("busy", 3), ("idle", 2)] {
            let count = workers.waiting(of: client) ?? 0
            tasks.append(
                Task {
                    try await workers.turn(of: client, done: done) {
                        order.withLock { $0.append("\(client)\(done)") }
                    }
                }
            )
            while (workers.waiting(of: client) ?? 0) == count { await Task.yield() }
        }
        open.yield()
        try await holder.value
        for task in tasks { try await task.value }
        let found = order.withLock { $0 }
        #expect(found.filter { $0.hasPrefix("busy") } == ["busy1", "busy3", "busy5"])
        #expect(found.filter { $0.hasPrefix("idle") } == ["idle2", "idle9"])
        // It has had no time yet.
        #expect(found.first == "idle2")
        #expect(workers.waiting(of: "busy") == nil)
        #expect(workers.waiting(of: "idle") == nil)
    }
}
