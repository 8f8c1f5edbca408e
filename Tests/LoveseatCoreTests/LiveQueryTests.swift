import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// Queries whose results stay up to date.
@Suite(.timeLimit(.minutes(1)))
struct LiveQueryTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    private func save(_ id: String, _ likes: Int) throws {
        try sights.save(Document(id: id, ["likes": JSONValue(likes)]))
    }

    private static let liked = "SELECT meta().id FROM sights WHERE likes > 5 ORDER BY meta().id"

    private func ids(_ change: QueryChange?) -> String? {
        change?.results?.compactMap { $0["id"]?.string }.joined(separator: ",")
    }

    @Test func `the first result comes at once, and others only if the rows differ`() async throws {
        var results = try database.createQuery(Self.liked).changes().makeAsyncIterator()
        #expect(ids(await results.next()) == "")
        try save("few", 1)
        try save("a", 9)
        #expect(ids(await results.next()) == "a")
        try save("a", 10)
        try database.defaultCollection().save(Document(id: "other"))
        try save("b", 6)
        #expect(ids(await results.next()) == "a,b")
        try sights.purge(id: "a")
        #expect(ids(await results.next()) == "b")
        try sights.setDocumentExpiration(id: "b", expiration: Date())
        #expect(ids(await results.next()) == "")
    }

    @Test func `a change in quiet times is seen at once`() async throws {
        var results = try database.createQuery(Self.liked).changes().makeAsyncIterator()
        _ = await results.next()
        // One of ten is not disturbed by what else the machine does.
        var times: [Duration] = []
        for number in 0..<10 {
            try await Task.sleep(for: .milliseconds(300))
            let saved = ContinuousClock.now
            try save("a\(number)", 9)
            #expect(ids(await results.next())?.hasSuffix("a\(number)") == true)
            times.append(saved.duration(to: .now))
        }
        #expect(try #require(times.min()) < .milliseconds(100))
    }

    @Test func `under load there is a result at most every 200 milliseconds, and the last one is complete`()
        async throws
    {
        let query = try database.createQuery("SELECT COUNT(*) AS n FROM sights")
        let writer = Task {
            for number in 0..<1_000 {
                try await database.write { try $0.save(Document(id: "\(number)"), in: sights) }
            }
            return ContinuousClock.now
        }
        let start = ContinuousClock.now
        var count = 0
        for await change in try query.changes() {
            count += 1
            if change.results?.first?["n"] == 1_000 { break }
        }
        #expect(count <= Int(start.duration(to: .now) / .milliseconds(200)) + 2)
        _ = try await writer.value
    }

    @Test func `it ends with the database, the collection, or the task`() async throws {
        let query = try database.createQuery(Self.liked)
        let deleted = try query.changes()
        let closed = try database.createQuery("SELECT a FROM _").changes()
        let cancelled = Task { [database] in
            for await _ in try database.createQuery("SELECT a FROM _").changes() {}
        }
        try database.deleteCollection(name: "sights")
        for await _ in deleted {}
        cancelled.cancel()
        try await cancelled.value
        try await database.close()
        for await _ in closed {}
    }

    @Test func `an error is part of the results, which go on`() async throws {
        try sights.save(Document(id: "a", ["likes": "x"]))
        var results = try database.createQuery("SELECT POWER(likes, 2) AS n FROM sights").changes()
            .makeAsyncIterator()
        let failed = await results.next()
        #expect(failed?.results == nil)
        #expect(failed?.error?.code.domain == .sqlite)
        try save("a", 3)
        #expect(await results.next()?.results?.first?["n"]?.double == 9)
    }
}
