import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

struct DatabaseTests {
    private let scratch: Scratch
    private let database: Database

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
    }

    private struct Sight: Codable, Identifiable, Equatable {
        var id: String
        var city: String
        var likes: Int
        var opened: Date?
        var photo: BlobReference?
    }

    @Test func `a document is saved, read, changed, deleted and purged`() throws {
        let sights = try database.createCollection(name: "sights", scope: "travel")
        var tower = Document(id: "tower", ["city": "Paris", "likes": 3])
        try sights.save(&tower)
        #expect(tower.sequence == 1)
        #expect(tower.revisionID?.generation == 1)
        var read = try #require(try sights.document(id: "tower"))
        read["likes"] = 4
        try sights.save(&read)
        #expect(read.revisionID?.generation == 2)
        #expect(try sights.document(id: "tower")?["likes"] == 4)
        #expect(sights.count == 1)
        try sights.delete(read)
        #expect(try sights.document(id: "tower") == nil)
        #expect(sights.count == 0)
        try sights.purge(id: "tower")
        expectError(.notFound) { try sights.purge(id: "tower") }
    }

    @Test func `a save of a stale document fails, wins, or asks, as told`() throws {
        let collection = try database.defaultCollection()
        var first = Document(id: "d", ["n": 1])
        try collection.save(&first)
        var stale = first
        first["n"] = 2
        try collection.save(&first)
        stale["n"] = 3
        #expect(try !collection.save(&stale, concurrencyControl: .failOnConflict))
        #expect(try collection.document(id: "d")?["n"] == 2)
        #expect(try !collection.delete(stale, concurrencyControl: .failOnConflict))
        var seen: JSONValue?
        let saved = try collection.save(&stale) { mine, theirs in
            seen = theirs?["n"]
            mine["n"] = 5
            return true
        }
        #expect(saved)
        #expect(seen == 2)
        #expect(try collection.document(id: "d")?["n"] == 5)
        #expect(try !collection.save(&first) { _, _ in false })
        try collection.save(&first)
        #expect(try collection.document(id: "d")?["n"] == 2)
    }

    @Test func `codable values are documents, their ID outside the body`() throws {
        let collection = try database.defaultCollection()
        let long = "text/" + String(repeating: "x", count: 252)
        expectError(.invalidParameter) { try database.saveBlob([1], contentType: long) }
        _ = try database.saveBlob([1], contentType: String(long.dropLast()))
        let blob = try database.saveBlob(Array("hello".utf8), contentType: "text/plain")
        let date = Date(timeIntervalSince1970: 1_700_000_000.25)
        let tower = Sight(id: "tower", city: "Paris", likes: 3, opened: date, photo: blob)
        try collection.save(tower)
        #expect(try collection.document(id: "tower", as: Sight.self) == tower)
        let document = try #require(try collection.document(id: "tower"))
        #expect(document["id"] == nil)
        #expect(document["opened"] == "2023-11-14T22:13:20.250Z")
        #expect(document.blob("photo") == blob)
        #expect(try database.blobContent(blob) == Data("hello".utf8))
        #expect(try database.blobContent(blob, in: 1..<3) == Data("el".utf8))
        expectError(.decodingError) {
            try collection.save(Document(id: "bad", ["city": 1]))
            _ = try collection.document(id: "bad", as: Sight.self)
        }
    }

    @Test func `a transaction is kept whole or not at all, and tells of itself once`() async throws {
        let collection = try database.defaultCollection()
        struct Problem: Error, Equatable {}
        let changes = try collection.changes()
        await #expect(throws: Problem()) {
            try await database.write { transaction in
                try transaction.save(Document(id: "a"), in: collection)
                #expect(try transaction.count(in: collection) == 1)
                throw Problem()
            }
        }
        #expect(collection.count == 0)
        try await database.write { transaction in
            for number in 0..<3 { try transaction.save(Document(id: "doc\(number)"), in: collection) }
        }
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next()?.documentIDs == ["doc0", "doc1", "doc2"])
    }

    @Test func `a feed shows each commit once and ends with the database`() async throws {
        let collection = try database.defaultCollection()
        let changes = try collection.changes()
        let one = try collection.documentChanges(id: "doc7")
        for number in 0..<2_000 { try collection.save(Document(id: "doc\(number)")) }
        try collection.purge(id: "doc7")
        try await database.close()
        var seen: [String] = []
        for await change in changes { seen += change.documentIDs }
        #expect(seen == (0..<2_000).map { "doc\($0)" } + ["doc7"])
        var count = 0
        for await _ in one { count += 1 }
        #expect(count == 2)
    }

    @Test func `a document purges itself when its time comes`() async throws {
        let collection = try database.defaultCollection()
        try collection.save(Document(id: "soon"))
        try collection.save(Document(id: "later"))
        let changes = try collection.documentChanges(id: "soon")
        try collection.setDocumentExpiration(id: "later", expiration: Date(timeIntervalSinceNow: 1_000))
        try collection.setDocumentExpiration(id: "soon", expiration: Date(timeIntervalSinceNow: 0.1))
        #expect(try collection.getDocumentExpiration(id: "soon") != nil)
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next()?.documentID == "soon")
        #expect(try collection.document(id: "soon") == nil)
        #expect(try collection.document(id: "later") != nil)
        expectError(.notFound) {
            try collection.setDocumentExpiration(id: "none", expiration: nil)
        }
    }

    @Test func `what was deleted or closed says that it is not open`() throws {
        let collection = try database.createCollection(name: "short")
        try database.deleteCollection(name: "short")
        expectError(.notOpen) { try collection.save(Document(id: "a")) }
        expectError(.notOpen) { try collection.document(id: "a") }
        #expect(collection.count == 0)
        let again = try database.createCollection(name: "short")
        try again.save(Document(id: "b"))
        expectError(.notOpen) { try collection.document(id: "b") }
        let other = try scratch.database("trips")
        expectError(.busy) { try other.delete() }
        try database.close()
        try database.close()
        expectError(.notOpen) { try database.defaultCollection() }
        #expect(try other.collection(name: "short")?.count == 1)
        try other.delete()
        #expect(!Database.exists(withName: "trips", inDirectory: scratch.path))
        try Database.delete(withName: "trips", inDirectory: scratch.path)
    }

    @Test func `a copy has everything and an identity of its own`() throws {
        let collection = try database.createCollection(name: "sights", scope: "travel")
        let blob = try database.saveBlob([1, 2, 3])
        try collection.save(Document(id: "d", ["blob": blob.json]))
        try Database.copy(
            fromPath: try #require(database.path),
            toDatabase: "copy",
            withConfig: scratch.config
        )
        let copy = try scratch.database("copy")
        let copied = try #require(try copy.collection(name: "sights", scope: "travel"))
        #expect(try copied.contents() == collection.contents())
        #expect(try copy.blobContent(blob) == Data([1, 2, 3]))
        try copy.performMaintenance(type: .integrityCheck)
        expectError(.invalidParameter) {
            try Database.copy(fromPath: database.path ?? "", toDatabase: "copy", withConfig: scratch.config)
        }
    }

    @Test(arguments: ["", "a/b", "..", "x\0y"])
    func `a name that is no folder's is refused`(_ name: String) {
        expectError(.invalidParameter) { try scratch.database(name) }
    }

    @Test(arguments: ["", "_x", String(repeating: "x", count: 241), "a\nb"])
    func `a bad document ID is refused`(_ id: String) throws {
        let collection = try database.defaultCollection()
        expectError(.badDocID) { try collection.save(Document(id: id)) }
    }

    @Test func `compaction removes the blobs that nobody refers to`() throws {
        let collection = try database.defaultCollection()
        let kept = try database.saveBlob([1])
        let lost = try database.saveBlob([2])
        try collection.save(Document(id: "d", ["blob": kept.json]))
        try database.performMaintenance(type: .compact)
        #expect(try database.blobLength(kept) == 1)
        expectError(.notFound) { try database.blobContent(lost) }
    }

    @Test func `several kinds of maintenance are done one after the other, without blocking a task`()
        async throws
    {
        let collection = try database.defaultCollection()
        let lost = try database.saveBlob([2])
        try collection.save(Document(id: "d"))
        try collection.delete(id: "d")
        #expect(try await database.performMaintenance(types: [.compact]) == 0)
        expectError(.notFound) { try database.blobContent(lost) }
        let removed = try await database.performMaintenance(
            types: MaintenanceType.allCases,
            removingTombstonesOlderThan: .zero
        )
        #expect(removed == 1)
    }

    @Test func `maintenance of a cancelled task does nothing`() async throws {
        let blob = try database.saveBlob([1])
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await database.performMaintenance(types: [.compact])
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try database.blobLength(blob) == 1)
    }
}
