import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// `ExpirationTimer`: purges expired documents while their database is open.
struct ExpirationTimerTests {
    private let scratch: Scratch
    private let store: DocumentStore

    init() throws {
        scratch = try Scratch()
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
    }

    /// A timer whose purges are counted. `purge` gets the number of the call.
    private func timer(
        _ purge: @escaping @Sendable (Int) throws -> (hasMore: Bool, next: Int64?)
    ) -> (timer: ExpirationTimer, calls: Counter) {
        let calls = Counter()
        return (ExpirationTimer(store: store, retryAfter: 1) { _ in try purge(calls.next()) }, calls)
    }

    private final class Counter: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func next() -> Int {
            value.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test func `the expiration timer repeats a purge that failed`() async {
        struct DiskIsFull: Error {}
        let (purged, continuation) = AsyncStream<Int>.makeStream()
        let (timer, calls) = timer { call in
            guard call > 3 else { throw DiskIsFull() }
            continuation.yield(call)
            return (hasMore: false, next: nil)
        }
        timer.checkNow()
        var iterator = purged.makeAsyncIterator()
        #expect(await iterator.next() == 4)
        timer.stop()
        #expect(calls.count == 4)
    }

    @Test func `the expiration timer goes on until nothing more has expired`() async {
        let (purged, continuation) = AsyncStream<Int>.makeStream()
        let (timer, calls) = timer { call in
            continuation.yield(call)
            return (hasMore: call < 5, next: nil)
        }
        timer.checkNow()
        var iterator = purged.makeAsyncIterator()
        for call in 1...5 { #expect(await iterator.next() == call) }
        timer.stop()
        #expect(calls.count == 5)
    }

    @Test func `the expiration timer wakes when the next document expires`() async {
        let (purged, continuation) = AsyncStream<Int>.makeStream()
        let (timer, _) = timer { call in
            continuation.yield(call)
            return (hasMore: false, next: call < 3 ? ExpirationTimer.now : nil)
        }
        timer.checkNow()
        var iterator = purged.makeAsyncIterator()
        for call in 1...3 { #expect(await iterator.next() == call) }
        timer.stop()
    }

    @Test func `the expiration timer does nothing after it was stopped`() {
        let (timer, calls) = timer { _ in (hasMore: false, next: nil) }
        timer.stop()
        timer.checkNow()
        // Waits for what is queued.
        timer.stop()
        #expect(calls.count == 0)
    }

    @Test func `the expiration timer purges the document whose time has come, and no other`() async throws {
        let database = try scratch.database("db")
        let collection = try database.defaultCollection()
        for id in ["now", "later", "never"] { try collection.save(Document(id: id)) }
        let changes = try collection.changes()
        try collection.setDocumentExpiration(id: "later", expiration: Date(timeIntervalSinceNow: 3_600))
        try collection.setDocumentExpiration(id: "now", expiration: Date(timeIntervalSinceNow: -1))
        for await change in changes where try collection.document(id: "now") == nil {
            #expect(change.documentIDs == ["now"])
            break
        }
        #expect(try Set(collection.contents().keys) == ["later", "never"])
    }

    @Test func `what expired while a database of several collections was closed is purged when it is opened`()
        async throws
    {
        do {
            let database = try scratch.database("db")
            for name in ["one", "two", "three"] {
                let collection = try database.createCollection(name: name)
                try collection.save(Document(id: "a"))
            }
            // Below the API, so that the timer of this database does not hear of it.
            let two = try #require(try database.collection(name: "two"))
            #expect(try two.openStore().write { try $0.setExpiration("a", in: two.handle, at: 1) })
            try await database.close()
        }
        let database = try scratch.database("db")
        let two = try #require(try database.collection(name: "two"))
        let changes = try two.changes()
        if try two.document(id: "a") != nil {
            for await _ in changes where try two.document(id: "a") == nil { break }
        }
        let one = try #require(try database.collection(name: "one"))
        #expect(try one.document(id: "a") != nil)
    }
}
