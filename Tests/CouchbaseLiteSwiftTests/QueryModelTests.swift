import CouchbaseLiteSwift
import Foundation
import Testing

/// Rows as values of `Codable` types.
@Suite(.ownThreads) struct QueryModelTests {
    private let world: World
    private let sights: CouchbaseLiteSwift.Collection

    init() throws {
        world = try World()
        sights = try world.database.defaultCollection()
        let document = MutableDocument(id: "tower", data: ["city": "Paris", "likes": 9])
        document.setBlob(Blob(contentType: "image/jpeg", data: Data("jpeg".utf8)), forKey: "photo")
        try sights.save(document: document)
        try sights.save(document: MutableDocument(id: "zoo", data: ["city": "Lyon"]))
    }

    private final class Sight: Codable {
        @DocumentID var id: String?
        var city: String
        var likes: Int?
        var photo: Blob?
    }

    private struct Visit: Decodable { var city: String }
    private struct Narrow: Decodable { var city: Int }

    private func rows(_ columns: String) throws -> ResultSet {
        try world.database.createQuery("SELECT \(columns) FROM _ ORDER BY meta().id").execute()
    }

    @Test func `rows are decoded by their columns`() throws {
        let results = try rows("meta().id AS id, city, likes, photo")
        let first = try #require(try results.next()?.data(as: Sight.self))
        #expect(first.id == "tower")
        #expect(first.likes == 9)
        #expect(first.photo?.content == Data("jpeg".utf8))
        let rest = try results.data(as: Sight.self)
        #expect(rest.map(\.id) == ["zoo"])
        #expect(rest.first?.likes == nil)
        #expect(try results.data(as: Sight.self).isEmpty)
    }

    @Test func `properties that are not columns are taken from a column`() throws {
        let sights = try rows("meta().id AS id, *").data(as: Sight.self, dataKey: "_")
        #expect(sights.map(\.id) == ["tower", "zoo"])
        #expect(sights.map(\.city) == ["Paris", "Lyon"])
        #expect(sights.first?.photo?.contentType == "image/jpeg")
    }

    @Test func `a query has columns for what a type requires, and for the ID`() throws {
        expectError(CBLError.invalidQuery) { try rows("likes").data(as: Visit.self) }
        expectError(CBLError.invalidQuery) { try rows("city").data(as: Sight.self) }
        expectError(CBLError.decodingError) { try rows("city").data(as: Narrow.self) }
        #expect(try rows("city").data(as: Visit.self).count == 2)
    }
}
