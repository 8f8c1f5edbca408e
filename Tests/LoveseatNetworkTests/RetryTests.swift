import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// What a replicator does about failures, and what it says to a server (replication.md §17, §18). `RetryPolicyTests` has the rule alone.
@Suite struct RetryTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        var configuration = DatabaseConfiguration(directory: scratch.path)
        configuration.enableDeltaSync = true
        far = try Database(name: "far", config: configuration)
    }

    private func configuration(_ port: Int, _ collections: [Collection]? = nil) throws
        -> ReplicatorConfiguration
    {
        let url = try #require(URL(string: "ws://127.0.0.1:\(port)/far"))
        return ReplicatorConfiguration(
            collections: try collections ?? [near.defaultCollection()],
            target: URLEndpoint(url)
        )
    }

    private func listener(
        _ collections: [Collection],
        _ change: (inout URLEndpointListenerConfiguration) -> Void = { _ in }
    ) async throws -> (URLEndpointListener, port: Int) {
        var configuration = URLEndpointListenerConfiguration(collections: collections)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        change(&configuration)
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return (listener, Int(try #require(listener.port)))
    }

    private func activities(_ replicator: Replicator) async -> [Replicator.ActivityLevel] {
        // Asked for before, so that none passes unseen.
        let statuses = replicator.statuses
        replicator.start()
        var seen: [Replicator.ActivityLevel] = []
        for await status in statuses where seen.last != status.activity {
            seen.append(status.activity)
        }
        return seen
    }

    // MARK: Attempts

    @Test func `a busy server is asked as often as configured, a forbidding one once`() async throws {
        let busy = try await ScriptedServer { _, _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }
        var configuration = try configuration(busy.port)
        configuration.maxAttempts = 3
        configuration.maxAttemptWaitTime = 1
        let replicator = Replicator(configuration)
        let seen = await activities(replicator)
        #expect(seen == [.connecting, .offline, .connecting, .offline, .connecting, .stopped])
        #expect(busy.requests.withLockedValue { $0.count } == 3)
        #expect(replicator.status.error?.code == .init(10_503))
        let forbidding = try await ScriptedServer { _, _ in "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" }
        let once = Replicator(try self.configuration(forbidding.port))
        #expect(await activities(once) == [.connecting, .stopped])
    }

    @Test func `resuming tries again at once`() async throws {
        let busy = try await ScriptedServer { _, _ in "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" }
        var configuration = try configuration(busy.port)
        configuration.continuous = true
        let replicator = Replicator(configuration)
        let clock = ContinuousClock()
        let start = clock.now
        replicator.start()
        for await status in replicator.statuses where status.activity == .offline {
            if busy.requests.withLockedValue({ $0.count }) == 8 { break }
            replicator.resume()
        }
        // By itself it would have waited for 2, 4, 8, … seconds.
        #expect(clock.now - start < .seconds(100))
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    // MARK: Collections that are not there

    @Test func `a collection that is removed at the peer is missed at the first retry, by name`() async throws
    {
        let names = ["one", "two"]
        let (here, there) = (
            try names.map { try near.createCollection(name: $0, scope: "s") },
            try names.map { try far.createCollection(name: $0, scope: "s") }
        )
        let (listener, port) = try await listener(there)
        var configuration = try configuration(port, here)
        configuration.continuous = true
        configuration.maxAttemptWaitTime = 1
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        var seen: [Replicator.ActivityLevel] = []
        for await status in statuses {
            if status.activity == .idle, !seen.contains(.idle) {
                // One that is added there changes nothing.
                try far.createCollection(name: "three", scope: "s")
                try far.deleteCollection(name: "two", scope: "s")
            }
            seen.append(status.activity)
        }
        #expect(seen.contains(.offline))
        #expect(seen.last == .stopped)
        let error = try #require(replicator.status.error)
        #expect(error.code == .httpNotFound)
        #expect(error.message.contains("s.two"))
        await listener.stop()
    }

    @Test func `several missing collections are all named`() async throws {
        let (listener, port) = try await listener([try far.createCollection(name: "there")])
        let here = try ["there", "lost", "gone"].map { try near.createCollection(name: $0) }
        let replicator = Replicator(try configuration(port, here))
        replicator.start()
        let error = try #require(await replicator.waitUntilStopped().error)
        #expect(error.code == .httpNotFound)
        #expect(error.message.contains("lost"))
        #expect(error.message.contains("gone"))
        #expect(!error.message.contains("there'"))
        await listener.stop()
    }

    // MARK: Deltas

    @Test func `deltas go both ways where both sides want them`() async throws {
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        let (listener, port) = try await listener([there]) { $0.enableDeltaSync = true }
        var configuration = try configuration(port)
        configuration.enableDeltaSync = true
        let long = JSONValue.string(String(repeating: "lorem ipsum ", count: 100))
        for number in 0..<50 { try here.save(Document(id: "d\(number)", ["text": long, "n": 0])) }
        func sync() async -> Replicator.Progress {
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
            return replicator.status.progress
        }
        func edit(_ collection: Collection, _ range: Range<Int>) throws {
            for number in range {
                var document = try #require(try collection.document(id: "d\(number)"))
                document["n"] = JSONValue((document["n"]?.int ?? 0) + 1)
                try collection.save(&document)
            }
        }
        #expect(await sync().deltasSent == 0)
        try edit(here, 0..<25)
        try edit(there, 25..<50)
        // Two revisions behind is as good.
        try edit(there, 25..<50)
        let progress = await sync()
        #expect(progress.deltasSent == 25)
        #expect(progress.deltasReceived == 25)
        #expect(progress.deltaBytesSaved > 50 * 1_000)
        #expect(try here.contents() == there.contents())
        configuration.enableDeltaSync = false
        try edit(here, 0..<25)
        #expect(await sync().deltasSent == 0)
        #expect(try here.contents() == there.contents())
        await listener.stop()
    }

    // MARK: What is said to the server

    private static func answer(_ extra: String) -> String {
        "HTTP/1.1 503 Busy\r\n\(extra)Content-Length: 0\r\n\r\n"
    }

    @Test func `a session, headers and the server's cookies are sent`() async throws {
        let server = try await ScriptedServer { _, _ in
            Self.answer(
                "Set-Cookie: Kept=1; Max-Age=3600\r\nSet-Cookie: \"Odd\r\nSet-Cookie: Session=2\r\nSet-Cookie: Other=3; Domain=example.com\r\n"
            )
        }
        var configuration = try configuration(server.port)
        configuration.authenticator = SessionAuthenticator(sessionID: "abc")
        configuration.headers = ["X-Mine": "yes", "User-Agent": "Me", "Cookie": "own=1", "Upgrade": "no"]
        configuration.maxAttempts = 1
        let replicator = Replicator(configuration)
        for _ in 0..<2 {
            replicator.start()
            await replicator.waitUntilStopped()
        }
        let other = Replicator(configuration)
        other.start()
        await other.waitUntilStopped()
        let requests = server.requests.withLockedValue { $0 }
        #expect(requests.count == 3)
        #expect(requests[0].contains("X-Mine: yes\r\n"))
        #expect(requests[0].contains("User-Agent: Me\r\n"))
        #expect(requests[0].contains("Upgrade: websocket\r\n"))
        #expect(!requests[0].contains("Upgrade: no"))
        #expect(requests[0].contains("Cookie: SyncGatewaySession=abc; own=1\r\n"))
        #expect(requests[1].contains("Cookie: Kept=1; Session=2; SyncGatewaySession=abc; own=1\r\n"))
        // Another replicator of the database knows what was to be kept.
        #expect(requests[2].contains("Cookie: Kept=1; SyncGatewaySession=abc; own=1\r\n"))
    }

    @Test func `an unknown network interface is its own error`() async throws {
        var configuration = try configuration(1)
        configuration.networkInterface = "nowhere0"
        configuration.maxAttempts = 1
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error?.code.value == 5_027)
        var bad = try self.configuration(1)
        bad.headers = ["a b": "c"]
        let refused = Replicator(bad)
        refused.start()
        #expect(await refused.waitUntilStopped().error?.code == .invalidParameter)
    }
}
