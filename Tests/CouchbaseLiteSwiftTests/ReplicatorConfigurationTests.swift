import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct ReplicatorConfigurationTests {
    private let pair: ReplicaPair

    init() throws { pair = try ReplicaPair() }

    @Test func `defaults are Couchbase Lite's`() throws {
        let config = ReplicatorConfiguration(
            collections: CollectionConfiguration.fromCollections([pair.ours]),
            target: URLEndpoint(url: try #require(URL(string: "wss://example.com:4984/trips")))
        )
        #expect(config.replicatorType == .pushAndPull)
        #expect(!config.continuous)
        #expect(config.authenticator == nil)
        #expect(config.pinnedServerCertificate == nil)
        #expect(!config.acceptOnlySelfSignedServerCertificate)
        #expect(config.headers == nil)
        #expect(config.networkInterface == nil)
        #expect(!config.acceptParentDomainCookie)
        #expect(config.heartbeat == 300)
        #expect(config.maxAttempts == 10)
        #expect(config.maxAttemptWaitTime == 300)
        #expect(config.enableAutoPurge)
        #expect((config.target as? URLEndpoint)?.url.host == "example.com")
        let collection = try #require(config.collections.first)
        #expect(collection.collection === pair.ours)
        #expect(collection.conflictResolver == nil)
        #expect(collection.pushFilter == nil)
        #expect(collection.pullFilter == nil)
        #expect(collection.channels == nil)
        #expect(collection.documentIDs == nil)
    }

    @Test func `the default number of attempts depends on whether it is continuous`() {
        var config = pair.config()
        config.continuous = true
        #expect(config.maxAttempts == .max)
        config.maxAttempts = 3
        config.continuous = false
        #expect(config.maxAttempts == 3)
        config.maxAttempts = 0
        #expect(config.maxAttempts == ReplicatorConfiguration.defaultMaxAttemptsSingleShot)
    }

    @Test func `of a collection that is named twice, the last settings count`() throws {
        var second = CollectionConfiguration(collection: pair.ours)
        second.documentIDs = ["tower"]
        let config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: pair.ours), second],
            target: DatabaseEndpoint(database: pair.peer)
        )
        #expect(config.collections.count == 1)
        #expect(config.collections.first?.documentIDs == ["tower"])
    }

    @Test func `a replicator keeps the configuration that it was created with`() {
        var config = pair.config()
        let replicator = Replicator(config: config)
        config.continuous = true
        #expect(!replicator.config.continuous)
        #expect(ReplicatorConfiguration(config: config).continuous)
    }

    @Test func `authenticators have their properties`() {
        let basic = BasicAuthenticator(username: "ada", password: "secret")
        #expect(basic.username == "ada")
        #expect(SessionAuthenticator(sessionID: "1").cookieName == "SyncGatewaySession")
        #expect(SessionAuthenticator(sessionID: "1", cookieName: nil).cookieName == "SyncGatewaySession")
        var config = pair.config()
        config.authenticator = basic
        #expect((config.authenticator as? BasicAuthenticator)?.password == "secret")
    }

    @Test func `settings of version 3 work`() async throws {
        try await (LegacyApp(pair: pair) as any App).run()
    }
}

/// Calls what is deprecated without a warning: the compiler does not look through a protocol.
private protocol App {
    func run() async throws
}

private struct LegacyApp: App {
    let pair: ReplicaPair

    @available(*, deprecated)
    func run() async throws {
        var config = ReplicatorConfiguration(target: DatabaseEndpoint(database: pair.peer))
        var collection = CollectionConfiguration()
        collection.documentIDs = ["tower"]
        let other = try pair.world.database.createCollection(name: "other")
        config.addCollections([pair.ours, other], config: collection)
        #expect(config.collectionConfig(other)?.documentIDs == ["tower"])
        config.removeCollection(other)
        #expect(config.collectionConfig(other) == nil)
        config.addCollection(pair.ours)
        #expect(config.collectionConfig(pair.ours)?.documentIDs == nil)
        #expect(config.database === pair.world.database)
        try pair.save("tower", "Eiffel", in: pair.ours)
        let observed = try await pair.replicate(config)
        #expect(try observed.event.id == "tower")

        var old = ReplicatorConfiguration(database: pair.world.database, target: config.target)
        old.documentIDs = ["a"]
        old.pushFilter = { document, _ in document.id == "a" }
        #expect(old.documentIDs == ["a"])
        #expect(old.collections.first?.pushFilter != nil)
        let database = pair.world.database
        for id in ["a", "b"] { try database.defaultCollection().save(document: MutableDocument(id: id)) }
        let replicator = Replicator(config: old)
        #expect(try replicator.pendingDocumentIds() == ["a"])
        #expect(try replicator.isDocumentPending("a"))
        replicator.removeChangeListener(withToken: replicator.addChangeListener { _ in })
    }
}
