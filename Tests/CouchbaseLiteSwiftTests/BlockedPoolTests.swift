import CouchbaseLiteSwift
import Dispatch
import Foundation
import Testing

/// Calls from threads of Swift's pool. Each test is a process of its own, whose pool is nobody else's, and which ends if the calls do not.
// Group in ./test: programs
struct BlockedPoolTests {
    @Test func `every call ends while something else blocks the whole pool`() async {
        await #expect(processExitsWith: .success) {
            endProgram(after: 60)
            let pool = HeldPool()
            try Visit().run()
            pool.release()
        }
    }

    @Test func `calls of twice as many tasks as the pool has threads end`() async {
        await #expect(processExitsWith: .success) {
            endProgram(after: 120)
            let threads = ProcessInfo.processInfo.activeProcessorCount
            let meeting = Meeting(of: threads)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<2 * threads { group.addTask { try Visit(meeting: meeting).run() } }
                try await group.waitForAll()
            }
        }
    }
}

/// Ends the program with an error, also if Swift's pool is blocked.
private func endProgram(after seconds: Int) {
    DispatchQueue(label: "deadline").asyncAfter(deadline: .now() + .seconds(seconds)) { exit(EXIT_FAILURE) }
}

/// Blocks all threads of Swift's pool but the caller's, and those that the system adds because the others are blocked.
private final class HeldPool: Sendable {
    private let began = DispatchSemaphore(value: 0)
    private let end = DispatchSemaphore(value: 0)

    init() {
        for _ in 0..<600 { Task.detached { [self] in hold() } }
        for _ in 1..<ProcessInfo.processInfo.activeProcessorCount { began.wait() }
    }

    private func hold() {
        began.signal()
        end.wait()
        // The next one may go, too.
        end.signal()
    }

    func release() { end.signal() }
}

/// A place where threads wait for each other, so that they make their next calls at once. None waits longer than a second.
private final class Meeting: @unchecked Sendable {
    private let size: Int
    private let condition = NSCondition()
    private var waiting = 0
    private var round = 0

    init(of size: Int) { self.size = size }

    func wait() {
        condition.lock()
        defer { condition.unlock() }
        let own = round
        waiting += 1
        if waiting == size {
            waiting = 0
            round += 1
            condition.broadcast()
        }
        while own == round {
            if condition.wait(until: Date(timeIntervalSinceNow: 1)) { continue }
            if own == round { waiting -= 1 }
            return
        }
    }
}

/// Everything that an app calls, on the thread of the caller.
private struct Visit {
    private let pair: ReplicaPair
    private let listener: URLEndpointListener
    private let meeting: Meeting?

    init(meeting: Meeting? = nil) throws {
        self.meeting = meeting
        pair = try ReplicaPair()
        var config = URLEndpointListenerConfiguration(collections: [pair.theirs])
        config.networkInterface = "127.0.0.1"
        config.disableTLS = true
        listener = URLEndpointListener(config: config)
    }

    func run() throws {
        let database = pair.world.database
        meeting?.wait()
        try pair.save("tower", "ours", in: pair.ours)
        meeting?.wait()
        try database.inBatch { try pair.save("bridge", "ours", in: pair.ours) }
        meeting?.wait()
        let query = try database.createQuery("SELECT meta().id FROM travel.sights")
        try #require(try query.execute().allResults().count == 2)
        meeting?.wait()
        try waitForRows(query)
        meeting?.wait()
        try listener.start()
        let url = try #require(listener.urls?.first)
        meeting?.wait()
        let remote = try replicate(with: URLEndpoint(url: url))
        let local = try replicate(with: DatabaseEndpoint(database: pair.peer))
        try #require(pair.theirs.count == 2)
        meeting?.wait()
        local.stop()
        listener.stop()
        meeting?.wait()
        try database.close()
        meeting?.wait()
        try pair.peer.delete()
        try #require(remote.status.activity == .stopped)
        try #require(local.status.activity == .stopped)
    }

    private func waitForRows(_ query: Query) throws {
        let heard = DispatchSemaphore(value: 0)
        let token = query.addChangeListener(withQueue: DispatchQueue(label: "rows")) { _ in heard.signal() }
        heard.wait()
        token.remove()
    }

    /// Replicates until everything was transferred, and goes on.
    private func replicate(with endpoint: any Endpoint) throws -> Replicator {
        var config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: pair.ours)],
            target: endpoint
        )
        config.continuous = true
        let replicator = Replicator(config: config)
        let isIdle = DispatchSemaphore(value: 0)
        replicator.addChangeListener(withQueue: DispatchQueue(label: "statuses")) { change in
            if change.status.activity == .idle { isIdle.signal() }
        }
        replicator.start()
        isIdle.wait()
        return replicator
    }
}
