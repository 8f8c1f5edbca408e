import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Replications of many collections, of which an event touches one.
struct ManyCollectionsTests {
    private static let count = 60

    private struct Side {
        let database: Database
        let collections: [LoveseatCore.Collection]

        init(_ name: String, in scratch: Scratch, count: Int = ManyCollectionsTests.count) throws {
            database = try scratch.database(name)
            let database = database
            collections = try (0..<count).map { try database.createCollection(name: "c\($0)", scope: "many") }
        }

        func save(_ id: String, in index: Int, _ text: String) throws {
            var document = try collections[index].document(id: id) ?? Document(id: id)
            document["text"] = .string(text)
            try collections[index].save(&document)
        }

        func contents() throws -> [[String: String]] {
            try collections.map { collection in
                var found: [String: String] = [:]
                for id in try collection.documentIDs() {
                    found[id] = try collection.document(id: id)?["text"]?.string
                }
                return found
            }
        }
    }

    private func configuration(_ here: Side, _ there: Side, continuous: Bool = false)
        -> ReplicatorConfiguration
    {
        var configuration = ReplicatorConfiguration(
            collections: here.collections,
            target: DatabaseEndpoint(database: there.database)
        )
        configuration.continuous = continuous
        return configuration
    }

    private func synchronize(_ here: Side, _ there: Side) async throws -> UInt64 {
        let replicator = Replicator(configuration(here, there))
        replicator.start()
        let status = await replicator.waitUntilStopped()
        #expect(status.error == nil)
        #expect(status.progress.completed == status.progress.total)
        #expect(status.progress.isTotalKnown)
        #expect(status.progress.compared >= status.progress.documents)
        return status.progress.documents
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `what changed in any of them arrives, and nothing is transferred twice`(_ seed: UInt64) async throws
    {
        let scratch = try Scratch()
        let (here, there) = (try Side("here", in: scratch), try Side("there", in: scratch))
        var generator = SeededGenerator(seed: seed)
        #expect(try await synchronize(here, there) == 0)
        for round in 0..<4 {
            var changed: Set<String> = []
            for number in 0..<generator.pick([0, 1, 5, 80]) {
                let index = generator.int(0...Self.count - 1)
                let side = generator.chance(0.5) ? here : there
                let id = "\(generator.pick(["a", "b"]))\(number)"
                try side.save(id, in: index, "\(round) \(number)")
                changed.insert("\(index) \(id)")
            }
            #expect(try await synchronize(here, there) == UInt64(changed.count))
            #expect(try here.contents() == there.contents())
            #expect(try await synchronize(here, there) == 0)
        }
    }

    @Test func `a peer keeps the checkpoint of each collection, however many there are`() async throws {
        let scratch = try Scratch()
        let count = 120
        let here = try Side("here", in: scratch, count: count)
        let there = try Side("there", in: scratch, count: count)
        #expect(try await synchronize(here, there) == 0)
        let kept = try there.database.store.read { try $0.localDocuments(prefix: "cp-", limit: 1_000) }
        #expect(kept.count == count)
    }

    @Test func `databases that were closed go on where they were`() async throws {
        let scratch = try Scratch()
        var (here, there) = (try Side("here", in: scratch), try Side("there", in: scratch))
        try here.save("a", in: 7, "first")
        #expect(try await synchronize(here, there) == 1)
        for round in 0..<2 {
            try await here.database.close()
            try await there.database.close()
            (here, there) = (try Side("here", in: scratch), try Side("there", in: scratch))
            #expect(try await synchronize(here, there) == 0)
            try here.save("a", in: 7, "second \(round)")
            try there.save("b", in: 8, "third \(round)")
            #expect(try await synchronize(here, there) == 2)
            #expect(try here.contents() == there.contents())
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a continuous replication is idle again after every change`()
        async throws
    {
        let scratch = try Scratch()
        let (here, there) = (try Side("here", in: scratch), try Side("there", in: scratch))
        let replicator = Replicator(configuration(here, there, continuous: true))
        var statuses = replicator.statuses.makeAsyncIterator()
        replicator.start()
        func waitForIdle(documents: UInt64) async {
            while let status = await statuses.next() {
                if status.activity == .idle, status.progress.documents >= documents { return }
            }
            Issue.record("the replicator stopped")
        }
        await waitForIdle(documents: 0)
        for number in 1...12 {
            let side = number % 2 == 0 ? here : there
            try side.save("d\(number)", in: number * 7 % Self.count, "x")
            await waitForIdle(documents: UInt64(number))
        }
        #expect(try here.contents() == there.contents())
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
    }
}
