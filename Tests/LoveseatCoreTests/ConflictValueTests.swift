import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Conflicts that an app makes to test its resolver.
struct ConflictValueTests {
    private let scratch: Scratch
    private let database: Database

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("db")
    }

    private func winner(_ local: Document?, _ remote: Document?) async throws -> JSONValue? {
        let conflict = Conflict(documentID: "a", localDocument: local, remoteDocument: remote)
        return try await ConflictResolver.default.resolve(conflict: conflict)?["text"]
    }

    @Test func `a resolver gets the documents of a conflict that a test makes`() async throws {
        let resolver = ConflictResolver.custom { conflict in
            var merged = conflict.localDocument
            merged?["theirs"] = conflict.remoteDocument?["text"]
            merged?["before"] = conflict.baseDocument?["text"]
            return merged
        }
        let conflict = Conflict(
            documentID: "a",
            localDocument: Document(id: "a", ["text": "here"]),
            remoteDocument: Document(id: "a", ["text": "there"]),
            baseDocument: Document(id: "a", ["text": "before"])
        )
        #expect(conflict.documentID == "a")
        let merged = try await resolver.resolve(conflict: conflict)
        #expect(merged?.properties == ["text": "here", "theirs": "there", "before": "before"])
    }

    @Test func `the default resolver decides about conflicts that a test makes`() async throws {
        let collection = try database.defaultCollection()
        var once = Document(id: "a", ["text": "once"])
        try collection.save(&once)
        var twice = once
        twice["text"] = "twice"
        try collection.save(&twice)
        #expect(try await winner(once, twice) == "twice")
        #expect(try await winner(twice, once) == "twice")
        #expect(try await winner(nil, twice) == nil)
        #expect(try await winner(twice, nil) == nil)
        // The one of these that was never saved has no revision.
        let unsaved = Document(id: "a", ["text": "unsaved"])
        #expect(try await winner(unsaved, once) == "once")
        #expect(try await winner(once, unsaved) == "once")
    }

    @Test func `where documents have versions, the default resolver takes the later one`() async throws {
        let collection = try database.defaultCollection()
        try database.store.beginVersions()
        var early = Document(id: "a", ["text": "early"])
        for _ in 0..<3 { try collection.save(&early) }
        var late = Document(id: "b", ["text": "late"])
        try collection.save(&late)
        #expect(early.timestamp < late.timestamp)
        #expect(try await winner(early, late) == "late")
        #expect(try await winner(late, early) == "late")
        // It was edited before the database had versions.
        let old = Document(id: "a", revisionID: RevisionID("9-aa"), sequence: 0, body: early.json)
        #expect(try await winner(old, late) == "late")
        #expect(try await winner(late, old) == "late")
    }
}
