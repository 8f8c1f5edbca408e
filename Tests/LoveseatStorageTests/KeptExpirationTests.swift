import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Documents whose expiration is taken back or postponed (`StoreWriteTransaction.setExpiration`).
@Suite struct KeptExpirationTests {
    private static let now: Int64 = 1_700_000_000

    /// Sets an expiration in milliseconds from now, and then another one; returns the sequences of the document before and after the latter.
    private func sequences(first: Int64, then second: Int64?) throws -> (UInt64?, UInt64?) {
        let scratch = try Scratch()
        var options = DocumentStore.Options()
        options.time = { Self.now }
        let store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs", options: options)
        let collection = try store.write { transaction in
            let collection = try transaction.createCollection(.default)
            _ = try transaction.save(
                "a",
                in: collection,
                body: .emptyObject,
                isDeleted: false,
                condition: .lastWriteWins
            )
            _ = try transaction.setExpiration("a", in: collection, at: Self.now * 1_000 + first)
            return collection
        }
        let before = try store.readRows { try $0.record("a", in: collection)?.sequence }
        _ = try store.write { transaction in
            try transaction.setExpiration("a", in: collection, at: second.map { Self.now * 1_000 + $0 })
        }
        return (before, try store.readRows { try $0.record("a", in: collection)?.sequence })
    }

    /// The feed of changes passes documents over that have expired (simulator, world expirations, seeds 17 and 118).
    @Test(arguments: [nil, 60_000] as [Int64?])
    func `a document that had expired and lives on is listed again`(_ second: Int64?) throws {
        let (before, after) = try sequences(first: -10, then: second)
        let listed = try #require(before)
        #expect(after == listed + 1)
    }

    @Test(arguments: [nil, 90_000] as [Int64?])
    func `a document that has not expired keeps its sequence`(_ second: Int64?) throws {
        let (before, after) = try sequences(first: 60_000, then: second)
        #expect(before != nil)
        #expect(after == before)
    }

    @Test func `a document that expires again at once keeps its sequence`() throws {
        let (before, after) = try sequences(first: -10, then: -5)
        #expect(after == before)
    }
}
