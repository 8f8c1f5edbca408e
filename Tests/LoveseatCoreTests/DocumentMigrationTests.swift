import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Documents that are brought to the form of a newer version of an app.
@Suite(.timeLimit(.minutes(5)))
struct DocumentMigrationTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    private struct Problem: Error {}

    private struct Person: Codable, Identifiable, Equatable {
        var id: String
        var name: String
    }

    private struct Named: Codable, Identifiable, Equatable {
        var id: String
        var first: String
        var last: String
    }

    private struct Place: DocumentModel, Equatable {
        var id: String
        var title: String
        var likes: Int

        static var defaults: JSONObject { ["likes": 0] }
        static var renamedProperties: KeyValuePairs<String, String> { ["name": "title"] }
    }

    private static func splitTags(_ document: inout Document) {
        if let tags = document["tags"]?.string {
            document["tags"] = .array(tags.split(separator: ",").map { .string(String($0)) })
        }
    }

    private func fill(_ collection: LoveseatCore.Collection, _ numbers: Range<Int>) throws {
        try collection.save(numbers.map { Document(id: "d\($0)", ["tags": .string("a,\($0)"), "n": 1]) })
    }

    private func sync(_ near: LoveseatCore.Collection, _ far: Database) async throws -> Replicator.Status {
        let replicator = Replicator(
            ReplicatorConfiguration(collections: [near], target: DatabaseEndpoint(database: far))
        )
        replicator.start()
        return await replicator.waitUntilStopped()
    }

    // MARK: What is changed

    @Test func `each document is changed once, and those that come later with the next call`() async throws {
        try fill(sights, 0..<1_200)
        try sights.delete(id: "d7")
        #expect(try await sights.migrate("tags", Self.splitTags) == 1_199)
        #expect(try sights.document(id: "d3")?.properties == ["tags": ["a", "3"], "n": 1])
        let before = try sights.contents()
        #expect(try await sights.migrate("tags", Self.splitTags) == 0)
        #expect(try sights.contents() == before)
        try fill(sights, 1_200..<1_202)
        #expect(try await sights.migrate("tags", Self.splitTags) == 2)
    }

    @Test func `a migration says how far it has come`() async throws {
        try fill(sights, 0..<1_200)
        let seen = Mutex<[MigrationStatus]>([])
        try await sights.migrate("tags", Self.splitTags) { status in seen.withLock { $0.append(status) } }
        let statuses = seen.withLock { $0 }
        #expect(statuses.count > 2)
        let first = try #require(statuses.first)
        #expect(first.changed == first.examined)
        #expect(first.remaining == 1_200)
        let last = try #require(statuses.last)
        #expect(last.changed == 1_200)
        #expect(last.examined == 2_400)
        #expect(last.remaining == 0)
        let shares = statuses.map { Double($0.examined) / Double($0.examined + $0.remaining) }
        #expect(shares == shares.sorted())
        try fill(sights, 1_200..<1_201)
        try await sights.migrate("tags", Self.splitTags) { status in seen.withLock { $0.append(status) } }
        #expect(seen.withLock { $0.suffix(2).map(\.examined) } == [1, 2])
        try await sights.migrate("tags", Self.splitTags) { _ in Issue.record("there is nothing to do") }
    }

    @Test func `a migration that blocks says how far it has come, too`() throws {
        try fill(sights, 0..<3)
        var changed: [Int] = []
        try sights.migrate("tags", Self.splitTags) { changed.append($0.changed) }
        #expect(changed == [3, 3])
    }

    @Test func `a call looks only at documents that were changed since the last one`() throws {
        try fill(sights, 0..<3)
        #expect(try sights.migrate("tags", Self.splitTags) == 3)
        try fill(sights, 3..<5)
        var calls = 0
        func count(_ document: inout Document) {
            calls += 1
            Self.splitTags(&document)
        }
        #expect(try sights.migrate("tags", count) == 2)
        // Both are changed, verified, and seen once more as the migration has left them.
        #expect(calls == 6)
        #expect(try sights.migrate("tags", count) == 0)
        #expect(calls == 6)
    }

    @Test func `documents that the closure leaves alone keep their revisions`() throws {
        try sights.save(Document(id: "other", ["kind": "else"]))
        let before = try sights.contents()
        #expect(try sights.migrate("tags", Self.splitTags) == 0)
        #expect(try sights.contents() == before)
    }

    @Test func `migrations and collections do not know each other's progress`() throws {
        let other = try database.createCollection(name: "other")
        for collection in [sights, other] { try fill(collection, 0..<2) }
        #expect(try sights.migrate("tags", Self.splitTags) == 2)
        #expect(try other.migrate("tags", Self.splitTags) == 2)
        #expect(try sights.migrate("2", { $0["n"] = 2 }) == 2)
        try database.deleteCollection(name: "other")
        let anew = try database.createCollection(name: "other")
        try fill(anew, 0..<1)
        #expect(try anew.migrate("tags", Self.splitTags) == 1)
        expectError(.invalidParameter) { try sights.migrate("") { _ in } }
    }

    @Test func `a document that is changed meanwhile is migrated as it is then`() throws {
        try fill(sights, 0..<2)
        var isFirst = true
        try sights.migrate("tags") { document in
            if isFirst { try sights.save(Document(id: "d0", ["tags": "b,c", "n": 2])) }
            isFirst = false
            Self.splitTags(&document)
        }
        #expect(try sights.document(id: "d0")?.properties == ["tags": ["b", "c"], "n": 2])
        #expect(try sights.document(id: "d1")?["tags"] == ["a", "1"])
    }

    @Test func `two calls of one migration at a time change each document once`() async throws {
        try fill(sights, 0..<2_000)
        let changed = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<3 { group.addTask { try await sights.migrate("tags", Self.splitTags) } }
            return try await group.reduce(0, +)
        }
        #expect(changed == 2_000)
        for document in try await sights.documents() { #expect(document.revisionID?.generation == 2) }
    }

    // MARK: Errors

    @Test func `a document that cannot be changed is named, and the migration goes on with it`() throws {
        try fill(sights, 0..<5)
        var isBroken = true
        func change(_ document: inout Document) throws {
            if isBroken, document.id.isExactly("d3") { throw Problem() }
            Self.splitTags(&document)
        }
        let error = #expect(throws: MigrationError.self) { try sights.migrate("tags", change) }
        #expect(error?.documentID == "d3")
        #expect(error?.error is Problem)
        #expect(error?.description.contains("\"d3\"") == true)
        #expect(try sights.document(id: "d2")?["tags"] == ["a", "2"])
        #expect(try sights.document(id: "d3")?.revisionID?.generation == 1)
        #expect(try sights.document(id: "d4")?.revisionID?.generation == 1)
        isBroken = false
        #expect(try sights.migrate("tags", change) == 2)
        #expect(try sights.document(id: "d4")?["tags"] == ["a", "4"])
    }

    @Test func `a change that is not the same each time, or that changes its own result, is refused`() throws
    {
        try fill(sights, 0..<1)
        let before = try sights.contents()
        let changes: [(inout Document) throws -> Void] = [
            { $0["n"] = ($0["n"]?.int).map { JSONValue($0 + 1) } },
            { $0["key"] = .string(UUID().uuidString) },
            { $0 = Document(id: "else", $0.properties) },
        ]
        for change in changes {
            let error = #expect(throws: MigrationError.self) { try sights.migrate("n", change) }
            #expect((error?.error as? LoveseatError)?.code == .invalidParameter)
            #expect(try sights.contents() == before)
        }
    }

    // MARK: Interruptions

    @Test func `after a kill between two parts, the next call goes on where the last one had come`()
        async throws
    {
        try fill(sights, 0..<1_200)
        let folder = "\(scratch.path)/trips.loveseat"
        await #expect(throws: MigrationError.self) {
            try await sights.migrate("tags") { document in
                // The first part is stored. The copied files are those that a kill would leave.
                if document.id.isExactly("d900") {
                    try FileManager.default.copyItem(
                        atPath: folder,
                        toPath: "\(scratch.path)/killed.loveseat"
                    )
                    throw Problem()
                }
                Self.splitTags(&document)
            }
        }
        let killed = try scratch.database("killed")
        let rest = try #require(try killed.collection(name: "sights"))
        let done = try await rest.documents().count { $0["tags"]?.array != nil }
        #expect(done >= 100)
        #expect(done < 900)
        #expect(try await rest.migrate("tags", Self.splitTags) == 1_200 - done)
        for document in try await rest.documents() { #expect(document.revisionID?.generation == 2) }
        try await killed.close()
    }

    @Test func `a cancelled migration goes on with the next call`() async throws {
        try fill(sights, 0..<1_200)
        let task = Task {
            try await sights.migrate("tags") { document in
                if document.id.isExactly("d700") { withUnsafeCurrentTask { $0?.cancel() } }
                Self.splitTags(&document)
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        let done = try await sights.documents().count { $0["tags"]?.array != nil }
        #expect(done < 1_200)
        #expect(try await sights.migrate("tags", Self.splitTags) == 1_200 - done)
    }

    // MARK: Several devices

    @Test func `two devices that migrate the same documents agree, and send nothing`() async throws {
        let far = try scratch.database("far")
        let there = try far.createCollection(name: "sights")
        try fill(sights, 0..<600)
        #expect(try await sync(sights, far).error == nil)
        #expect(try await sights.migrate("tags", Self.splitTags) == 600)
        #expect(try await there.migrate("tags", Self.splitTags) == 600)
        #expect(try sights.contents() == there.contents())
        let before = try sights.contents()
        let status = try await sync(sights, far)
        #expect(status.error == nil)
        #expect(status.progress.documents == 0)
        #expect(try sights.contents() == before)
        #expect(try there.contents() == before)
    }

    @Test func `a device that gets migrated documents, and old ones, migrates the old ones only`()
        async throws
    {
        let far = try scratch.database("far")
        let there = try far.createCollection(name: "sights")
        try fill(sights, 0..<3)
        #expect(try await sync(sights, far).error == nil)
        #expect(try await sights.migrate("tags", Self.splitTags) == 3)
        #expect(try await sync(sights, far).error == nil)
        // A device with the old version of the app.
        try there.save(Document(id: "late", ["tags": "x,y"]))
        #expect(try await there.migrate("tags", Self.splitTags) == 1)
        #expect(try await sync(sights, far).error == nil)
        #expect(try await sights.migrate("tags", Self.splitTags) == 0)
        #expect(try sights.contents() == there.contents())
    }

    // MARK: Types

    @Test func `documents are changed as a type, and keep what it does not know`() async throws {
        try sights.save(Document(id: "ana", ["name": " Ana ", "colour": "red"]))
        let count = try await sights.migrate("trim", as: Person.self) {
            $0.name = $0.name.trimmingCharacters(in: .whitespaces)
        }
        #expect(count == 1)
        #expect(try sights.document(id: "ana")?.properties == ["name": "Ana", "colour": "red"])
        try sights.save(Document(id: "nameless"))
        let error = await #expect(throws: MigrationError.self) {
            try await sights.migrate("trim", as: Person.self) { $0.name += "" }
        }
        #expect(error?.documentID == "nameless")
        #expect((error?.error as? LoveseatError)?.code == .decodingError)
    }

    @Test func `documents go from one type to another, and those of the new type stay`() throws {
        try sights.save(Document(id: "ana", ["name": "Ana Lima", "colour": "red"]))
        let made = Named(id: "ben", first: "Ben", last: "Ono")
        try sights.save(made)
        func split(_ person: Person) throws -> Named {
            let parts = person.name.split(separator: " ").map(String.init)
            guard parts.count == 2 else { throw Problem() }
            return Named(id: person.id, first: parts[0], last: parts[1])
        }
        #expect(try sights.migrate("names", from: Person.self, to: Named.self, split) == 1)
        #expect(
            try sights.document(id: "ana")?.properties == ["first": "Ana", "last": "Lima", "colour": "red"]
        )
        #expect(try sights.document(id: "ben", as: Named.self) == made)
        try sights.save(Document(id: "neither"))
        let error = #expect(throws: MigrationError.self) {
            try sights.migrate("names", from: Person.self, to: Named.self, split)
        }
        #expect(error?.documentID == "neither")
    }

    @Test func `defaults and names of today are written, so that queries find them`() async throws {
        try sights.save(Document(id: "tower", ["name": "Tour Eiffel", "city": "Paris"]))
        try sights.save(Document(id: "forum", ["title": "Forum", "name": "old", "likes": 3]))
        let query = try database.createQuery("SELECT meta().id FROM sights WHERE likes = 0")
        #expect(try await query.execute().isEmpty)
        #expect(try await sights.migrate("places", as: Place.self) == 2)
        #expect(try await query.execute().map { $0["id"] } == ["tower"])
        #expect(
            try sights.document(id: "tower")?.properties == [
                "title": "Tour Eiffel", "city": "Paris", "likes": 0,
            ]
        )
        #expect(try sights.document(id: "forum")?.properties == ["title": "Forum", "likes": 3])
    }
}
