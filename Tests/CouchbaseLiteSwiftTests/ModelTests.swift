import CouchbaseLiteSwift
import Foundation
import Testing

/// Documents as objects of `Codable` classes.
@Suite(.ownThreads) struct ModelTests {
    private let world: World
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws { world = try World() }

    private class Sight: Codable {
        @DocumentID var id: String?
        var city: String
        var likes: Int?
        var opened: Date?
        var photo: Blob?
        var photos: [Blob]?

        init(id: String? = nil, city: String) {
            self.id = id
            self.city = city
        }
    }

    private final class Nameless: Codable { var city = "Paris" }

    private final class Raw: Codable {
        @DocumentID var id: String?
        var data = Data([1, 2])

        init() {}
    }

    private final class Narrow: Codable {
        @DocumentID var id: String?
        var likes: Int8
    }

    private final class Strict: Codable {
        @DocumentID var id: String?
        var stars: Int
    }

    @Test func `an object is saved and loaded, and its ID is not a property`() throws {
        let sight = Sight(id: "tower", city: "Paris")
        sight.opened = Date(timeIntervalSince1970: 1_772_357_400.25)
        sight.photo = Blob(contentType: "image/jpeg", data: Data("jpeg".utf8))
        sight.photos = [Blob(contentType: "image/png", data: Data("png".utf8))]
        try sights.save(from: sight)
        let document = try #require(try sights.document(id: "tower"))
        #expect(!document.contains(key: "id"))
        #expect(document.string(forKey: "opened") == "2026-03-01T09:30:00.250Z")
        #expect(document.contains(key: "likes"))
        #expect(document.value(forKey: "likes") is NSNull)
        #expect(document.blob(forKey: "photo")?.content == Data("jpeg".utf8))
        let loaded = try #require(try sights.document(id: "tower", as: Sight.self))
        #expect(loaded.id == "tower")
        #expect(loaded.city == "Paris")
        #expect(loaded.likes == nil)
        #expect(loaded.photo?.content == Data("jpeg".utf8))
        #expect(loaded.photos?.first?.contentType == "image/png")
        let opened = try #require(loaded.opened)
        #expect(abs(opened.timeIntervalSince1970 - 1_772_357_400.25) < 0.001)
        #expect(try sights.document(id: "nowhere", as: Sight.self) == nil)
    }

    @Test func `an object without an ID gets one`() throws {
        let sight = Sight(city: "Paris")
        try sights.save(from: sight)
        let id = try #require(sight.id)
        #expect(try sights.document(id: id)?.string(forKey: "city") == "Paris")
        sight.city = "Lyon"
        #expect(try sights.save(from: sight, concurrencyControl: .failOnConflict))
        #expect(sights.count == 1)
    }

    @Test func `a class without an ID is refused`() throws {
        let nameless = Nameless()
        try sights.save(document: MutableDocument(id: "a", data: ["city": "Paris"]))
        expectError(CBLError.invalidParameter) { try sights.save(from: nameless) }
        expectError(CBLError.invalidParameter) { try sights.delete(for: nameless) }
        expectError(CBLError.invalidParameter) { try sights.purge(for: nameless) }
        expectError(CBLError.invalidParameter) { try sights.document(id: "a", as: Nameless.self) }
    }

    @Test func `an object remembers its revision, by which conflicts are found`() throws {
        let sight = Sight(id: "tower", city: "Paris")
        try sights.save(from: sight)
        let stale = try #require(try sights.document(id: "tower", as: Sight.self))
        sight.city = "Lyon"
        try sights.save(from: sight)
        stale.city = "Nice"
        #expect(try !sights.save(from: stale, concurrencyControl: .failOnConflict))
        #expect(try !sights.delete(for: stale, concurrencyControl: .failOnConflict))
        let twin = Sight(id: "tower", city: "Metz")
        #expect(try !sights.save(from: twin, concurrencyControl: .failOnConflict))
        let isSaved = try sights.save(from: stale) { mine, stored in
            #expect(mine === stale)
            #expect(stored?.city == "Lyon")
            mine.city += " and \(stored?.city ?? "nowhere")"
            return true
        }
        #expect(isSaved)
        #expect(try sights.document(id: "tower", as: Sight.self)?.city == "Nice and Lyon")
        #expect(try !sights.save(from: twin) { _, _ in false })
    }

    @Test func `objects are deleted and purged`() throws {
        let sight = Sight(id: "tower", city: "Paris")
        expectError(CBLError.notFound) { try sights.delete(for: sight) }
        try sights.save(from: sight)
        try sights.delete(for: sight)
        #expect(try sights.document(id: "tower") == nil)
        try sights.save(from: sight)
        #expect(try sights.document(id: "tower") != nil)
        try sights.purge(for: sight)
        expectError(CBLError.notFound) { try sights.purge(for: sight) }
        try sights.save(from: sight)
        try sights.purge(id: "tower")
        #expect(try sights.save(from: sight, concurrencyControl: .failOnConflict))
    }

    @Test func `what does not fit is a decodingError, and Data an encodingError`() throws {
        try sights.save(document: MutableDocument(id: "a", data: ["likes": 300]))
        expectError(CBLError.decodingError) { try sights.document(id: "a", as: Narrow.self) }
        expectError(CBLError.decodingError) { try sights.document(id: "a", as: Strict.self) }
        try sights.save(document: MutableDocument(id: "b", data: ["stars": "three"]))
        expectError(CBLError.decodingError) { try sights.document(id: "b", as: Strict.self) }
        expectError(CBLError.encodingError) { try sights.save(from: Raw()) }
        #expect(sights.count == 2)
    }

    @Test func `another encoder writes the ID as text or null`() throws {
        let sight = Sight(id: "tower", city: "Paris")
        let text = String(decoding: try JSONEncoder().encode(sight), as: UTF8.self)
        #expect(text.contains(#""id":"tower""#))
        let read = try JSONDecoder().decode(Sight.self, from: Data(text.utf8))
        #expect(read.id == "tower")
        sight.id = nil
        #expect(String(decoding: try JSONEncoder().encode(sight), as: UTF8.self).contains(#""id":null"#))
    }

    @Test func `a superclass that is encoded apart is nested`() throws {
        final class Tower: Codable {
            class Base: Codable { var height = 330 }
            @DocumentID var id: String?
            var base = Base()

            init() {}
            enum CodingKeys: CodingKey { case id, base }
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                _id = try container.decode(DocumentID.self, forKey: .id)
                base = try Base(from: container.superDecoder())
            }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(_id, forKey: .id)
                try base.encode(to: container.superEncoder())
            }
        }
        let tower = Tower()
        tower.base.height = 331
        try sights.save(from: tower)
        let id = try #require(tower.id)
        #expect(try sights.document(id: id)?.toJSON() == #"{"super":{"height":331}}"#)
        #expect(try sights.document(id: id, as: Tower.self)?.base.height == 331)
    }
}
