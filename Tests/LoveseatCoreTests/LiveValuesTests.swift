import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Observation
import Synchronization
import Testing

/// Values that are read again after each change.
@Suite(.timeLimit(.minutes(1)))
struct LiveValuesTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    /// Public types must leave the names of modules alone, in which macros look for what they need.
    @MainActor @Observable
    fileprivate final class Model {
        private(set) var likes: [Int] = []

        func follow(_ sights: LoveseatCore.Collection, until count: Int) async throws {
            for try await values in try sights.observe(as: Sight.self) {
                likes = values.map(\.likes)
                if likes.count == count { return }
            }
        }
    }

    @Test @MainActor func `an observable model follows documents`() async throws {
        let model = Model()
        let isSeen = Mutex(false)
        withObservationTracking {
            _ = model.likes
        } onChange: {
            isSeen.withLock { $0 = true }
        }
        let following = Task { try await model.follow(sights, until: 2) }
        try sights.save(Sight(id: "a", likes: 1))
        try sights.save(Sight(id: "b", likes: 2))
        try await following.value
        #expect(isSeen.withLock { $0 })
        #expect(model.likes == [1, 2])
    }

    @Test func `the first value comes at once, then one for each change that matters`() async throws {
        try sights.save(Sight(id: "paris:1", likes: 1))
        let observation = try sights.observe(.prefix("paris:"), as: Sight.self)
        var values = observation.makeAsyncIterator()
        #expect(try await values.next() == [Sight(id: "paris:1", likes: 1)])
        try sights.save(Sight(id: "rome:1", likes: 1))
        try sights.save(Sight(id: "paris:2", likes: 2))
        #expect(try await values.next()?.map(\.id) == ["paris:1", "paris:2"])
        try await database.write { transaction in
            for likes in 0..<50 { try transaction.save(Sight(id: "paris:1", likes: likes), in: sights) }
            try transaction.delete(id: "paris:2", in: sights)
        }
        #expect(try await values.next() == [Sight(id: "paris:1", likes: 49)])
    }

    @Test func `a consumer that falls behind gets the last value only`() async throws {
        var values = try sights.observe(id: "a").makeAsyncIterator()
        let before = try #require(try await values.next())
        #expect(before == nil)
        for likes in 1...100 { try sights.save(Document(id: "a", ["likes": JSONValue(likes)])) }
        #expect(try await values.next()??["likes"] == 100)
        try sights.save(Document(id: "other"))
        try sights.delete(id: "a")
        let after = try #require(try await values.next())
        #expect(after == nil)
        try sights.save(Document(id: "a", ["likes": 7]))
        #expect(try await values.next()??["likes"] == 7)
    }

    @Test func `there are no more values than commits, and the last one is complete`() async throws {
        let observation = try sights.observeCount()
        let writer = Task {
            for number in 0..<500 {
                try await database.write { try $0.save(Document(id: "\(number)"), in: sights) }
            }
        }
        var (last, values) = (UInt64(0), 0)
        for try await count in observation {
            #expect(count >= last)
            (last, values) = (count, values + 1)
            if count == 500 { break }
        }
        try await writer.value
        #expect(values <= 501)
    }

    @Test func `several collections are observed as of one moment`() async throws {
        let other = try database.createCollection(name: "other")
        let observation = try database.observe([sights, other]) { transaction in
            try transaction.count(in: sights) == transaction.count(in: other)
        }
        let writer = Task {
            for number in 0..<200 {
                try await database.write { transaction in
                    try transaction.save(Document(id: "\(number)"), in: sights)
                    try transaction.save(Document(id: "\(number)"), in: other)
                }
            }
            try database.deleteCollection(name: "other")
        }
        for try await isEqual in observation { #expect(isEqual) }
        try await writer.value
    }

    @Test func `it ends when the collection is deleted, the database closed, or the task cancelled`()
        async throws
    {
        let deleted = try sights.observe()
        let closed = try database.defaultCollection().observe()
        let cancelled = Task { [database] in
            for try await _ in try database.defaultCollection().observe() {}
        }
        try database.deleteCollection(name: "sights")
        for try await _ in deleted {}
        cancelled.cancel()
        try await cancelled.value
        try await database.close()
        for try await _ in closed {}
        expectError(.notOpen) { try sights.observe() }
    }

    @Test func `it throws what reading throws, and ends`() async throws {
        try sights.save(Document(id: "bad", ["likes": "many"]))
        var values = try sights.observe(as: Sight.self).makeAsyncIterator()
        let error = await #expect(throws: LoveseatError.self) { try await values.next() }
        #expect(error?.code == .decodingError)
        try sights.save(Sight(id: "bad", likes: 1))
        #expect(try await values.next() == nil)
    }
}
