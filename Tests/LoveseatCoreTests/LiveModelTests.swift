import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Observation
import Testing

/// Values of a database that views watch.
@MainActor @Suite(.timeLimit(.minutes(1)))
struct LiveModelTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    /// Waits as a view does: reads, and reads again after each change. Returns how often it read.
    @discardableResult
    private func watch(until isSeen: @MainActor () -> Bool) async -> Int {
        var reads = 1
        while true {
            let (changes, change) = AsyncStream.makeStream(of: Void.self)
            let isDone = withObservationTracking(isSeen) { change.finish() }
            if isDone { return reads }
            for await _ in changes {}
            reads += 1
        }
    }

    @Test func `a query is watched as models from the first use on`() async throws {
        try sights.save(Sight(id: "a", likes: 1))
        let query = try database.createQuery("SELECT meta().id, likes FROM sights ORDER BY likes DESC")
        let model = LiveQuery<Sight>(query)
        #expect(model.isLoading)
        #expect(model.value == [])
        await watch { model.value.map(\.id) == ["a"] }
        #expect(!model.isLoading)
        try sights.save(Sight(id: "b", likes: 2))
        await watch { model.value.map(\.id) == ["b", "a"] }
        #expect(model.error == nil)
        let rows = LiveModel(query)
        await watch { rows.value.compactMap { $0["likes"]?.int } == [2, 1] }
    }

    @Test func `documents of a listing, one document and any other value are watched`() async throws {
        let listed = LiveQuery<Sight>(sights, .prefix("paris:"))
        let tower = LiveDocument<Sight>(sights, id: "paris:tower")
        let documents = LiveModel(sights)
        let document = LiveModel(sights, id: "paris:tower")
        let count = LiveModel(initial: 0) { [sights] in try sights.observeCount() }
        await watch { !tower.isLoading && !listed.isLoading && !count.isLoading }
        #expect(tower.value == nil)
        try sights.save(Sight(id: "paris:tower", likes: 3))
        try sights.save(Sight(id: "rome:forum", likes: 4))
        await watch { tower.value?.likes == 3 && count.value == 2 }
        await watch { document.value?["likes"] == 3 && documents.value.count == 2 }
        #expect(listed.value == [Sight(id: "paris:tower", likes: 3)])
        try sights.delete(id: "paris:tower")
        await watch { tower.value == nil && listed.value.isEmpty && count.value == 1 }
    }

    private struct View {
        @Live var sights: [Sight]
        @Live var tower: Sight?

        @MainActor init(_ collection: LoveseatCore.Collection) {
            _sights = Live(LiveQuery(collection))
            _tower = Live(LiveDocument(collection, id: "tower"))
        }
    }

    @Test func `a property has the value of a model, and the model behind it`() async throws {
        let view = View(sights)
        #expect(view.$sights.isLoading)
        try sights.save(Sight(id: "tower", likes: 1))
        await watch { view.sights.count == 1 && view.tower?.likes == 1 }
        try sights.save(Document(id: "b", ["likes": "many"]))
        await watch { view.$sights.error != nil }
        #expect(view.$tower.error == nil)
    }

    @Test func `a document that does not fit the type is an error until the next change`() async throws {
        let model = LiveQuery<Sight>(sights)
        try sights.save(Sight(id: "a", likes: 1))
        await watch { model.value.count == 1 }
        try sights.save(Document(id: "b", ["likes": "many"]))
        await watch { model.error != nil }
        #expect((model.error as? LoveseatError)?.code == .decodingError)
        #expect(model.value.map(\.id) == ["a"])
        try sights.save(Sight(id: "b", likes: 2))
        await watch { model.error == nil }
        #expect(model.value.map(\.likes) == [1, 2])
    }

    @Test func `a query is watched by its text and parameters, of which one may have a reserved word's name`()
        async throws
    {
        for number in 1...3 { try sights.save(Sight(id: "\(number)", likes: number)) }
        let text = "SELECT meta().id, likes FROM sights WHERE likes >= $least ORDER BY likes LIMIT $`limit`"
        let model = LiveQuery<Sight>(text, ["least": 2, "limit": 1], in: database)
        #expect(try await model.wait { !$0.isEmpty } == [Sight(id: "2", likes: 2)])
        let rows = LiveModel(text, ["least": 3, "limit": 1], in: database)
        #expect(try await rows.wait { !$0.isEmpty }.map { $0["id"] } == ["3"])
        let wrong = LiveQuery<Sight>("SELECT $limit FROM sights", in: database)
        await #expect(throws: LoveseatError.self) { try await wrong.wait { _ in true } }
        #expect((wrong.error as? LoveseatError)?.code == .invalidQuery)
    }

    @Test func `what does not fit the type can be left out and reported`() async throws {
        try sights.save(Sight(id: "a", likes: 1))
        try sights.save(Document(id: "b", ["likes": "many"]))
        let (ids, reporting) = AsyncStream.makeStream(of: String.self)
        let listed = LiveQuery<Sight>(sights) { document, error in
            reporting.yield(error.code == .decodingError ? document.id : "\(error)")
        }
        #expect(try await listed.wait { !$0.isEmpty } == [Sight(id: "a", likes: 1)])
        let query = try database.createQuery("SELECT meta().id, likes FROM sights")
        let found = LiveQuery<Sight>(query) { row, error in
            reporting.yield(error.code == .decodingError ? row["id"]?.string ?? "" : "\(error)")
        }
        #expect(try await found.wait { !$0.isEmpty } == [Sight(id: "a", likes: 1)])
        reporting.finish()
        var reported: Set<String> = []
        for await id in ids { reported.insert(id) }
        #expect(reported == ["b"])
        #expect(listed.error == nil)
        #expect(found.error == nil)
    }

    @Test func `a program without views waits for a value`() async throws {
        let model = LiveQuery<Sight>(sights)
        let waiting = Task { try await model.wait { $0.count == 2 } }
        try sights.save(Sight(id: "a", likes: 1))
        try sights.save(Sight(id: "b", likes: 2))
        #expect(try await waiting.value.map(\.id) == ["a", "b"])
        // The first value that was read counts, and not the one before it.
        #expect(try await LiveQuery<Sight>(sights).wait { _ in true }.count == 2)
        let forgotten = Task { try await model.wait { $0.count == 3 } }
        forgotten.cancel()
        await #expect(throws: CancellationError.self) { try await forgotten.value }
        try sights.save(Document(id: "c", ["likes": "many"]))
        await #expect(throws: LoveseatError.self) { try await model.wait { $0.count == 3 } }
    }

    @Test func `waiting ends when nothing can come any more`() async throws {
        let other = try database.createCollection(name: "other")
        let models = [
            LiveQuery<Sight>(sights), LiveQuery<Sight>(other), LiveQuery<Sight>(sights) { _, _ in },
            LiveQuery<Sight>("SELECT meta().id, likes FROM sights", in: database),
        ]
        for model in models { try await model.wait { $0.isEmpty } }
        let waiting = models.map { model in Task { try await model.wait { !$0.isEmpty } } }
        try database.deleteCollection(name: "other")
        await #expect(throws: LoveseatError.self) { try await waiting[1].value }
        try await database.close()
        for task in waiting {
            let error = await #expect(throws: LoveseatError.self) { try await task.value }
            #expect(error?.code == .notOpen)
        }
        // What was read last stays, and a later wait does not begin anew.
        await #expect(throws: LoveseatError.self) { try await models[0].wait { !$0.isEmpty } }
        #expect(try await models[0].wait { $0.isEmpty } == [])
    }

    @Test func `what cannot be observed is an error`() async throws {
        let other = try database.createCollection(name: "other")
        try database.deleteCollection(name: "other")
        let model = LiveQuery<Sight>(other)
        await watch { model.error != nil }
        #expect((model.error as? LoveseatError)?.code == .notOpen)
        #expect(!model.isLoading)
    }

    @Test func `observation ends with the owner`() async throws {
        weak var kept: LiveQuery<Sight>?
        do {
            let model = LiveQuery<Sight>(sights)
            kept = model
            await watch { !model.isLoading }
            #expect(kept != nil)
        }
        #expect(kept == nil)
    }

    @Test
    func
        `however many changes there are, views are drawn at most once a frame, and with the last value at the end`()
        async throws
    {
        let count = LiveModel(initial: 0) { [sights] in try sights.observeCount() }
        let start = ContinuousClock.now
        let saving = Task.detached { [sights] in
            for number in 0..<2_000 { try sights.save(Sight(id: "\(number)", likes: number)) }
        }
        let reads = await watch { count.value == 2_000 }
        try await saving.value
        // The first read, and one for each update.
        #expect(reads <= 2 + Int((ContinuousClock.now - start) / .milliseconds(16)))
    }

    @Test func `the last value stays when the database closes`() async throws {
        let model = LiveQuery<Sight>(sights)
        try sights.save(Sight(id: "a", likes: 1))
        await watch { model.value.count == 1 }
        try await database.close()
        #expect(model.value.count == 1)
        #expect(model.error == nil)
    }
}
