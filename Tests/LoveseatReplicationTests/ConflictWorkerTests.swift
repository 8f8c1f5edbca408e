import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// `ConflictWorker`: runs the app's conflict resolvers.
///
/// @unchecked because everything runs on the thread that steps the clock.
final class ConflictWorkerTests: @unchecked Sendable {
    private let scratch: Scratch
    private let database: Database
    private let collection: Collection
    private let clock = VirtualClock()
    private var errors: [String: LoveseatError?] = [:]

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("db")
        collection = try database.defaultCollection()
    }

    deinit { try? database.close() }

    /// A document with a revision of this database and one that a pull brought.
    private func conflict(_ id: String) throws {
        try collection.saveConflict(id)
        #expect(try CollectionConflicts(collection).unresolvedIDs().contains(id))
    }

    private func worker(
        seconds: Double = 60,
        _ body: @escaping @Sendable (Conflict) async throws -> Document?
    ) throws -> ConflictWorker {
        var entry = CollectionConfiguration(collection: collection)
        entry.conflictResolver = ConflictResolver.custom(body)
        var config = ReplicatorConfiguration(
            collections: [entry],
            target: DatabaseEndpoint(database: database)
        )
        config.conflictResolverTimeout = seconds
        return ConflictWorker(
            store: try database.store,
            config: config,
            runtime: SimulatedRuntime(clock, seed: 0).runtime()
        )
    }

    private func resolve(_ ids: [String], by worker: ConflictWorker) {
        let runtime = SimulatedRuntime(clock, seed: 1).runtime()
        for id in ids {
            runtime.task { [self] in
                errors[id] = .some(
                    await worker.resolve(ConflictNotice(collection: 0, documentID: id, peer: .loveseat))
                )
            }
        }
        while clock.step() {}
    }

    @Test func `the conflict worker stores what the resolver returns`() throws {
        try conflict("a")
        let worker = try worker { conflict in
            var merged = conflict.localDocument
            merged?["other"] = conflict.remoteDocument?["text"]
            return merged
        }
        resolve(["a"], by: worker)
        #expect(errors == ["a": nil])
        #expect(try collection.document(id: "a")?.json.description == #"{"other":"there","text":"here"}"#)
        #expect(try CollectionConflicts(collection).unresolvedIDs() == [])
    }

    @Test func `the conflict worker gives up a resolver when its time is up, and keeps the conflict`() throws
    {
        try conflict("a")
        let never = AsyncStream<Void>.makeStream()
        let worker = try worker(seconds: 7) { conflict in
            for await _ in never.stream {}
            return conflict.localDocument
        }
        resolve(["a"], by: worker)
        #expect(errors["a"]??.code == .conflict)
        #expect(errors["a"]??.message.contains("7.0 seconds") == true)
        #expect(clock.now == 7_000)
        #expect(try CollectionConflicts(collection).unresolvedIDs() == ["a"])
    }

    @Test func `the conflict worker asks eight resolvers at a time`() throws {
        let ids = (0..<20).map { "\($0)" }
        for id in ids { try conflict(id) }
        let running = Mutex((now: 0, most: 0))
        let clock = SimulatedRuntime(clock, seed: 2).runtime().clock
        let worker = try worker { conflict in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            try await clock.sleep(for: .seconds(1))
            running.withLock { $0.now -= 1 }
            return conflict.remoteDocument
        }
        resolve(ids, by: worker)
        #expect(running.withLock { $0.most } == 8)
        #expect(errors.count == 20)
        #expect(errors.values.allSatisfy { $0 == nil })
        // Three turns of a second each.
        #expect(self.clock.now == 3_000)
    }

    @Test func `the conflict worker asks at most thirty times about one document`() throws {
        try conflict("a")
        let calls = Mutex(0)
        let collection = collection
        let worker = try worker { conflict in
            let call = calls.withLock {
                $0 += 1
                return $0
            }
            // An edit under the resolver's eyes makes its answer one to an old question.
            var document = try collection.document(id: "a")
            document?["n"] = JSONValue(call)
            if let document { try collection.save(document) }
            return conflict.remoteDocument
        }
        resolve(["a"], by: worker)
        #expect(errors["a"]??.code == .conflict)
        #expect(calls.withLock { $0 } == 30)
    }
}
