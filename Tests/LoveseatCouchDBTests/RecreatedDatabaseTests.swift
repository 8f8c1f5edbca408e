import AsyncHTTPClient
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

/// A peer's database that is deleted and made anew has nothing: what it had before is pushed again.
struct RecreatedDatabaseTests {
    private static let deadline = Duration.seconds(240)

    /// Waits until the remote has so many documents.
    private func wait(for count: Int, _ served: ServedDatabase) async throws {
        let end = ContinuousClock.now + Self.deadline
        while try await served.call("GET", "/other").json["doc_count"]?.int != count {
            try #require(ContinuousClock.now < end, "the remote never had \(count) documents")
            _ = try await served.call("GET", "/other/_changes?feed=longpoll&since=now&timeout=300")
        }
    }

    @Test func `a continuous sync with a CouchDB pushes everything to a database that was made anew`()
        async throws
    {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        _ = try await served.call("PUT", "/other")
        let active = try ActiveSide()
        let collection = try active.collection
        for number in 0..<4 {
            var document = Document(id: "own\(number)")
            try collection.save(&document)
        }
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/other"))
        var configuration = try active.configuration(CouchDBEndpoint(url: url), .pushAndPull)
        configuration.continuous = true
        configuration.maxAttempts = 10
        let replicator = Replicator(configuration)
        replicator.start()
        try await wait(for: 4, served)
        for made in 1...2 {
            // The checkpoint is at the remote when the session has nothing to do.
            for await status in replicator.statuses where status.activity == .idle { break }
            #expect(try await served.call("DELETE", "/other").status == 200)
            #expect(try await served.call("PUT", "/other").status == 201)
            #expect(try await served.call("PUT", "/other/new\(made)", [:]).status == 201)
            try await wait(for: 4 + made, served)
        }
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(collection.count == 6)
        await served.listener.stop()
    }

    @Test(arguments: [ReplicatorType.push, .pushAndPull])
    func `a checkpoint that comes late, to a database that was made anew, is not believed`(
        _ type: ReplicatorType
    ) async throws {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        _ = try await served.call("PUT", "/other")
        let active = try ActiveSide()
        let collection = try active.collection
        for number in 0..<4 {
            var document = Document(id: "own\(number)")
            try collection.save(&document)
        }
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/other"))
        func run() async throws {
            let replicator = Replicator(try active.configuration(CouchDBEndpoint(url: url), type))
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        try await run()
        let listed = try await served.call("GET", "/other/_local_docs?include_docs=true").json
        var checkpoint = try #require(listed["rows"]?[0]?["doc"])
        let id = try #require(checkpoint["_id"]?.string)
        checkpoint["_rev"] = nil
        for _ in 0..<2 {
            #expect(try await served.call("DELETE", "/other").status == 200)
            #expect(try await served.call("PUT", "/other").status == 201)
            #expect(try await served.call("PUT", "/other/\(id)", checkpoint).status == 201)
            try await run()
            #expect(try await served.call("GET", "/other").json["doc_count"]?.int == 4)
        }
    }

    @Test(arguments: ["_local", "_bulk_docs", "_revs_diff"], [ReplicatorType.push, .pushAndPull])
    func `a push during which the database is made anew does not count as done`(
        _ moment: String,
        _ type: ReplicatorType
    ) async throws {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        _ = try await served.call("PUT", "/other")
        let active = try ActiveSide()
        let collection = try active.collection
        for number in 0..<300 {
            var document = Document(id: "own\(number)")
            try collection.save(&document)
        }
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/other"))
        let transport = RecreatingTransport(before: moment) {
            _ = try await served.call("DELETE", "/other")
            _ = try await served.call("PUT", "/other")
        }
        for run in 0..<2 {
            var endpoint = CouchDBEndpoint(url: url)
            endpoint.transport = transport
            let replicator = Replicator(try active.configuration(endpoint, type))
            replicator.start()
            let error = await replicator.waitUntilStopped().error
            // A run that begins again by itself is as good as one that says that it failed.
            if run == 1 { #expect(error == nil) }
        }
        #expect(transport.hasRecreated)
        #expect(try await served.call("GET", "/other").json["doc_count"]?.int == 300)
    }

    @Test(arguments: [ReplicatorType.push, .pushAndPull])
    func `a peer of Couchbase's protocol pushes everything to a collection that was made anew`(
        _ type: ReplicatorType
    )
        async throws
    {
        let scratch = try Scratch()
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        let collection = try near.createCollection(name: "k")
        _ = try far.createCollection(name: "k")
        for number in 0..<5 {
            var document = Document(id: "d\(number)")
            try collection.save(&document)
        }
        for _ in 0..<3 {
            for _ in 0..<2 {
                var configuration = ReplicatorConfiguration(
                    collections: [collection],
                    target: DatabaseEndpoint(database: far)
                )
                configuration.replicatorType = type
                let replicator = Replicator(configuration)
                replicator.start()
                #expect(await replicator.waitUntilStopped().error == nil)
                #expect(try far.collection(name: "k")?.count == 5)
            }
            try far.deleteCollection(name: "k")
            _ = try far.createCollection(name: "k")
        }
    }
}

/// Makes the database anew before the first request that changes something and has a name in its path.
private final class RecreatingTransport: RemoteTransport {
    private let name: String
    private let recreate: @Sendable () async throws -> Void
    private let isDone = Mutex(false)

    var hasRecreated: Bool { isDone.withLock { $0 } }

    init(before name: String, _ recreate: @escaping @Sendable () async throws -> Void) {
        (self.name, self.recreate) = (name, recreate)
    }

    func prepare(_ runtime: inout ReplicationRuntime) {}

    func execute(
        _ request: HTTPClientRequest,
        with client: @concurrent @Sendable () async throws -> HTTPClient
    ) async throws -> HTTPClientResponse {
        let client = try await client()
        if request.method != .GET, request.url.contains(name) {
            let isFirst = isDone.withLock { isDone in
                defer { isDone = true }
                return !isDone
            }
            if isFirst { try await recreate() }
        }
        return try await client.execute(request, deadline: .now() + .seconds(60))
    }
}
