import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Models whose documents were saved by other versions of the app.
struct DocumentModelTests {
    private let scratch: Scratch
    private let database: Database
    private let places: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        places = try database.createCollection(name: "places")
    }

    /// The first version.
    private struct Old: Codable, Identifiable, Equatable {
        var id: String
        var name: String
    }

    private struct Place: DocumentModel, RevisionTracking, Equatable {
        struct Address: Codable, Equatable { var city: String }

        var id: String
        var revisionID: RevisionID?
        var title: String
        var likes = 0
        var address = Address(city: "Paris")
        var note: String?

        static var defaults: JSONObject { ["likes": 0, "address": ["city": "Paris"]] }
        static var renamedProperties: KeyValuePairs<String, String> { ["name": "title", "heading": "title"] }
    }

    /// The second version, which goes on writing the name of the first.
    private struct Careful: DocumentModel, Equatable {
        var id: String
        var title: String
        var likes = 0

        enum CodingKeys: String, CodingKey {
            case id, likes
            case title = "name"
        }
        static var defaults: JSONObject { ["likes": 0] }
    }

    @Test func `an old document is read with defaults, and under the former name of a property`() throws {
        try places.save(Old(id: "tower", name: "Tour Eiffel"))
        let tower = try #require(try places.document(id: "tower", as: Place.self))
        #expect(tower.title == "Tour Eiffel")
        #expect(tower.likes == 0)
        #expect(tower.address.city == "Paris")
        #expect(tower.note == nil)
        #expect(try places.documents(as: Place.self) == [tower])
        try places.save(Document(id: "both", ["name": "first", "heading": "second", "likes": .null]))
        #expect(try places.document(id: "both", as: Place.self)?.title == "first")
        try places.save(Document(id: "new", ["name": "former", "title": "today", "likes": 7]))
        #expect(try places.document(id: "new", as: Place.self)?.title == "today")
        #expect(try places.document(id: "new", as: Place.self)?.likes == 7)
        try places.save(Document(id: "none", ["likes": 1]))
        expectError(.decodingError) { try places.document(id: "none", as: Place.self) }
    }

    @Test func `defaults are not written before they are changed`() throws {
        try places.save(Document(id: "tower", ["name": "Tour Eiffel", "extra": 1]))
        let before = try places.contents()
        try places.update(id: "tower", as: Place.self) { _ in }
        var tower = try #require(try places.document(id: "tower", as: Place.self))
        try places.save(&tower)
        #expect(try places.contents() == before)
        try places.update(id: "tower", as: Place.self) { $0.likes += 1 }
        #expect(
            try places.document(id: "tower")?.properties == ["title": "Tour Eiffel", "extra": 1, "likes": 1]
        )
        tower = try #require(try places.document(id: "tower", as: Place.self))
        tower.title = "Tower"
        try places.save(&tower)
        #expect(try places.document(id: "tower")?.properties == ["title": "Tower", "extra": 1, "likes": 1])
    }

    @Test func `a change of a value that remembers its revision moves a property to its name of today`()
        throws
    {
        try places.save(Document(id: "tower", ["name": "Tour Eiffel", "extra": 1]))
        var tower = try #require(try places.document(id: "tower", as: Place.self))
        tower.title = "Tower"
        try places.save(&tower)
        #expect(try places.document(id: "tower")?.properties == ["title": "Tower", "extra": 1])
    }

    @Test func `two versions that agree on names read and keep each other's documents`() throws {
        try places.save(Old(id: "a", name: "first"))
        #expect(try places.document(id: "a", as: Careful.self) == Careful(id: "a", title: "first"))
        try places.update(id: "a", as: Careful.self) {
            $0.title = "second"
            $0.likes = 2
        }
        #expect(try places.document(id: "a", as: Old.self) == Old(id: "a", name: "second"))
        try places.update(id: "a", as: Old.self) { $0.name = "third" }
        #expect(try places.document(id: "a", as: Careful.self) == Careful(id: "a", title: "third", likes: 2))
        try places.save(Careful(id: "b", title: "new"))
        #expect(try places.document(id: "b", as: Old.self)?.name == "new")
    }

    @Test func `rows have the defaults of columns that documents lack, and of whole documents`() throws {
        try places.save(Old(id: "tower", name: "Tour Eiffel"))
        try places.save(Document(id: "null", ["name": "x", "likes": .null]))
        let whole = try database.createQuery("SELECT meta().id, * FROM places ORDER BY meta().id")
        let read = try whole.execute(as: Place.self, dataKey: "places")
        #expect(read.map(\.title) == ["x", "Tour Eiffel"])
        #expect(read.map(\.likes) == [0, 0])
        let columns = try database.createQuery(
            "SELECT meta().id, name AS title, likes, address FROM places ORDER BY meta().id"
        )
        #expect(try columns.execute(as: Place.self).map(\.likes) == [0, 0])
        let fewer = try database.createQuery("SELECT meta().id, name AS title, address FROM places")
        expectError(.invalidQuery) { try fewer.execute(as: Place.self) }
    }

    @Test func `a property moves to a name that is free`() throws {
        var document = Document(id: "a", ["name": "x", "n": 1])
        document.renameProperty("name", to: "title")
        #expect(document.properties == ["title": "x", "n": 1])
        document["name"] = "again"
        document.renameProperty("name", to: "title")
        #expect(document.properties == ["title": "x", "n": 1])
        document.renameProperty("none", to: "title")
        document.renameProperty("n", to: "n")
        #expect(document.properties == ["title": "x", "n": 1])
    }
}
