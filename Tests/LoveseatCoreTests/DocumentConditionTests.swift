import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Observation
import Testing

/// Documents that are found by conditions with key paths.
@Suite(.timeLimit(.minutes(1)))
struct DocumentConditionTests {
    private let scratch: Scratch
    private let database: Database
    private let places: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        places = try database.createCollection(name: "places", scope: "travel")
        try places.save([
            Place(id: "tower", city: "Paris", likes: 3, opened: Date(timeIntervalSince1970: 0)),
            Place(id: "louvre", city: "Paris", likes: 9, address: Place.Address(street: "Rivoli")),
            Place(id: "forum", city: "Rome", likes: 5, isOpen: false, note: "old"),
        ])
    }

    private struct Place: DocumentModel, RevisionTracking, Equatable {
        struct Address: Codable, Equatable { var street: String }

        var id: String
        var revisionID: RevisionID?
        var city: String
        var likes: Int
        var isOpen = true
        var opened: Date?
        var note: String?
        var address: Address?
        var unnamed: Int?

        enum CodingKeys: String, CodingKey {
            case id, revisionID, likes, isOpen, opened, note, address, unnamed
            case city = "the town"
        }

        static var propertyNames: [PartialKeyPath<Place>: String] {
            [
                \.id: "id", \.city: "the town", \.likes: "likes", \.isOpen: "isOpen", \.opened: "opened",
                \.note: "note", \.address?.street: "address.street",
            ]
        }
    }

    private struct Page: DocumentModel {
        var id: Int
        var text: String
        static var propertyNames: [PartialKeyPath<Page>: String] { [\.id: "id", \.text: "te[xt"] }
    }

    private func ids(_ condition: DocumentCondition<Place>) throws -> [String] {
        try places.documents(where: condition, orderBy: [.ascending(\.id)]).map(\.id)
    }

    @Test func `documents are found by values of their properties`() throws {
        #expect(try ids(\.city == "Paris") == ["louvre", "tower"])
        #expect(try ids(\.city != "Paris") == ["forum"])
        #expect(try ids(\.likes > 3) == ["forum", "louvre"])
        #expect(try ids(\.likes >= 3 && \.likes < 9) == ["forum", "tower"])
        #expect(try ids(\.likes <= 3 || \.city == "Rome") == ["forum", "tower"])
        #expect(try ids(!(\.city == "Paris" && \.likes == 3)) == ["forum", "louvre"])
        #expect(try ids(\.isOpen == false) == ["forum"])
        #expect(try ids(\.opened == Date(timeIntervalSince1970: 0)) == ["tower"])
        #expect(try ids(\.address?.street == "Rivoli") == ["louvre"])
        #expect(try ids(DocumentCondition(\.city, in: ["Rome", "Oslo"])) == ["forum"])
        #expect(try ids(\.id == "tower") == ["tower"])
    }

    @Test func `nil stands for a property that is missing or null`() throws {
        try places.save(
            Document(id: "null", ["the town": "Oslo", "likes": 1, "isOpen": true, "note": .null])
        )
        #expect(try ids(\.note == nil) == ["louvre", "null", "tower"])
        #expect(try ids(\.note != nil) == ["forum"])
        // A null is a value, as in any query.
        #expect(try ids(\.note != "new") == ["forum", "null"])
    }

    @Test(arguments: ["\" OR 1 = 1", "' OR 1 = 1 --", "$value1", "`", "paris", "e\u{301}"])
    func `a value is compared by its bytes, and is never part of the query's text`(_ text: String) throws {
        #expect(try ids(\.city == text).isEmpty)
        try places.update(id: "tower", as: Place.self) { $0.city = text }
        #expect(try ids(\.city == text) == ["tower"])
        let composed = text.precomposedStringWithCanonicalMapping
        if Array(composed.utf8) != Array(text.utf8) { #expect(try ids(\.city == composed).isEmpty) }
    }

    @Test func `documents come in order, up to a limit, with their revisions`() async throws {
        let sorted: [Place] = try await places.documents(
            where: \.likes > 0,
            orderBy: [.ascending(\.city), .descending(\.likes)]
        )
        #expect(sorted.map(\.id) == ["louvre", "tower", "forum"])
        let read = try await places.documents(ids: ["louvre", "tower", "forum"], as: Place.self)
        #expect(sorted == read)
        let two = try await places.documents(
            as: Place.self,
            where: \.likes > 0,
            orderBy: [.descending(\.likes)],
            limit: 2
        )
        #expect(two.map(\.id) == ["louvre", "forum"])
        func page(_ limit: Int?, _ offset: Int) throws -> [String] {
            let likes = [DocumentOrder<Place>.descending(\.likes)]
            return try places.documents(where: \.likes > 0, orderBy: likes, limit: limit, offset: offset).map(
                \.id
            )
        }
        #expect(try page(1, 1) == ["forum"])
        #expect(try page(nil, 1) == ["forum", "tower"])
        #expect(try page(2, 3).isEmpty)
    }

    @Test func `documents are counted without being read`() async throws {
        try places.save(
            Document(id: "odd", ["the town": "Paris", "likes": "a text, which the model cannot read"])
        )
        #expect(try await places.count(of: Place.self, where: \.city == "Paris") == 3)
        #expect(try await places.count(of: Place.self, where: \.city == "Oslo") == 0)
        await #expect(throws: LoveseatError.self) {
            try await places.count(of: Place.self, where: \.unnamed == 1)
        }
        try await database.write { transaction in
            try transaction.delete(id: "tower", in: places)
            #expect(try transaction.count(of: Place.self, in: places, where: \.city == "Paris") == 2)
        }
        func blocking() throws -> UInt64 { try places.count(of: Place.self, where: \.likes > 3) }
        #expect(try blocking() == 3)
    }

    @Test func `a transaction finds what it has saved`() throws {
        try database.write { transaction in
            try transaction.save(Place(id: "prado", city: "Madrid", likes: 4), in: places)
            let found = try transaction.documents(in: places, as: Place.self, where: \.city == "Madrid")
            #expect(found.map(\.id) == ["prado"])
        }
    }

    @Test func `a property that the model does not name is an error, and so is a name that is not a path`()
        throws
    {
        expectError(.invalidQuery) { try ids(\.unnamed == 1) }
        expectError(.invalidQuery) { try ids(\.likes > 3 && \.unnamed == nil) }
        let pages = try database.createCollection(name: "pages")
        try pages.save([Page(id: 7, text: "x"), Page(id: 8, text: "y")])
        expectError(.invalidQuery) { try pages.documents(as: Page.self, where: \.text == "x") }
        #expect(try pages.documents(as: Page.self, where: \.id == 7).map(\.text) == ["x"])
    }

    @MainActor @Test func `what meets a condition is watched`() async throws {
        let paris = LiveQuery<Place>(places, where: \.city == "Paris", orderBy: [.ascending(\.likes)])
        while paris.value.map(\.id) != ["tower", "louvre"] { await changed { _ = paris.value } }
        try places.update(id: "forum", as: Place.self) { $0.city = "Paris" }
        while paris.value.map(\.id) != ["tower", "forum", "louvre"] { await changed { _ = paris.value } }
        let wrong = LiveQuery<Place>(places, where: \.unnamed == 1)
        while wrong.isLoading { await changed { _ = wrong.isLoading } }
        #expect((wrong.error as? LoveseatError)?.code == .invalidQuery)
    }

    /// Waits until something that a closure reads changes.
    @MainActor private func changed(_ read: @MainActor () -> Void) async {
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        withObservationTracking(read) { change.finish() }
        for await _ in changes {}
    }
}
