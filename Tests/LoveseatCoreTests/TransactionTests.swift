import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

struct TransactionTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    private struct Problem: Error, Equatable {}

    @Test func `a transaction reads its own changes, and has the calls of a collection`() throws {
        try sights.save(Document(id: "old", ["n": 1]))
        let copy = try #require(try sights.document(id: "old"))
        let count = try database.write { transaction in
            var tower = Document(id: "tower", ["likes": 3])
            #expect(try transaction.save(&tower, in: sights))
            #expect(tower.revisionID?.generation == 1)
            #expect(try transaction.document(id: "tower", in: sights)?["likes"] == 3)
            tower["likes"] = 4
            #expect(try transaction.save(&tower, in: sights))
            try transaction.save(Sight(id: "louvre", likes: 7), in: sights)
            #expect(
                try transaction.document(id: "louvre", in: sights, as: Sight.self)
                    == Sight(id: "louvre", likes: 7)
            )
            #expect(
                try !transaction.save(Document(id: "tower"), in: sights, concurrencyControl: .failOnConflict)
            )
            try transaction.save(Document(id: "old", ["n": 2]), in: sights)
            #expect(try !transaction.delete(copy, in: sights, concurrencyControl: .failOnConflict))
            #expect(try transaction.delete(copy, in: sights))
            #expect(try transaction.document(id: "old", in: sights) == nil)
            try transaction.save(Document(id: "gone"), in: sights)
            try transaction.purge(id: "gone", in: sights)
            expectError(.notFound) { try transaction.purge(id: "gone", in: sights) }
            expectError(.notFound) { try transaction.delete(Document(id: "never"), in: sights) }
            expectError(.badDocID) { try transaction.save(Document(id: "_no"), in: sights) }
            expectError(.badDocID) { try transaction.document(id: "", in: sights) }
            expectError(.decodingError) {
                _ = try transaction.save(Document(id: "bad", ["likes": "many"]), in: sights)
                _ = try transaction.document(id: "bad", in: sights, as: Sight.self)
            }
            let food = try transaction.createCollection(name: "food", scope: "travel")
            try transaction.save(Document(id: "crêpe"), in: food)
            #expect(try transaction.collections(scope: "travel").map(\.name) == ["food"])
            #expect(try transaction.collection(name: "food", scope: "travel") == food)
            #expect(try transaction.defaultCollection().name == CollectionName.defaultPart)
            return try transaction.count(in: sights)
        }
        #expect(count == 3)
        #expect(sights.count == 3)
        #expect(try database.collection(name: "food", scope: "travel")?.count == 1)
    }

    @Test func `a transaction that throws changes nothing and is not told of`() async throws {
        try sights.save(Document(id: "kept", ["n": 1]))
        let kept = try #require(try sights.document(id: "kept"))
        let changes = try sights.changes()
        #expect(throws: Problem()) {
            try database.write { transaction in
                try transaction.save(Document(id: "new"), in: sights)
                try transaction.delete(kept, in: sights)
                try transaction.createCollection(name: "other")
                try transaction.deleteCollection(name: "sights")
                throw Problem()
            }
        }
        await #expect(throws: Problem()) {
            try await database.write { transaction in
                try transaction.purge(id: "kept", in: sights)
                throw Problem()
            }
        }
        #expect(try sights.document(id: "kept")?.revisionID == kept.revisionID)
        #expect(sights.count == 1)
        #expect(try database.collection(name: "other") == nil)
        try sights.save(Document(id: "next"))
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next()?.documentIDs == ["next"])
    }

    @Test func `a transaction cannot be used after its closure`() throws {
        var escaped: WriteTransaction?
        var snapshot: ReadTransaction?
        try database.write { escaped = $0 }
        try database.read { snapshot = $0 }
        let (late, old) = (try #require(escaped), try #require(snapshot))
        expectError(.notInTransaction) { try late.save(Document(id: "late"), in: sights) }
        expectError(.notInTransaction) { try late.purge(id: "late", in: sights) }
        expectError(.notInTransaction) { try late.createCollection(name: "late") }
        expectError(.notInTransaction) { try late.document(id: "late", in: sights) }
        expectError(.notInTransaction) { try old.document(id: "late", in: sights) }
        expectError(.notInTransaction) { try old.count(in: sights) }
        expectError(.notInTransaction) { try old.collection(name: "sights") }
        #expect(sights.count == 0)
    }

    @Test func `what would wait for its own transaction is refused, and the transaction goes on`() throws {
        func expectRefusals() {
            expectError(.transactionNotClosed) { try sights.save(Document(id: "a")) }
            expectError(.transactionNotClosed) { try sights.document(id: "a") }
            expectError(.transactionNotClosed) { try sights.purge(id: "a") }
            expectError(.transactionNotClosed) { try sights.getDocumentExpiration(id: "a") }
            expectError(.transactionNotClosed) { try database.write { _ in } }
            expectError(.transactionNotClosed) { try database.read { _ in } }
            expectError(.transactionNotClosed) { try database.createCollection(name: "a") }
            expectError(.transactionNotClosed) { try database.deleteCollection(name: "sights") }
            expectError(.transactionNotClosed) { try database.collection(name: "sights") }
            expectError(.transactionNotClosed) { try database.scopes() }
            #expect(sights.count == 0)
        }
        try database.write { transaction in
            try transaction.save(Document(id: "b"), in: sights)
            expectRefusals()
            try transaction.purge(id: "b", in: sights)
            try transaction.save(Document(id: "c"), in: sights)
        }
        #expect(sights.count == 1)
        try sights.purge(id: "c")
        try database.read { transaction in
            expectRefusals()
            let count = try transaction.count(in: sights)
            #expect(count == 0)
        }
        try sights.save(Document(id: "after"))
    }

    @Test func `a closure may use another database, but not get back to its own through it`() throws {
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        let first = try Database(name: "first", config: config)
        let second = try Database(name: "second", config: config)
        let (here, there) = (try first.defaultCollection(), try second.defaultCollection())
        try first.write { outer in
            try outer.save(Document(id: "outer"), in: here)
            try there.save(Document(id: "beside"))
            expectError(.invalidParameter) { try outer.save(Document(id: "wrong"), in: there) }
            try second.write { inner in
                try inner.save(Document(id: "inner"), in: there)
                expectError(.busy) { try here.save(Document(id: "lost")) }
                expectError(.transactionNotClosed) { try first.read { _ in } }
            }
        }
        try first.read { _ in
            try second.read { _ in expectError(.transactionNotClosed) { try first.read { _ in } } }
        }
        #expect(here.count == 1)
        #expect(there.count == 2)
    }

    @Test func `a collection or query whose own database is closed is said to be closed`() throws {
        let (second, other) = (try scratch.database("trips"), try scratch.database("other"))
        let collections = [
            try #require(try second.collection(name: "sights")), try other.defaultCollection(),
        ]
        let queries = [
            try second.createQuery("SELECT * FROM sights"), try other.createQuery("SELECT * FROM _"),
        ]
        try database.read { transaction in
            // Another object of the same folder is as good.
            let count = try transaction.count(in: collections[0])
            let rows = try transaction.execute(queries[0])
            #expect(count == 0 && rows.isEmpty)
            expectError(.invalidParameter) { try transaction.count(in: collections[1]) }
            expectError(.invalidParameter) { try transaction.execute(queries[1]) }
        }
        try second.close()
        try other.close()
        try database.read { transaction in
            for collection in collections { expectError(.notOpen) { try transaction.count(in: collection) } }
            for query in queries { expectError(.notOpen) { try transaction.execute(query) } }
        }
    }

    @Test func `a closure that waits for another thread's save gets busy, not a deadlock`() throws {
        var config = scratch.config
        config.busyTimeout = .milliseconds(50)
        let other = try Database(name: "trips", config: config)
        let elsewhere = try #require(try other.collection(name: "sights"))
        try database.write { transaction in
            try transaction.save(Document(id: "mine"), in: sights)
            let done = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                expectError(.busy) { try elsewhere.save(Document(id: "theirs")) }
                done.signal()
            }
            done.wait()
        }
        try elsewhere.save(Document(id: "theirs"))
        #expect(sights.count == 2)
    }

    @Test func `a long read sees one moment, its collections too, while others write`() async throws {
        for number in 0..<10 { try sights.save(Document(id: "doc\(number)", ["n": 0])) }
        let doomed = try database.createCollection(name: "doomed")
        try doomed.save(Document(id: "d"))
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let goOn = DispatchSemaphore(value: 0)
        let later = Later()
        let read = Task {
            try await database.read { transaction in
                begin.yield()
                goOn.wait()
                #expect(try transaction.count(in: sights) == 10)
                for number in 0..<10 {
                    #expect(try transaction.document(id: "doc\(number)", in: sights)?["n"] == 0)
                }
                #expect(try transaction.document(id: "d", in: doomed) != nil)
                #expect(try transaction.collections().map(\.name) == ["_default", "doomed", "sights"])
                let new = try #require(later.collection)
                expectError(.notOpen) { try transaction.document(id: "n", in: new) }
            }
        }
        for await _ in begun { break }
        try await database.write { transaction in
            for number in 0..<10 { try transaction.save(Document(id: "doc\(number)", ["n": 1]), in: sights) }
            for number in 10..<1_000 { try transaction.save(Document(id: "doc\(number)"), in: sights) }
            try transaction.deleteCollection(name: "doomed")
        }
        later.collection = try database.createCollection(name: "new")
        try later.collection?.save(Document(id: "n"))
        goOn.signal()
        try await read.value
        #expect(
            try await database.read { try $0.collections().map(\.name) } == ["_default", "new", "sights"]
        )
        #expect(sights.count == 1_000)
    }

    /// What a test puts in before it lets a closure go on.
    private final class Later: @unchecked Sendable { var collection: LoveseatCore.Collection? }

    @Test func `an expiration set in a transaction counts once it is committed`() async throws {
        let changes = try sights.documentChanges(id: "short")
        try await database.write { transaction in
            try transaction.save(Document(id: "short"), in: sights)
            try transaction.setDocumentExpiration(
                id: "short",
                in: sights,
                expiration: Date().addingTimeInterval(-1)
            )
            #expect(try transaction.getDocumentExpiration(id: "short", in: sights) != nil)
            expectError(.notFound) {
                try transaction.setDocumentExpiration(id: "none", in: sights, expiration: Date())
            }
        }
        var seen = 0
        for await _ in changes {
            seen += 1
            if seen == 2 { break }
        }
        #expect(sights.count == 0)
    }

    @Test func `a database opened for reading reads snapshots and refuses to write`() throws {
        try sights.save(Document(id: "a"))
        var config = scratch.config
        config.readOnly = true
        let reader = try Database(name: "trips", config: config)
        #expect(try reader.read { try $0.count(in: $0.defaultCollection()) } == 0)
        let made = try database.createCollection(name: "made")
        try made.save(Document(id: "m"))
        // The reader learns of collections that were made after it was opened.
        let seen = try reader.read { transaction in
            try transaction.collection(name: "made").map { try transaction.count(in: $0) }
        }
        #expect(seen == 1)
        expectError(.notWriteable) { try reader.write { _ in } }
        try reader.close()
        expectError(.notOpen) { try reader.read { _ in } }
    }
}
