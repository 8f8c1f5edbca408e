import CouchbaseLiteSwift
import Dispatch
import Foundation
import LoveseatTesting
import Testing

/// An app as Couchbase Lite's documentation teaches to write it: the first steps, in their order.
private struct FirstSteps {
    let database: Database
    let collection: CouchbaseLiteSwift.Collection

    init(_ config: DatabaseConfiguration) throws {
        database = try Database(name: "getting-started", config: config)
        collection = try database.createCollection(name: "example", scope: "app")
    }

    /// Creates a document, and returns its ID.
    func create() throws -> String {
        let document = MutableDocument()
            .setFloat(2.0, forKey: "version")
            .setString("SDK", forKey: "type")
        try collection.save(document: document)
        return document.id
    }

    func update(_ id: String) throws {
        guard let document = try collection.document(id: id)?.toMutable() else { return }
        document.setString("Swift", forKey: "language")
        try collection.save(document: document)
    }

    /// The languages, by SQL++.
    func languages() throws -> [String] {
        let query = try database.createQuery(
            "SELECT language FROM app.example WHERE type = $type ORDER BY language"
        )
        let parameters = Parameters()
        parameters.setString("SDK", forName: "type")
        query.parameters = parameters
        return try query.execute().compactMap { $0.string(forKey: "language") }
    }

    /// The whole documents, by stages.
    func kits() throws -> [[String: Any]] {
        let query = QueryBuilder.select(SelectResult.all())
            .from(DataSource.collection(collection))
            .where(Expression.property("type").equalTo(Expression.string("SDK")))
        return try query.execute().allResults().map { $0.toDictionary() }
    }

    /// A replicator that calls a closure with the error when it has stopped.
    func replicator(
        _ url: URL,
        username: String,
        _ stopped: @escaping (NSError?) -> Void
    ) -> (Replicator, ListenerToken) {
        var config = ReplicatorConfiguration(
            collections: CollectionConfiguration.fromCollections([collection]),
            target: URLEndpoint(url: url)
        )
        config.replicatorType = .pushAndPull
        config.authenticator = BasicAuthenticator(username: username, password: "pass")
        config.maxAttempts = 1
        let replicator = Replicator(config: config)
        let token = replicator.addChangeListener(withQueue: DispatchQueue(label: "app")) { change in
            if change.status.activity == .stopped { stopped(change.status.error as NSError?) }
        }
        return (replicator, token)
    }
}

@Suite(.ownThreads) struct GettingStartedTests {
    @Test func `the first steps of an app work`() async throws {
        let (world, server) = (try World(), try World())
        let app = try FirstSteps(world.config)
        let id = try app.create()
        try app.update(id)
        let document = try #require(try app.collection.document(id: id))
        #expect(document.string(forKey: "language") == "Swift")
        #expect(document.float(forKey: "version") == 2)
        #expect(try app.languages() == ["Swift"])
        let kit = try #require(try app.kits().first?["example"] as? [String: Any])
        #expect(kit["type"] as? String == "SDK")
        #expect(kit["version"] as? Int == 2)

        let there = try server.database.createCollection(name: "example", scope: "app")
        try there.save(document: MutableDocument(id: "other", data: ["type": "SDK", "language": "Kotlin"]))
        var config = URLEndpointListenerConfiguration(collections: [there])
        config.networkInterface = "127.0.0.1"
        config.disableTLS = true
        config.authenticator = ListenerPasswordAuthenticator { $0 == "john" && $1 == "pass" }
        let listener = URLEndpointListener(config: config)
        try listener.start()
        let url = try #require(listener.urls?.first)
        let ends = Heard<Int?>()
        for username in ["jane", "john"] {
            let (replicator, token) = app.replicator(url, username: username) { ends.add($0?.code) }
            let before = ends.all.count
            replicator.start()
            try await eventually { ends.all.count > before }
            token.remove()
        }
        #expect(ends.all == [CBLError.httpAuthRequired, nil])
        #expect(try there.document(id: id)?.string(forKey: "language") == "Swift")
        #expect(try app.languages() == ["Kotlin", "Swift"])
        listener.stop()
        try app.collection.delete(document: document)
        #expect(try app.languages() == ["Kotlin"])
        try app.database.delete()
    }
}
