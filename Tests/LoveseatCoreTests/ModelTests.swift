import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Documents as models, and properties as values of Swift's types.
struct ModelTests {
    private let scratch: Scratch
    private let database: Database
    private let notes: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("notes")
        notes = try database.createCollection(name: "notes")
    }

    private struct Note: Codable, Identifiable, RevisionTracking, Equatable {
        var id = UUID()
        var revisionID: RevisionID?
        var text: String
    }

    private struct Page: Codable, Identifiable, Equatable {
        var id: Int
        var text: String
    }

    private struct Sight: Codable, Identifiable, Equatable {
        var id: String
        var likes: Int
    }

    @Test func `models have UUIDs, numbers or strings as IDs, which are not among the properties`() throws {
        let note = Note(text: "milk")
        try notes.save(note)
        let stored = try #require(try notes.document(id: note.id.uuidString))
        #expect(stored.properties == ["text": "milk"])
        #expect(try notes.document(id: note.id, as: Note.self)?.text == "milk")
        #expect(try notes.document(id: note.id, as: Note.self)?.id == note.id)

        let pages = [Page(id: -7, text: "a"), Page(id: 0, text: "b"), Page(id: .max, text: "c")]
        try notes.save(pages)
        #expect(try notes.document(id: "-7")?.properties == ["text": "a"])
        for page in pages { #expect(try notes.document(id: page.id, as: Page.self) == page) }
        #expect(try notes.documents(ids: pages.map(\.id), as: Page.self) == pages)
        #expect(try notes.exists(id: 0))
        try notes.save(Document(id: "seven", ["text": "no number"]))
        try notes.save(Document(id: "007", ["text": "another number"]))
        expectError(.decodingError) { try notes.document(id: "seven", as: Page.self) }
        expectError(.decodingError) { try notes.document(id: "007", as: Page.self) }
    }

    @Test func `many values are saved together or not at all`() throws {
        try notes.save([Sight(id: "a", likes: 1), Sight(id: "b", likes: 1)])
        #expect(notes.count == 2)
        let values = [Sight(id: "c", likes: 2), Sight(id: "a", likes: 2)]
        #expect(try !notes.save(values, concurrencyControl: .failOnConflict))
        #expect(try notes.document(id: "c") == nil)
        expectError(.badDocID) { try notes.save([Sight(id: "d", likes: 1), Sight(id: "_no", likes: 1)]) }
        #expect(try notes.document(id: "d") == nil)
        #expect(try notes.save([Sight]()))
        #expect(try notes.save(values))
        #expect(try notes.documents(as: Sight.self).map(\.likes) == [2, 1, 2])
        let documents = try notes.documents()
        try notes.save(Sight(id: "b", likes: 9))
        #expect(try !notes.save(documents, concurrencyControl: .failOnConflict))
        #expect(try notes.save([documents[0], documents[2]], concurrencyControl: .failOnConflict))
    }

    @Test func `a model that remembers its revision finds out what others changed`() throws {
        var note = Note(text: "milk")
        #expect(try notes.save(&note, concurrencyControl: .failOnConflict))
        #expect(note.revisionID?.generation == 1)
        var copy = try #require(try notes.document(id: note.id, as: Note.self))
        #expect(copy == note)
        note.text = "milk, eggs"
        #expect(try notes.save(&note, concurrencyControl: .failOnConflict))
        copy.text = "bread"
        #expect(try !notes.save(copy, concurrencyControl: .failOnConflict))
        #expect(try !notes.save(&copy, concurrencyControl: .failOnConflict))
        #expect(try !notes.delete(copy, concurrencyControl: .failOnConflict))
        let isSaved = try notes.save(&copy) { mine, stored in
            mine.text += ", " + (stored?.text ?? "")
            return true
        }
        #expect(isSaved)
        #expect(copy.text == "bread, milk, eggs")
        #expect(try notes.document(id: note.id, as: Note.self) == copy)
        #expect(try notes.document(id: note.id.uuidString)?.properties.count == 1)
        #expect(try notes.delete(copy, concurrencyControl: .failOnConflict))
        #expect(try !notes.exists(id: copy.id))
    }

    @Test func `a handler may give up, and learns that the document was deleted`() throws {
        var note = Note(text: "a")
        try notes.save(&note)
        try notes.delete(note)
        var wasDeleted = false
        let isSaved = try notes.save(&note) { _, stored in
            wasDeleted = stored == nil
            return false
        }
        #expect(!isSaved)
        #expect(wasDeleted)
        #expect(try !notes.exists(id: note.id))
        var sight = Sight(id: "plain", likes: 1)
        try notes.save(sight)
        #expect(
            try notes.save(&sight) {
                $0.likes += $1?.likes ?? 0; return true
            }
        )
        #expect(try notes.document(id: "plain", as: Sight.self)?.likes == 2)
    }

    @Test func `updates at the same time are all applied, and keep what the type does not know`()
        async throws
    {
        try notes.save(Document(id: "tower", ["likes": 0, "city": "Paris"]))
        try await withThrowingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<50 { try notes.update(id: "tower", as: Sight.self) { $0.likes += 1 } }
                }
                group.addTask {
                    for _ in 0..<50 {
                        try notes.update(id: "tower") { $0["likes"] = ($0["likes"]?.int ?? 0) + 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        let tower = try #require(try notes.document(id: "tower"))
        #expect(tower.properties == ["likes": 400, "city": "Paris"])
        expectError(.notFound) { try notes.update(id: "none") { _ in } }
        struct Problem: Error {}
        #expect(throws: Problem.self) { try notes.update(id: "tower") { _ in throw Problem() } }
        #expect(try notes.document(id: "tower")?.revisionID == tower.revisionID)
        try await database.write { transaction in
            let changed = try transaction.update(id: "tower", in: notes, as: Sight.self) { $0.likes = 1 }
            #expect(changed == Sight(id: "tower", likes: 1))
        }
        #expect(try notes.document(id: "tower")?["city"] == "Paris")
    }

    @Test func `documents are deleted and purged by ID or model`() throws {
        let pages = (1...4).map { Page(id: $0, text: "") }
        try notes.save(pages)
        try notes.delete(id: 1)
        try notes.delete(id: 1)
        #expect(try notes.delete(pages[1]))
        try notes.purge(pages[2])
        expectError(.notFound) { try notes.purge(pages[2]) }
        expectError(.notFound) { try notes.delete(pages[2]) }
        expectError(.notFound) { try notes.delete(id: "none") }
        try database.write { transaction in
            try transaction.delete(pages[3], in: notes)
            try transaction.purge(pages[0], in: notes)
        }
        #expect(try notes.documentIDs().isEmpty)
    }

    // MARK: Properties

    @Test func `properties are values of Swift's types`() throws {
        let photo = try database.saveBlob([1, 2, 3], contentType: "image/png")
        var document = Document(id: "tower")
        let (count, city, unit) = (3, "Paris", UUID())
        let opened = Date(timeIntervalSinceReferenceDate: 1_234.5)
        document["likes"] = count
        document["city"] = city
        document["tags"] = ["iron", city]
        document["opened"] = opened
        document["price"] = Decimal(string: "0.10000000000000000000000000000000001")
        document["photo"] = photo
        document["id2"] = unit
        document["sizes"] = ["a": count]
        document["nested"] = Page(id: 1, text: "x")
        document["literal"] = ["a": 1, "b": [true, nil, 2.5, "x"]]
        document["none"] = 1
        document["none"] = nil
        document["null"] = .null
        try notes.save(&document)
        let read = try #require(try notes.document(id: "tower"))
        #expect(read["likes"] == 3)
        #expect(read["likes"]?.int == 3)
        #expect(read["tags"] == ["iron", "Paris"])
        #expect(read["none"] == nil)
        #expect(read["null"] == .null)
        let (likes, tags, date): (Int?, [String]?, Date?) = (read["likes"], read["tags"], read["opened"])
        #expect(likes == 3)
        #expect(tags == ["iron", "Paris"])
        #expect(date == opened)
        let (price, blob, id): (Decimal?, BlobReference?, UUID?) = (read["price"], read["photo"], read["id2"])
        #expect(price?.description == "0.10000000000000000000000000000000001")
        #expect(blob == photo)
        #expect(id == unit)
        #expect(try read.value("nested", as: Page.self) == Page(id: 1, text: "x"))
        let wrong: Int? = read["city"]
        #expect(wrong == nil)
        expectError(.decodingError) { try read.value("city", as: Int.self) }
        #expect(try read.value("missing", as: Int.self) == nil)
        #expect(try read.value("null", as: Int.self) == nil)
    }

    @Test func `a value that JSON cannot hold is refused by the save, or at once`() throws {
        var document = Document(id: "a")
        document["data"] = Data([1])
        expectError(.encodingError) { try notes.save(document) }
        var other = Document(id: "b")
        expectError(.encodingError) { try other.set("data", to: Data([1])) }
        expectError(.encodingError) { try other.set("number", to: Double.infinity) }
        try other.set("tags", to: Swift.Set(["a"]))
        #expect(other["tags"] == ["a"])
    }
}
