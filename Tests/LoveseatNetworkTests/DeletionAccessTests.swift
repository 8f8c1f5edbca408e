import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Deletions where a policy goes by the properties of documents, which tombstones do not have.
struct DeletionAccessTests {
    private let scratch: Scratch
    private let far: Database
    /// The owner writes a document; everybody reads a public one.
    private let policy = AccessPolicy { peer, _, document in
        guard let document else { return .write }
        if document["owner"]?.string == peer.username { return .write }
        return document["public"]?.bool == true ? .read : .none
    }

    init() throws {
        scratch = try Scratch()
        far = try scratch.database("far")
    }

    /// Syncs a user's database with a listener that runs as long as that takes; returns each document's error or deletion.
    @discardableResult
    private func sync(
        _ near: Database,
        _ user: String,
        _ type: ReplicatorType = .pushAndPull
    ) async throws -> [String: LoveseatError.Code?] {
        var serving = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        serving.networkInterface = "127.0.0.1"
        serving.handshakeSeconds = 600
        serving.disableTLS = true
        serving.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
        serving.accessPolicy = policy
        let listener = URLEndpointListener(serving)
        try await listener.start()
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        configuration.authenticator = BasicAuthenticator(username: user, password: user)
        configuration.maxAttempts = 1
        configuration.replicatorType = type
        // Each run is of another listener, with another port.
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        replicator.start()
        var outcomes: [String: LoveseatError.Code?] = [:]
        for await event in events {
            for document in event.documents { outcomes[document.id] = .some(document.error?.code) }
        }
        #expect(await replicator.waitUntilStopped().error == nil)
        await listener.stop()
        return outcomes
    }

    private func delete(_ id: String, in database: Database) throws {
        let collection = try database.defaultCollection()
        try collection.delete(try #require(try collection.document(id: id)))
    }

    private func record(_ id: String, in database: Database) throws -> DocumentRecord? {
        let handle = try database.defaultCollection().handle
        return try database.store.readRows { try $0.record(id, in: handle) }
    }

    @Test func `a deletion reaches those who were sent the document, and nobody else`() async throws {
        let (bob, eve) = (try scratch.database("bob"), try scratch.database("eve"))
        for (id, owner, isPublic) in [("bobs", "bob", false), ("news", "ana", true), ("anas", "ana", false)] {
            try far.defaultCollection().save(
                Document(id: id, ["owner": .string(owner), "public": .bool(isPublic)])
            )
        }
        #expect(try await sync(bob, "bob").keys.sorted() == ["bobs", "news"])
        #expect(try await sync(eve, "eve").keys.sorted() == ["news"])
        for id in ["bobs", "news", "anas"] { try delete(id, in: far) }
        #expect(try await sync(bob, "bob").keys.sorted() == ["bobs", "news"])
        #expect(try await sync(eve, "eve").keys.sorted() == ["news"])
        #expect(try bob.defaultCollection().count == 0)
        #expect(try eve.defaultCollection().count == 0)
        #expect(try record("bobs", in: bob)?.isDeleted == true)
        #expect(try record("bobs", in: eve) == nil)
        #expect(try record("anas", in: bob) == nil)
    }

    @Test func `whoever deleted their own document can make it anew, and nobody else`() async throws {
        let (bob, eve) = (try scratch.database("bob"), try scratch.database("eve"))
        try bob.defaultCollection().save(Document(id: "d", ["owner": "bob", "n": 1]))
        try await sync(bob, "bob")
        try delete("d", in: bob)
        #expect(try await sync(bob, "bob") == ["d": nil])
        #expect(try record("d", in: far)?.isDeleted == true)
        // Another one's of the same name.
        try eve.defaultCollection().save(Document(id: "d", ["owner": "eve"]))
        #expect(try await sync(eve, "eve", .push) == ["d": .httpForbidden])
        #expect(try record("d", in: far)?.isDeleted == true)
        try bob.defaultCollection().save(Document(id: "d", ["owner": "bob", "n": 2]))
        #expect(try await sync(bob, "bob") == ["d": nil])
        #expect(try far.defaultCollection().document(id: "d")?["n"]?.int == 2)
        // Also from another device of theirs, which never had it.
        try delete("d", in: far)
        let tablet = try scratch.database("tablet")
        try tablet.defaultCollection().save(Document(id: "d", ["owner": "bob", "n": 3]))
        #expect(try await sync(tablet, "bob", .push) == ["d": nil])
        #expect(try far.defaultCollection().document(id: "d")?["n"]?.int == 3)
    }

    @Test func `a tombstone is judged by what it deletes, also by those who had nothing of it`() async throws
    {
        // From the first listener with a policy on, whoever opens the database.
        try await sync(try scratch.database("other"), "other")
        try await far.close()
        let far = try scratch.database("far")
        for id in ["news", "anas"] {
            try far.defaultCollection().save(
                Document(id: id, ["owner": "ana", "public": .bool(id == "news"), "text": "secret"])
            )
            try delete(id, in: far)
        }
        func seen(by user: String) throws -> Set<String> {
            let access = PeerAccess(peer: PeerIdentity(username: user), policy: policy)
            let replicas = DatabaseReplicas(store: try far.store, access: access, nowMilliseconds: { 0 })
            _ = try replicas.bind([.default], checkpoints: [""])
            let replica = replicas.replica(of: 0)
            let changes = try replica.changes(ChangeQuery(since: 0, limit: 10)).changes
            let requests = changes.map {
                RevisionRequest(
                    documentID: $0.documentID,
                    revision: $0.revision,
                    known: [],
                    maxHistory: 20,
                    peer: .client
                )
            }
            // Nothing of the content goes along.
            for case .found(let content) in try replica.revisions(requests) {
                #expect(content.isDeleted)
                #expect(content.body == .emptyObject)
            }
            return Set(changes.map(\.documentID))
        }
        #expect(try seen(by: "ana") == ["news", "anas"])
        #expect(try seen(by: "carl") == ["news"])
    }

    @Test func `a blob goes with its document's deletion, though the policy still needs the properties`()
        async throws
    {
        try await sync(try scratch.database("other"), "other")
        let blob = try far.saveBlob(Array("a photo".utf8))
        let collection = try far.defaultCollection()
        try collection.save(Document(id: "d", ["owner": "bob", "photo": blob.json]))
        try delete("d", in: far)
        try far.performMaintenance(type: .compact)
        #expect(try far.blobLength(blob) == nil)
        try far.performMaintenance(type: .integrityCheck)
    }
}
