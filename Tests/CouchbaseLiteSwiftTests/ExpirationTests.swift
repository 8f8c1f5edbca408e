import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct ExpirationTests {
    private let world: World
    private var sights: CouchbaseLiteSwift.Collection { world.sights }

    init() throws { world = try World() }

    private func save(_ ids: String...) throws {
        for id in ids { try sights.save(document: MutableDocument(id: id)) }
    }

    private func expire(_ id: String, after seconds: Double) throws {
        try sights.setDocumentExpiration(id: id, expiration: Date(timeIntervalSinceNow: seconds))
    }

    @Test func `a later time or none replaces a time, and an earlier one comes first`() async throws {
        try save("later", "none", "earlier")
        try expire("later", after: 0.2)
        try expire("later", after: 1_000)
        try expire("none", after: 0.2)
        try sights.setDocumentExpiration(id: "none", expiration: nil)
        try expire("earlier", after: 1_000)
        try expire("earlier", after: 0.3)
        try await eventually { try sights.document(id: "earlier") == nil }
        #expect(try sights.document(id: "later") != nil)
        #expect(try sights.document(id: "none") != nil)
    }

    @Test func `every open instance hears of the purge`() async throws {
        try save("tower")
        let again = try Database(name: "trips", config: world.config)
        let twin = try #require(try again.collection(name: "sights", scope: "travel"))
        let (ids, document) = (Heard<[String]>(), Heard<String>())
        twin.addChangeListener(queue: ids.queue) { ids.add($0.documentIDs) }
        twin.addDocumentChangeListener(id: "tower", queue: document.queue) { document.add($0.documentID) }
        try expire("tower", after: 0.05)
        try await eventually { ids.all == [["tower"]] && document.all == ["tower"] }
        try again.close()
    }

    @Test func `a document that expired while the database was closed is purged after it is opened`()
        async throws
    {
        try save("tower")
        try sights.setDocumentExpiration(id: "tower", expiration: Date(timeIntervalSince1970: 1_000))
        try world.database.close()
        let again = try Database(name: "trips", config: world.config)
        let twin = try #require(try again.collection(name: "sights", scope: "travel"))
        try await eventually { try twin.document(id: "tower") == nil }
        expectError(CBLError.notFound) { try twin.purge(id: "tower") }
        try again.close()
    }

    @Test func `a document is purged, or the database closed, before the time`() async throws {
        try save("purged", "last")
        try expire("purged", after: 0.05)
        try sights.purge(id: "purged")
        try expire("last", after: 0.1)
        try await eventually { try sights.document(id: "last") == nil }
        try save("closed")
        try expire("closed", after: 0.05)
        try world.database.close()
    }

    @Test func `queries tell the time in milliseconds since 1970`() throws {
        try save("tower", "kept")
        let date = Date(timeIntervalSinceNow: 1_000)
        try sights.setDocumentExpiration(id: "tower", expiration: date)
        let query = QueryBuilder.select(
            SelectResult.expression(Meta.id),
            SelectResult.expression(Meta.expiration)
        )
        .from(DataSource.collection(sights)).orderBy(Ordering.expression(Meta.id))
        let rows = try query.execute().allResults()
        #expect(rows.map { $0.string(at: 0) } == ["kept", "tower"])
        #expect(rows.first?.value(at: 1) == nil)
        #expect(abs((rows.last?.double(at: 1) ?? 0) - date.timeIntervalSince1970 * 1_000) < 2)
    }
}
