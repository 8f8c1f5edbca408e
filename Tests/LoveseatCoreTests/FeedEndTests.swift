import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// When feeds end by themselves.
struct FeedEndTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test(.timeLimit(.minutes(1)))
    func
        `feeds of a collection end with the database they came from, though another one has the folder open`()
        async throws
    {
        let (one, other) = (try scratch.database("db"), try scratch.database("db"))
        let collection = try one.defaultCollection()
        let (changes, document) = (try collection.changes(), try collection.documentChanges(id: "a"))
        let kept = try other.defaultCollection().changes()
        try collection.save(Document(id: "a"))
        try await one.close()
        try other.defaultCollection().save(Document(id: "b"))
        var seen: [String] = []
        for await change in changes { seen += change.documentIDs }
        #expect(seen == ["a"])
        for await change in document { #expect(change.documentID == "a") }
        var iterator = kept.makeAsyncIterator()
        #expect(await iterator.next()?.documentIDs == ["a"])
        #expect(await iterator.next()?.documentIDs == ["b"])
        try await other.close()
        #expect(await iterator.next() == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func `feeds of a replicator that is never started end when nobody has it any more`() async throws {
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        let (statuses, documents) = try {
            let replicator = Replicator(
                ReplicatorConfiguration(
                    collections: [try near.defaultCollection()],
                    target: DatabaseEndpoint(database: far)
                )
            )
            return (replicator.statuses, replicator.documentReplications)
        }()
        for await _ in statuses {}
        for await _ in documents {}
    }
}
