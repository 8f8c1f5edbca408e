import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct LegacyTests {
    @Test func `a database has the calls of its default collection`() throws {
        try (LegacyApp() as any App).run()
    }
}

/// Calls what is deprecated without a warning: the compiler does not look through a protocol.
private protocol App {
    func run() throws
}

private struct LegacyApp: App {
    @available(*, deprecated)
    func run() throws {
        let world = try World()
        let database = world.database
        let heard = Heard<[String]>()
        let token = database.addChangeListener(withQueue: heard.queue) { heard.add($0.documentIDs) }
        let document = MutableDocument(id: "tower", data: ["n": 1])
        try database.saveDocument(document)
        #expect(database.count == 1)
        #expect(database["tower"]["n"].int == 1)
        let stored = try #require(database.document(withID: "tower"))
        #expect(try database.defaultCollection().document(id: "tower") == stored)
        try database.setDocumentExpiration(withID: "tower", expiration: Date(timeIntervalSinceNow: 1_000))
        #expect(database.getDocumentExpiration(withID: "tower") != nil)
        try database.saveDocument(document.setInt(2, forKey: "n"))
        let stale = stored.toMutable().setInt(3, forKey: "n")
        #expect(try !database.saveDocument(stale, concurrencyControl: .failOnConflict))
        #expect(try database.saveDocument(stale) { _, other in other?.int(forKey: "n") == 2 })
        try database.deleteDocument(stale)
        try database.purgeDocument(withID: "tower")
        #expect(heard.settled.count == 5)
        database.removeChangeListener(withToken: token)
        try database.saveDocument(MutableDocument())
        #expect(heard.settled.count == 5)
        try database.close()
        #expect(database.count == 0)
        #expect(database.document(withID: "tower") == nil)
        database.addChangeListener { _ in }.remove()
    }
}

extension LegacyTests {
    @Test func `a database has the indexes of its default collection, and queries their older spellings`()
        throws
    {
        try (LegacyQueries() as any App).run()
    }
}

extension LegacyTests {
    @Test func `listeners, identities and settings have their older spellings`() throws {
        try (LegacySettings() as any App).run()
    }
}

private struct LegacySettings: App {
    @available(*, deprecated)
    func run() throws {
        let database = try World().database
        let messages = MessageEndpointListenerConfiguration(database: database, protocolType: .byteStream)
        #expect(messages.database === database)
        #expect(messages.collections == [try database.defaultCollection()])
        let listener = MessageEndpointListener(config: messages)
        listener.removeChangeListener(withToken: listener.addChangeListener { _ in })
        #expect(URLEndpointListenerConfiguration(database: database).database === database)
        var config = DatabaseConfiguration()
        config.mmapEnabled = false
        #expect(config.mmapEnabled == DatabaseConfiguration.defaultMmapEnabled)
        #expect(ReplicatorConfiguration.defaultMaxAttemptWaitTime == 300)
        #expect(!LogFileConfiguration.defaultUsePlaintext)
        #expect(LogFileConfiguration.defaultMaxRotateCount == 1)
        #expect(LogFileConfiguration.defaultMaxSize == 524_288)
        let label = "test-\(UUID().uuidString)"
        defer { try? TLSIdentity.deleteIdentity(withLabel: label) }
        let identity = try TLSIdentity.createIdentity(
            forServer: true,
            attributes: [certAttrCommonName: "Ana", certAttrSurname: "Hansen"],
            label: label
        )
        #expect(identity.certs.count == 1)
    }
}

private struct LegacyQueries: App {
    @available(*, deprecated)
    func run() throws {
        let world = try World()
        let database = world.database
        try database.saveDocument(MutableDocument(id: "tower", data: ["text": "Two towers"]))
        try database.createIndex(IndexBuilder.valueIndex(items: .property("city")), withName: "city")
        let words = IndexBuilder.fullTextIndex(items: .property("text")).language("en")
        try database.createIndex(words, withName: "words")
        #expect(database.indexes == ["city", "words"])
        let query = QueryBuilder.select(SelectResult.expression(FullTextFunction.rank("words")))
            .from(DataSource.database(database))
            .where(
                FullTextFunction.match(indexName: "words", query: "tower")
                    .and(Expression.property("city").isNullOrMissing())
                    .and(Expression.property("text").notNullOrMissing())
            )
        #expect(try query.execute().allResults().count == 1)
        let towers = QueryBuilder.select(SelectResult.expression(Meta.id)).from(DataSource.database(database))
            .where(FullTextExpression.index("words").match("tower"))
        #expect(try towers.execute().allResults().count == 1)
        let all = QueryBuilder.select(SelectResult.all()).from(DataSource.database(database))
        #expect(try all.execute().next()?.dictionary(forKey: "trips")?.string(forKey: "text") == "Two towers")
        query.removeChangeListener(withToken: query.addChangeListener { _ in })
        try database.deleteIndex(forName: "city")
        #expect(database.indexes == ["words"])
    }
}

extension LegacyTests {
    @Test func `vector search is unsupported`() throws { try (VectorSearch() as any App).run() }
}

private struct VectorSearch: App {
    @available(*, deprecated)
    func run() throws {
        let world = try World()
        expectError(CBLError.unsupported) { try Extension.enableVectorSearch() }
        var config = VectorIndexConfiguration(expression: "vector", dimensions: 3, centroids: 100)
        config.encoding = .none
        config.metric = .cosine
        expectError(CBLError.unsupported) { try world.sights.createIndex(withName: "v", config: config) }
        try world.sights.createIndex(withName: "city", config: ValueIndexConfiguration(["city"]))
        #expect(try world.sights.indexes() == ["city"])
        let index = try #require(try world.sights.index(withName: "city"))
        expectError(CBLError.unsupported) { try index.beginUpdate(limit: 50) }
    }
}

extension LegacyTests {
    @Test func `a database with a key is refused rather than stored as it is`() throws {
        try (Encryption() as any App).run()
    }
}

private struct Encryption: App {
    @available(*, deprecated)
    func run() throws {
        let world = try World()
        var config = world.config
        #expect(config.encryptionKey == nil)
        config.encryptionKey = EncryptionKey.password("secret")
        let copy = DatabaseConfiguration(config: config)
        #expect(copy.encryptionKey != nil)
        expectError(CBLError.unsupportedEncryption) { try Database(name: "secret", config: copy) }
        expectError(CBLError.unsupportedEncryption) {
            let path = try #require(world.database.path)
            try Database.copy(fromPath: path, toDatabase: "secret", withConfig: copy)
        }
        #expect(!Database.exists(withName: "secret", inDirectory: config.directory))
        expectError(CBLError.unsupportedEncryption) {
            try world.database.changeEncryptionKey(EncryptionKey.key(Data([1])))
        }
        try world.database.changeEncryptionKey(nil)
    }
}
