import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// Code of the app that replication calls may use the database that is replicated.
struct ReentrancyTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    @Test func `policies, filters and resolvers may read and write the database`() async throws {
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        let log = try near.createCollection(name: "log")
        let farLog = try far.createCollection(name: "log")
        try farLog.save(Document(id: "rules", ["access": "write"]))
        let asked = NIOLockedValueBox<Set<String>>([])
        let failures = NIOLockedValueBox<[String]>([])
        @discardableResult
        @Sendable func attempt<T>(_ body: () throws -> T) -> T? {
            do { return try body() } catch {
                failures.withLockedValue { $0.append("\(error)") }
                return nil
            }
        }

        var passive = URLEndpointListenerConfiguration(collections: [there])
        passive.networkInterface = "127.0.0.1"
        passive.disableTLS = true
        passive.accessPolicy = AccessPolicy { _, _, document in
            _ = asked.withLockedValue { $0.insert("policy") }
            attempt { try farLog.save(Document(id: document?.id ?? "collection")) }
            let rules = attempt { try far.read { try $0.document(id: "rules", in: farLog) } }
            attempt { try there.document(id: document?.id ?? "none") }
            return there.count < 1_000 && rules??["access"] == "write" ? .write : .none
        }
        let listener = URLEndpointListener(passive)
        try await listener.start()

        var entry = CollectionConfiguration(collection: here)
        let filter: ReplicationFilter = { document, _ in
            _ = asked.withLockedValue { $0.insert("filter") }
            attempt { try near.write { try $0.save(Document(id: document.id), in: log) } }
            return attempt { try here.document(id: "none") == nil } ?? false
        }
        entry.pushFilter = filter
        entry.pullFilter = filter
        entry.conflictResolver = ConflictResolver.custom { conflict in
            _ = asked.withLockedValue { $0.insert("resolver") }
            try log.save(Document(id: "conflict"))
            var merged = Document(id: conflict.documentID, try here.document(id: "shared")?.properties ?? [:])
            merged["merged"] = true
            return merged
        }
        func sync() async throws {
            var configuration = ReplicatorConfiguration(
                collections: [entry],
                target: URLEndpoint(try #require(listener.urls?.first))
            )
            configuration.maxAttempts = 1
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        for number in 0..<20 {
            try here.save(Document(id: "here\(number)"))
            try there.save(Document(id: "there\(number)"))
        }
        try here.save(Document(id: "shared"))
        try await sync()
        // Documents that both sides know are judged by what is there.
        for number in 0..<20 { try here.save(Document(id: "here\(number)", ["n": 2])) }
        try here.save(Document(id: "shared", ["mine": 1]))
        try there.save(Document(id: "shared", ["theirs": 1]))
        try await sync()
        #expect(try here.contents() == there.contents())
        #expect(try here.document(id: "shared")?["merged"] == true)
        #expect(asked.withLockedValue { $0 } == ["policy", "filter", "resolver"])
        #expect(failures.withLockedValue { $0 } == [])
        await listener.stop()
    }
}
