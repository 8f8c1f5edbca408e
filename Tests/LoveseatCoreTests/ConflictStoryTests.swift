import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Stories of documents made, deleted and made anew, as users met them (docs/decisions/0001).
struct ConflictStoryTests {
    private let scratch: Scratch
    private let databases: [Database]

    init() throws {
        let scratch = try Scratch()
        self.scratch = scratch
        databases = try ["a", "b", "c", "d", "e", "f"].map { try scratch.database($0) }
    }

    private func collection(_ index: Int) throws -> Collection { try databases[index].defaultCollection() }

    private func sync(
        _ active: Int,
        _ passive: Int,
        _ type: ReplicatorType = .pushAndPull,
        resolver: (any ConflictResolverProtocol)? = nil
    ) async throws {
        var entry = CollectionConfiguration(collection: try collection(active))
        if let resolver { entry.conflictResolver = resolver }
        var configuration = ReplicatorConfiguration(
            collections: [entry],
            target: DatabaseEndpoint(database: databases[passive])
        )
        configuration.replicatorType = type
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    private func save(_ index: Int, _ text: String) throws {
        var document = try collection(index).document(id: "x") ?? Document(id: "x")
        document["text"] = .string(text)
        try collection(index).save(&document)
    }

    private func delete(_ index: Int) throws {
        try collection(index).delete(try #require(try collection(index).document(id: "x")))
    }

    private func texts(_ count: Int = 4) throws -> [String?] {
        try databases.indices.prefix(count).map { try collection($0).document(id: "x")?["text"]?.string }
    }

    /// It has both candidates, so that nothing but the reason is missing; it never pushes, so that nobody answers it.
    @Test func `a peer that only pulls hears what a resolver decided`() async throws {
        try save(0, "one")
        try save(1, "two")
        try await sync(2, 0, .pull)
        try await sync(2, 1, .pull)
        let shown = try texts()[2]
        let other = shown == "one" ? "two" : "one"
        let resolver = ConflictResolver.custom { conflict in
            conflict.localDocument?["text"]?.string == other
                ? conflict.localDocument : conflict.remoteDocument
        }
        try await sync(1, 0, .pull, resolver: resolver)
        try await sync(2, 1, .pull)
        #expect(try texts() == ["one", other, other, nil])
    }

    /// A pull into an empty collection leaves deletions out. The resolver decides only over what a pull brings.
    @Test func `a deletion from before the first pull reaches a peer with a resolver`() async throws {
        let collections = try databases.prefix(3).map { try $0.createCollection(name: "notes") }
        func sync(_ passive: Int, from active: Int, _ type: ReplicatorType = .pull, resolves: Bool = false)
            async throws
        {
            var entry = CollectionConfiguration(collection: collections[active])
            if resolves { entry.conflictResolver = ConflictResolver.custom { $0.localDocument } }
            var configuration = ReplicatorConfiguration(
                collections: [entry],
                target: DatabaseEndpoint(database: databases[passive])
            )
            configuration.replicatorType = type
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        var document = Document(id: "x")
        try collections[0].save(&document)
        try await sync(0, from: 1)
        try collections[0].delete(document)
        try await sync(0, from: 2, .pushAndPull)
        try await sync(1, from: 2)
        #expect(try collections[2].document(id: "x") != nil)
        try await sync(0, from: 2, .pushAndPull, resolves: true)
        #expect(try collections[2].document(id: "x") == nil)
    }

    @Test(arguments: [true, false])
    func `what one deleted long ago and another makes anew lives at both`(_ isAuthorActive: Bool) async throws
    {
        try save(0, "old")
        try delete(0)
        try save(1, "new")
        if isAuthorActive { try await sync(1, 0) } else { try await sync(0, 1) }
        if isAuthorActive { try await sync(1, 0) } else { try await sync(0, 1) }
        #expect(try texts() == ["new", "new", nil, nil])
    }

    @Test func `an old tombstone does not delete what was made anew and edited past the kept history`()
        async throws
    {
        try save(0, "old")
        try await sync(1, 0)
        try await sync(2, 0)
        try delete(0)
        try await sync(1, 0)
        for number in 1...75 { try save(0, "edit \(number)") }
        try await sync(2, 0)
        try await sync(1, 0)
        try await sync(1, 2)
        try await sync(2, 0)
        #expect(try texts() == ["edit 75", "edit 75", "edit 75", nil])
    }

    @Test
    func
        `a superseded tombstone that a third database brings deletes nothing past the kept history`()
        async throws
    {
        try save(1, "old")
        try await sync(2, 1)
        try delete(1)
        try await sync(2, 1)
        try await sync(0, 2)
        for number in 1...75 { try save(1, "edit \(number)") }
        try await sync(0, 1)
        #expect(try texts().prefix(2) == ["edit 75", "edit 75"])
    }

    @Test
    func
        `two delete one revision, and what one of them makes anew and edits for long stands`()
        async throws
    {
        try save(0, "old")
        try await sync(1, 0)
        try delete(0)
        for number in 1...75 { try save(0, "edit \(number)") }
        try delete(1)
        try await sync(1, 0)
        #expect(try texts().prefix(2) == ["edit 75", "edit 75"])
    }

    @Test func `what was purged and made anew in the middle of a star stands at its leaves`() async throws {
        try save(0, "old")
        for leaf in 1...3 { try await sync(leaf, 0) }
        try collection(0).purge(id: "x")
        try save(0, "new")
        for _ in 0..<2 { for leaf in 1...3 { try await sync(leaf, 0) } }
        #expect(try texts() == ["new", "new", "new", "new"])
    }

    @Test func `deleted here while edited there, it is deleted`() async throws {
        try save(0, "first")
        for leaf in 1...3 { try await sync(leaf, 0) }
        try save(1, "edited")
        try delete(2)
        for _ in 0..<2 { for leaf in 1...3 { try await sync(leaf, 0) } }
        #expect(try texts() == [nil, nil, nil, nil])
    }

    @Test(arguments: [[true, true, true], [true, false, false], [false, true, true]])
    func `what was purged and made anew in the middle of a star stands, whoever of its peers is active`(
        isActive: [Bool]
    ) async throws {
        func meet(_ leaf: Int) async throws {
            if isActive[leaf - 1] { try await sync(0, leaf) } else { try await sync(leaf, 0) }
        }
        try save(1, "old")
        try save(1, "older and edited")
        for leaf in 1...3 { try await meet(leaf) }
        try collection(0).purge(id: "x")
        try save(0, "new")
        for _ in 0..<2 { for leaf in 1...3 { try await meet(leaf) } }
        #expect(try texts() == ["new", "new", "new", "new"])
    }

    @Test func `what was purged and made anew with the old content stands`() async throws {
        try save(0, "old")
        try save(0, "edited")
        try await sync(0, 1)
        try collection(0).purge(id: "x")
        try save(0, "old")
        try await sync(0, 1)
        #expect(try texts() == ["old", "old", nil, nil])
    }

    @Test func `after a purge an older revision from a third database closes nobody's newer one`()
        async throws
    {
        try save(0, "first")
        try await sync(0, 1)
        try await sync(2, 1)
        try save(0, "second")
        try save(0, "third")
        try await sync(0, 1)
        try save(2, "an edit of the first")
        try collection(1).purge(id: "x")
        for (active, passive) in [(2, 1), (0, 1), (2, 1)] { try await sync(active, passive) }
        #expect(try texts().prefix(3) == ["third", "third", "third"])
    }

    @Test(arguments: [false, true])
    func `an old revision that a third database brings back after a purge gives way to the newer one`(
        isDeleted: Bool
    ) async throws {
        try save(0, "first")
        try await sync(0, 1)
        try await sync(2, 1)
        if isDeleted { try delete(0) } else { for text in ["second", "third"] { try save(0, text) } }
        try await sync(0, 1)
        if isDeleted { try await sync(0, 1, .pull) }
        try collection(1).purge(id: "x")
        try await sync(2, 3)
        try await sync(3, 1)
        #expect(try texts()[1] == "first")
        try await sync(0, 1)
        let expected: String? = isDeleted ? nil : "third"
        #expect(try texts().prefix(2) == [expected, expected])
    }

    @Test func `what was purged comes back from a peer that edits it, and stands`() async throws {
        try save(0, "old")
        try await sync(0, 1)
        try collection(0).purge(id: "x")
        try save(1, "edited")
        try await sync(0, 1)
        #expect(try texts() == ["edited", "edited", nil, nil])
        try save(0, "edited again")
        try await sync(1, 0)
        #expect(try texts() == ["edited again", "edited again", nil, nil])
    }

    @Test func `a database that never had a peer remembers nothing of what it purged`() throws {
        try save(0, "old")
        try save(0, "edited")
        try collection(0).purge(id: "x")
        try save(0, "new")
        #expect(try CollectionHistory(collection(0)).revisions(of: "x").count == 1)
    }

    @Test func `a push of what the peer has and has edited since is done, and nothing stays pending`()
        async throws
    {
        try save(0, "first")
        try await sync(1, 0, .pull)
        try save(1, "second")
        var configuration = ReplicatorConfiguration(
            collections: [try collection(0)],
            target: DatabaseEndpoint(database: databases[1])
        )
        configuration.replicatorType = .push
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try replicator.pendingDocumentIds(collection: collection(0)).isEmpty)
        #expect(try texts()[0] == "first")
    }

    @Test func `a push that is outranked fails, and stays pending`() async throws {
        try save(0, "mine")
        for number in 1...3 { try save(1, "theirs \(number)") }
        try await sync(0, 1, .push)
        var configuration = ReplicatorConfiguration(
            collections: [try collection(0)],
            target: DatabaseEndpoint(database: databases[1])
        )
        configuration.replicatorType = .push
        #expect(try Replicator(configuration).pendingDocumentIds(collection: collection(0)) == ["x"])
        #expect(try texts().prefix(2) == ["mine", "theirs 3"])
        try await sync(0, 1)
        #expect(try texts().prefix(2) == ["theirs 3", "theirs 3"])
    }

    @Test func `databases that agree on what is current tell each other what else they know`() async throws {
        try save(3, "first")
        try await sync(4, 3)
        try await sync(5, 3)
        try delete(4)
        try await sync(5, 4)
        try save(3, "first, edited by one who never saw the deletion")
        // Another document of the same name.
        try save(1, "second")
        try await sync(1, 0)
        try await sync(1, 2)
        try await sync(4, 0)
        try save(0, "second, edited by one who gave the deletion up")
        try save(1, "second, edited")
        try delete(1)
        try await sync(5, 2)
        try await sync(3, 2)
        for (active, passive) in [(1, 2), (1, 0), (3, 2), (4, 0), (5, 0)] { try await sync(active, passive) }
        for active in databases.indices {
            for passive in databases.indices where passive != active { try await sync(active, passive) }
        }
        #expect(try Set(texts(6)) == ["first, edited by one who never saw the deletion"])
    }
}
