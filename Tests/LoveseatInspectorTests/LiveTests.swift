import Foundation
import LoveseatCore
import LoveseatCouchDBTesting
import LoveseatDiscovery
import LoveseatInspector
import LoveseatModel
import LoveseatNetwork
import LoveseatPlatform
import LoveseatTesting
import Synchronization
import Testing

/// What pages hear, and what `serve` reports.
struct LiveTests {
    /// A connection that has asked for the live events.
    private func stream(_ server: InspectorServer) throws -> Int32 {
        let descriptor = try server.client.connect()
        let request =
            "GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:\(server.client.port)\r\nAuthorization: Bearer \(server.token)\r\n\r\n"
        let bytes = Array(request.utf8)
        #expect(send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        return descriptor
    }

    /// Reads until a text comes, or the other side is silent.
    private func read(_ descriptor: Int32, until text: String) async throws -> String {
        try await offPool { Self.read(descriptor, until: text) }
    }

    private static func read(_ descriptor: Int32, until text: String) -> String {
        var all = ""
        var buffer = [UInt8](repeating: 0, count: 4 << 10)
        while !all.contains(text) {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += String(decoding: buffer[..<count], as: UTF8.self)
        }
        return all
    }

    @Test func `a page hears of commits, also while another one reads nothing`() async throws {
        let server = try await InspectorServer()
        let sleepers = try (0..<4).map { _ in try stream(server) }
        let reader = try stream(server)
        #expect(try await read(reader, until: "event: peers").contains("text/event-stream"))
        for number in 0..<3 {
            try server.collection.save(Document(id: "d\(number)", ["n": 1]))
            #expect(try await read(reader, until: "event: changed").contains("event: changed"))
        }
        for descriptor in sleepers + [reader] { close(descriptor) }
        try await server.stop()
    }

    @Test func `a search for peers that failed begins again, and its problem is gone`() async throws {
        let fails = Mutex(true)
        let server = try await InspectorServer(search: {
            if fails.withLock({ $0 }) { throw LoveseatError(.ioError, "no sockets") }
            return try PeerBrowser(type: "_loveseat-inspected._tcp", method: .multicast, interfaces: [])
        })
        #expect(try await server.json("/api/mesh")["problem"]?.string == "no sockets")
        fails.withLock { $0 = false }
        #expect(try await server.json("/api/mesh")["problem"]?.string != "no sockets")
        try await server.stop()
    }

    @Test func `too many pages are refused`() async throws {
        let server = try await InspectorServer()
        let streams = try (0..<16).map { _ in try stream(server) }
        for descriptor in streams { _ = try await read(descriptor, until: "event: peers") }
        #expect(try await server.get("/api/live").status == 503)
        for descriptor in streams { close(descriptor) }
        try await server.stop()
    }

