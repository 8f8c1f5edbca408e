import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// How databases and what works on them end, and what a batch refuses.
struct DatabaseEndingTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func replicator(_ near: Database, _ far: Database) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: DatabaseEndpoint(database: far)
        )
        configuration.continuous = true
        return Replicator(configuration)
    }

    @Test func `many databases are deleted at once, each with a replicator that runs`() async throws {
        let hub = try scratch.database("hub")
        let databases = try (0..<32).map { try scratch.database("db\($0)") }
        for database in databases {
            let replicator = try replicator(database, hub)
            replicator.start()
            for await status in replicator.statuses where status.activity == .idle { break }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for database in databases { group.addTask { try await database.delete() } }
            try await group.waitForAll()
        }
        for database in databases {
            #expect(!Database.exists(withName: database.name, inDirectory: scratch.path))
        }
        try await hub.close()
    }

    @Test func `maintenance, copy, close and delete are refused in a transaction`() throws {
        let database = try scratch.database("db")
        let collection = try database.defaultCollection()
        let path = try #require(database.path)
        try database.read { _ in
            expectError(.transactionNotClosed) { try database.performMaintenance(type: .compact) }
            expectError(.transactionNotClosed) { try database.close() }
        }
        try database.write { transaction in
            for type in MaintenanceType.allCases {
                expectError(.transactionNotClosed) { try database.performMaintenance(type: type) }
            }
            expectError(.transactionNotClosed) {
                try Database.copy(fromPath: path, toDatabase: "copy", withConfig: scratch.config)
            }
            expectError(.transactionNotClosed) { try database.close() }
            expectError(.transactionNotClosed) { try database.delete() }
            try transaction.save(Document(id: "d"), in: collection)
        }
        #expect(collection.count == 1)
        #expect(!Database.exists(withName: "copy", inDirectory: scratch.path))
    }

    /// A resolver whose first eight calls wait until they are let go; the others take their time.
    private final class SlowResolver: ConflictResolverProtocol {
        private let calls = Mutex(0)
        private let begin: AsyncStream<Void>.Continuation
        let begun: AsyncStream<Void>
        private let open: AsyncStream<Void>.Continuation
        private let isOpen: Task<Void, Never>

        init() {
            (begun, begin) = AsyncStream.makeStream()
            let (opened, open) = AsyncStream<Void>.makeStream()
            self.open = open
            isOpen = Task { for await _ in opened {} }
        }

        var count: Int { calls.withLock { $0 } }
        func letGo() { open.finish() }

        func resolve(conflict: Conflict) async throws -> Document? {
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            begin.yield()
            if call <= 8 { await isOpen.value } else { try await Task.sleep(for: .milliseconds(50)) }
            return conflict.localDocument
        }
    }

    @Test func `a replicator that stops waits for the resolvers that have begun, and not for all others`()
        async throws
    {
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        for number in 0..<80 {
            try here.save(Document(id: "\(number)", ["mine": 1]))
            try there.save(Document(id: "\(number)", ["theirs": 1]))
        }
        let resolver = SlowResolver()
        var entry = CollectionConfiguration(collection: here)
        entry.conflictResolver = resolver
        var configuration = ReplicatorConfiguration(
            collections: [entry],
            target: DatabaseEndpoint(database: far)
        )
        configuration.replicatorType = .pull
        let replicator = Replicator(configuration)
        replicator.start()
        var begun = resolver.begun.makeAsyncIterator()
        for _ in 0..<8 { await begun.next() }
        replicator.stop()
        // The connection has ended when the other database has closed.
        try await far.close()
        resolver.letGo()
        await replicator.waitUntilStopped()
        #expect((8..<80).contains(resolver.count))
    }

    @Test func `of two that open a database the one with the stricter configuration wins`() throws {
        let first = try scratch.database("db")
        let collection = try first.defaultCollection()
        var config = scratch.config
        config.fullSync = true
        config.enableDeltaSync = true
        let second = try Database(name: "db", config: config)
        #expect(try second.store.isFullSync)
        var document = Document(id: "d", ["n": 1])
        try collection.save(&document)
        let old = try #require(document.revisionID)
        document["n"] = 2
        try collection.save(&document)
        // The earlier body is kept for deltas, whoever of the two saves.
        #expect(try CollectionHistory(collection).body(of: "d", revision: old).description == "{\"n\":1}")
        try second.close()
        try first.close()
    }
}
