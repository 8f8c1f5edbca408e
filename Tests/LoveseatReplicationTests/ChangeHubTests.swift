import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// `ChangeHub`: reports commits to subscribers.
struct ChangeHubTests {
    private let scratch: Scratch
    private let store: DocumentStore
    private let collection: CollectionHandle

    init() throws {
        scratch = try Scratch()
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
        collection = try #require(store.collection(.default))
    }

    private final class Heard: Sendable {
        private let commits = Mutex<[[String]]>([])
        private let closings = Mutex(0)
        var all: [[String]] { commits.withLock { $0 } }
        var ends: Int { closings.withLock { $0 } }
        func add(_ commit: CollectionCommit) { commits.withLock { $0.append(commit.documentIDs) } }
        func end() { closings.withLock { $0 += 1 } }
    }

    private func subscribe(_ collection: CollectionHandle) -> (heard: Heard, token: Int) {
        let heard = Heard()
        let token = store.changes.subscribe(
            collection: collection.number,
            onClose: { heard.end() },
            { heard.add($0) }
        )
        return (heard, token)
    }

    private func save(_ ids: [String], in collection: CollectionHandle? = nil) throws {
        let collection = collection ?? self.collection
        try store.write { transaction in
            for id in ids {
                _ = try transaction.save(
                    id,
                    in: collection,
                    body: .emptyObject,
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
        }
    }

    @Test func `the change hub reports each commit once, in order, to every subscriber`() throws {
        let subscribers = [subscribe(collection), subscribe(collection)]
        try save(["a", "b"])
        try save(["c"])
        for (heard, _) in subscribers {
            #expect(heard.all == [["a", "b"], ["c"]])
            #expect(heard.ends == 0)
        }
    }

    @Test func `the change hub reports nothing of a transaction that failed, or of another collection`()
        throws
    {
        struct Stop: Error, Equatable {}
        let name = try #require(CollectionName(scope: "s", name: "other"))
        let other = try store.write { try $0.createCollection(name) }
        let (heard, _) = subscribe(collection)
        let (elsewhere, _) = subscribe(other)
        try save(["x"], in: other)
        #expect(throws: Stop()) {
            try store.write { transaction in
                _ = try transaction.purge("x", in: other)
                throw Stop()
            }
        }
        #expect(heard.all.isEmpty)
        #expect(elsewhere.all == [["x"]])
    }

    @Test func `the change hub reports nothing more to a subscriber that has left`() throws {
        let (heard, token) = subscribe(collection)
        try save(["a"])
        store.changes.unsubscribe(token)
        try save(["b"])
        try store.close()
        #expect(heard.all == [["a"]])
        #expect(heard.ends == 0)
    }

    @Test func `the change hub skips a subscriber that left while the commit was being reported`() throws {
        let changes = store.changes
        let tokens = Mutex<[Int]>([])
        let first = changes.subscribe(collection: collection.number) { _ in
            for token in tokens.withLock({ $0 }) { changes.unsubscribe(token) }
        }
        let (heard, token) = subscribe(collection)
        tokens.withLock { $0 = [first, token] }
        try save(["a"])
        try save(["b"])
        #expect(heard.all.isEmpty)
    }

    @Test func `the change hub ends the subscriptions of a collection that is deleted, and no others`() throws
    {
        let name = try #require(CollectionName(scope: "s", name: "other"))
        let other = try store.write { try $0.createCollection(name) }
        let (heard, _) = subscribe(collection)
        let (elsewhere, _) = subscribe(other)
        try store.write { try $0.deleteCollection(name) }
        #expect(elsewhere.ends == 1)
        #expect(heard.ends == 0)
        let again = try store.write { try $0.createCollection(name) }
        try save(["x"], in: again)
        #expect(!elsewhere.all.contains(["x"]))
    }

    @Test func `the change hub ends every subscription once when the database closes`() throws {
        let subscribers = [subscribe(collection), subscribe(collection)]
        try store.close()
        try? store.close()
        for (heard, _) in subscribers {
            #expect(heard.ends == 1)
            #expect(heard.all.isEmpty)
        }
    }
}