    /// What a listener of a database needs that is on this computer only.
    private static func serving(_ database: Database) throws -> URLEndpointListenerConfiguration {
        var configuration = URLEndpointListenerConfiguration(collections: [try database.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        return configuration
    }

    /// A replication that goes on, with a listener that has started.
    private static func continuous(_ collection: CollectionConfiguration, with listener: URLEndpointListener)
        throws -> ReplicatorConfiguration
    {
        var configuration = ReplicatorConfiguration(
            collections: [collection],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        configuration.continuous = true
        return configuration
    }

    @Test func `a monitor reports the peers of a listener, and records them`() async throws {
        let scratch = try Scratch()
        let (here, there) = (try scratch.database("here"), try scratch.database("there"))
        for number in 0..<20 { try here.defaultCollection().save(Document(id: "d\(number)", ["n": 1])) }
        let listener = URLEndpointListener(try Self.serving(here))
        let monitor = try PeerMonitor(here)
        monitor.observe(listener)
        monitor.start()
        try await listener.start()
        let collection = CollectionConfiguration(collection: try there.defaultCollection())
        let replicator = Replicator(try Self.continuous(collection, with: listener))
        let other = try PeerMonitor(there)
        other.observe(replicator)
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        let peer = try await awaited {
            await monitor.report(after: 0)["peers"]?[0]
        } until: {
            $0["sent"]?.int == 20
        }
        #expect(peer["direction"]?.string == "incoming")
        #expect(peer["wire"]?.string == "BLIP")
        #expect(peer["address"]?.string?.hasPrefix("127.0.0.1") == true)
        let own = try await awaited {
            await other.report(after: 0)["peers"]?[0]
        } until: {
            $0["received"]?.int == 20
        }
        #expect(own["direction"]?.string == "outgoing")
        replicator.stop()
        await replicator.waitUntilStopped()
        let log = try await awaited {
            await monitor.report(after: 0)["events"]?.array?.last
        } until: {
            $0["kind"]?.string == "disconnected"
        }
        #expect(log["text"]?.string?.contains("20 sent") == true)
        monitor.stop()
        other.stop()
        #expect(try PeerRecords(here).connections()?.array?.count == 1)
        #expect(try PeerRecords(here).connections()?[0]?["upToDate"]?.int != nil)
        #expect(try PeerRecords(there).connections()?[0]?["direction"]?.string == "outgoing")
        // What is pending is known without the peer.
        try there.defaultCollection().save(Document(id: "new", ["n": 2]))
        let remote = try #require(try PeerRecords(there).remotes(limit: 1).first)
        var pending: [String] = []
        try PendingChanges(there).forEach(at: remote) { pending.append("\($0.id) \($0.state.name)") }
        #expect(pending == ["new pending"])
        try await here.close()
        try await there.close()
    }

    @Test func `a peer that is slow has its documents listed as pending, with the reason`() async throws {
        let scratch = try Scratch()
        let (here, there) = (try scratch.database("here"), try scratch.database("there"))
        let count = 3_000
        let collectionHere = try here.defaultCollection()
        try await here.write { transaction in
            for number in 0..<count {
                _ = try transaction.save(Document(id: "d\(number)", ["n": 1]), in: collectionHere)
            }
        }
        let listener = URLEndpointListener(try Self.serving(here))
        let monitor = try PeerMonitor(here)
        monitor.observe(listener)
        try await listener.start()
        // The peer stores nothing before it is let.
        let gate = DispatchSemaphore(value: 0)
        var collection = CollectionConfiguration(collection: try there.defaultCollection())
        collection.pullFilter = { document, _ in
            if document.id == "d0" { gate.wait() }
            return document.id != "d1"
        }
        var active = try Self.continuous(collection, with: listener)
        active.replicatorType = .pull
        let replicator = Replicator(active)
        let other = try PeerMonitor(there)
        other.observe(replicator)
        replicator.start()
        let peer = try await awaited {
            await monitor.report(after: 0)["peers"]?[0]
        } until: {
            $0["pendingDocuments"]?.int == count
        }
        #expect(peer["why"]?.string == "pending")
        let key = try #require(peer["key"]?.string)
        let list = try await monitor.pending(over: key)
        #expect(list["counts"] == ["pending": JSONValue(count)])
        #expect(list["isCut"] == false)
        #expect(list["documents"]?.array?.count == 500)
        #expect(list["documents"]?[0]?["id"]?.string == "d0")
        #expect(list["documents"]?[0]?["way"]?.string == "out")
        // The peer's own connection cannot say anything while its filter does not return, and holds up no report.
        #expect(await other.report(after: 0)["peers"]?[0]?["direction"]?.string == "outgoing")
        gate.signal()
        let done = try await awaited {
            await monitor.report(after: 0)["peers"]?[0]
        } until: {
            $0["pendingDocuments"]?.int == 0
        }
        #expect(done["lag"] == nil)
        #expect(done["why"] == nil)
        // What its filter left out is no failure.
        #expect(try await monitor.pending(over: key)["counts"] == [:])
        // What the peer has changed is pending at its side as long as it only pulls.
        let own = try #require(await other.report(after: 0)["peers"]?[0]?["key"]?.string)
        #expect(try await other.pending(over: own)["counts"] == [:])
        let error = await #expect(throws: LoveseatError.self) { try await monitor.pending(over: "in-4711") }
        #expect(error?.code == .notFound)
        replicator.stop()
        await replicator.waitUntilStopped()
        monitor.stop()
        other.stop()
        try await here.close()
        try await there.close()
    }

    @Test func `a document that the listener refuses is listed as one from the peer`() async throws {
        let scratch = try Scratch()
        let (here, there) = (try scratch.database("here"), try scratch.database("there"))
        try there.defaultCollection().save(Document(id: "bad", ["n": 1]))
        var configuration = try Self.serving(here)
        configuration.incomingFilter = { _, document, _ in
            LoveseatError(.httpForbidden, "not \(document.id)")
        }
        let listener = URLEndpointListener(configuration)
        let monitor = try PeerMonitor(here)
        monitor.observe(listener)
        try await listener.start()
        let collection = CollectionConfiguration(collection: try there.defaultCollection())
        let replicator = Replicator(try Self.continuous(collection, with: listener))
        replicator.start()
        let peer = try await awaited {
            await monitor.report(after: 0)["peers"]?[0]
        } until: {
            $0["why"]?.string == "refused"
        }
        let list = try await monitor.pending(over: try #require(peer["key"]?.string))
        #expect(list["counts"] == ["refused": 1])
        #expect(list["documents"]?[0]?["id"]?.string == "bad")
        #expect(list["documents"]?[0]?["collection"]?.string == "_default._default")
        #expect(list["documents"]?[0]?["way"]?.string == "in")
        replicator.stop()
        await replicator.waitUntilStopped()
        monitor.stop()
        try await here.close()
        try await there.close()
    }

    /// Asks until the answer is as it should be, for ten seconds.
    private func awaited(
        _ value: () async throws -> JSONValue?,
        until isMeant: (JSONValue) -> Bool
    ) async throws -> JSONValue {
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            if let value = try await value(), isMeant(value) { return value }
            try await Task.sleep(for: .milliseconds(20))
        }
        return try #require(try await value())
    }
}
