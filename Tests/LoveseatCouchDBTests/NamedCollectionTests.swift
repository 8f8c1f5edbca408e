import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: programs
/// Which database of a CouchDB a collection is replicated with.
struct NamedCollectionTests {
    private let active: ActiveSide
    private let trips: LoveseatCore.Collection

    init() throws {
        active = try ActiveSide()
        trips = try active.database.createCollection(name: "trips", scope: "travel")
        var document = Document(id: "there")
        try trips.save(&document)
        document = Document(id: "here")
        try active.collection.save(&document)
    }

    private func configuration(
        _ url: URL,
        _ names: [(LoveseatCore.Collection, String?)],
        _ type: ReplicatorType = .push
    ) -> ReplicatorConfiguration {
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.createsTarget = type != .pull
        let entries = names.map { collection, name in
            var entry = CollectionConfiguration(collection: collection)
            entry.remoteDatabase = name
            return entry
        }
        var configuration = ReplicatorConfiguration(collections: entries, target: endpoint)
        configuration.replicatorType = type
        configuration.maxAttempts = 1
        return configuration
    }

    private func documents(_ couch: FakeCouch, _ database: String) async throws -> [String] {
        let answer = try await couch.send("GET", "/\(database)/_changes")
        guard answer.status == 200 else { return ["\(answer.status)"] }
        let list = try JSONElement(parsing: Array(answer.text.utf8))["results"]
        return list?.items.compactMap { $0["id"]?.string }.sorted() ?? []
    }

    @Test func `one collection is replicated with the database of the URL, whatever its name`() async throws {
        let couch = try await FakeCouch()
        let pass = try await active.replicate(configuration(couch.url("trips"), [(trips, nil)]))
        #expect(pass.status.error == nil)
        #expect(try await documents(couch, "trips") == ["there"])
        // Back into another database.
        let other = try ActiveSide("other")
        let copy = try other.database.createCollection(name: "rides", scope: "a")
        let back = try await other.replicate(configuration(couch.url("trips"), [(copy, nil)], .pull))
        #expect(back.status.error == nil)
        #expect(try copy.document(id: "there") != nil)
    }

    @Test func `collections go to the databases that are named for them`() async throws {
        let couch = try await FakeCouch()
        let pass = try await active.replicate(
            configuration(couch.url("main"), [(try active.collection, nil), (trips, "our-trips/2026")])
        )
        #expect(pass.status.error == nil)
        #expect(try await documents(couch, "main") == ["here"])
        #expect(try await documents(couch, "our-trips%2F2026") == ["there"])
        let again = try await active.replicate(
            configuration(couch.url("main"), [(try active.collection, nil), (trips, "our-trips/2026")])
        )
        #expect(again.pushed == [])
        // What is known of one database is not believed of another.
        let elsewhere = try await active.replicate(
            configuration(couch.url("main"), [(try active.collection, "second"), (trips, "third")])
        )
        #expect(elsewhere.pushed == ["here", "there"])
        #expect(try await documents(couch, "second") == ["here"])
    }

    @Test(arguments: [ReplicatorType.push, .pushAndPull])
    func `what has no database there is named, and the rest is replicated`(_ type: ReplicatorType)
        async throws
    {
        let couch = try await FakeCouch()
        let names = [(try active.collection, String?.none), (trips, nil)]
        let pass = try await active.replicate(configuration(couch.url("main"), names, type))
        #expect(try await documents(couch, "main") == ["here"])
        let error = try #require(pass.status.error)
        #expect(error.message.contains("travel.trips"))
        #expect(error.code == .init(10_400))
        // Nothing is taken for done that was not.
        let second = try await active.replicate(
            configuration(couch.url("main"), [(try active.collection, nil), (trips, "trips")], type)
        )
        #expect(second.status.error == nil)
        #expect(try await documents(couch, "trips") == ["there"])
    }

    @Test func `nothing that can be replicated is an error from the start`() async throws {
        let couch = try await FakeCouch()
        let names = [(trips, "Not Legal"), (try active.collection, "_nor")]
        let pass = try await active.replicate(configuration(couch.url("main"), names))
        #expect(pass.status.error != nil)
        #expect(pass.pushed == [])
    }

    @Test func `two databases for a collection, one for two, and names for other peers are refused`()
        async throws
    {
        let couch = try await FakeCouch()
        let names = [(try active.collection, String?.none), (trips, "main")]
        let same = try await active.replicate(configuration(couch.url("main"), names))
        #expect(same.status.error?.code == .invalidParameter)
        let twice = try await active.replicate(
            configuration(couch.url("main"), [(trips, "one"), (trips, "two")])
        )
        #expect(twice.status.error?.code == .invalidParameter)
        #expect(try await documents(couch, "one") + documents(couch, "two") == ["404", "404"])
        let other = try ActiveSide("other")
        var entry = CollectionConfiguration(collection: trips)
        entry.remoteDatabase = "x"
        let local = ReplicatorConfiguration(
            collections: [entry],
            target: DatabaseEndpoint(database: other.database)
        )
        #expect(try await active.replicate(local).status.error?.code == .invalidParameter)
    }
}
