import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// What a listener's policy lets each peer do, in both directions.
struct AccessPolicyTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database
    private let rules = NIOLockedValueBox<[String: DocumentAccess]>([:])

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    /// Documents have an `owner`, who may write them; `rules` has what others may do with them.
    private func serve() async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(
            collections: [try far.defaultCollection(), try far.createCollection(name: "hidden")]
        )
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        configuration.disableTLS = true
        configuration.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
        let rules = rules
        configuration.accessPolicy = AccessPolicy { peer, collection, document in
            if collection.name == "hidden" { return peer.username == "ana" ? .write : .none }
            guard let document else { return .write }
            if document["owner"]?.string == peer.username { return .write }
            return rules.withLockedValue { $0[document.id] } ?? .none
        }
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func replicator(
        _ listener: URLEndpointListener,
        _ user: String = "bob",
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        configuration.authenticator = BasicAuthenticator(username: user, password: user)
        configuration.maxAttempts = 1
        change(&configuration)
        return Replicator(configuration)
    }

    private func save(_ database: Database, _ id: String, owner: String) throws {
        try database.defaultCollection().save(Document(id: id, ["owner": .string(owner)]))
    }

    private func ids(_ database: Database) throws -> Set<String> {
        Set(try database.defaultCollection().contents().keys)
    }

    @Test func `blobs of a document that the peer may not write are not fetched`() async throws {
        for (id, owner) in [("mine", "bob"), ("hers", "ana")] {
            let blob = try near.saveBlob([UInt8](repeating: UInt8(id.count), count: 300_000))
            let content: JSONObject = ["owner": .string(owner), "photo": blob.json]
            try near.defaultCollection().save(Document(id: id, content))
        }
        let listener = try await serve()
        let replicator = try replicator(listener)
        let (documents, transfers) = (replicator.documentReplications, replicator.blobTransfers)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        var errors: [String: LoveseatError.Code] = [:]
        for await batch in documents {
            for document in batch.documents { errors[document.id] = document.error?.code }
        }
        #expect(errors == ["hers": .httpForbidden])
        var sent: Set<String?> = []
        for await transfer in transfers { sent.insert(transfer.documentID) }
        #expect(sent == ["mine"])
        #expect(try ids(far) == ["mine"])
        await listener.stop()
    }

    @Test func `a peer pulls what it may read, and nothing else`() async throws {
        for (id, owner) in [("mine", "bob"), ("public", "ana"), ("secret", "ana")] {
            try save(far, id, owner: owner)
        }
        rules.withLockedValue { $0 = ["public": .read] }
        let listener = try await serve()
        let replicator = try replicator(listener)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try ids(near) == ["mine", "public"])
        await listener.stop()
    }

    /// The listener knows of the same document a version that bob may not see, and of bob's that another one was preferred.
    @Test func `what was decided about a document reaches a peer that may not read all of its versions`()
        async throws
    {
        func save(_ database: Database, _ owner: String, _ texts: [String]) throws {
            let collection = try database.defaultCollection()
            for text in texts {
                var document = try collection.document(id: "x") ?? Document(id: "x")
                document["owner"] = .string(owner)
                document["text"] = .string(text)
                try collection.save(&document)
            }
        }
        func pull(from database: Database, prefersOwn: Bool) async throws {
            var entry = CollectionConfiguration(collection: try far.defaultCollection())
            if prefersOwn { entry.conflictResolver = ConflictResolver.custom { $0.localDocument } }
            var configuration = ReplicatorConfiguration(
                collections: [entry],
                target: DatabaseEndpoint(database: database)
            )
            configuration.replicatorType = .pull
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        let others = try scratch.database("others")
        try save(others, "ana", ["hidden from bob"])
        try save(near, "bob", ["a", "b", "c"])
        // The longer line wins by itself, and the other one stays open.
        try save(far, "bob", ["first", "preferred"])
        try await pull(from: others, prefersOwn: false)
        try await pull(from: near, prefersOwn: true)
        let listener = try await serve()
        for _ in 0..<2 {
            let replicator = try replicator(listener)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        for database in [near, far] {
            #expect(try database.defaultCollection().document(id: "x")?["text"] == "preferred")
        }
        await listener.stop()
        try await near.close()
        let file = try Data(contentsOf: URL(filePath: "\(scratch.path)/near.loveseat/db.sqlite"))
        #expect(file.range(of: Data("preferred".utf8)) != nil)
        #expect(file.range(of: Data("hidden from bob".utf8)) == nil)
    }

    @Test func `a deletion by a peer does not delete another document of that name that it may not read`()
        async throws
    {
        let others = try scratch.database("others")
        func syncOthers() async throws {
            let replicator = Replicator(
                ReplicatorConfiguration(
                    collections: [try others.defaultCollection()],
                    target: DatabaseEndpoint(database: far)
                )
            )
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
        try save(others, "z", owner: "ana")
        try save(near, "z", owner: "bob")
        try save(near, "z", owner: "bob")
        let listener = try await serve()
        func syncNear() async throws {
            let replicator = try replicator(listener)
            replicator.start()
            _ = await replicator.waitUntilStopped()
        }
        try await syncNear()
        try await syncOthers()
        // Bob hears that there is another document, and gets none of its content.
        try await syncNear()
        let mine = try #require(try near.defaultCollection().document(id: "z"))
        #expect(mine["owner"] == "bob")
        try near.defaultCollection().delete(mine)
        try await syncNear()
        try await syncOthers()
        for database in [far, others] {
            #expect(try database.defaultCollection().document(id: "z")?["owner"] == "ana")
        }
        await listener.stop()
    }

    @Test func `a peer decides nothing about content that it may not write, whatever it tells`() throws {
        let theirs = RevisionID(generation: 1, digest: [0xAA])
        let mine = RevisionID(generation: 2, digest: [0xBB])
        let root = RevisionID(generation: 1, digest: [0xBB])
        func revision(
            _ history: [RevisionID],
            owner: String,
            closing: Set<RevisionID> = [],
            copies: Set<RevisionID> = []
        ) -> IncomingRevision {
            var revision = IncomingRevision(
                documentID: "z",
                history: history,
                isDeleted: false,
                body: JSONText(canonical: ["owner": .string(owner)]),
                sender: .loveseat
            )
            var knowledge = TreeKnowledge()
            knowledge.closed = closing
            knowledge.copies = copies
            revision.knowledge = knowledge
            return revision
        }
        let policy = AccessPolicy { peer, _, document in
            document == nil || document?["owner"]?.string == peer.username ? .write : .none
        }
        func replica(_ user: String) throws -> CollectionReplica {
            let access = PeerAccess(peer: PeerIdentity(username: user), policy: policy)
            let replicas = DatabaseReplicas(store: try far.store, access: access, nowMilliseconds: { 0 })
            _ = try replicas.bind([.default], checkpoints: [""])
            return replicas.replica(of: 0)
        }
        _ = try replica("ana").insert([revision([theirs], owner: "ana")])
        let ownersReplicas = DatabaseReplicas(store: try far.store, nowMilliseconds: { 0 })
        _ = try ownersReplicas.bind([.default], checkpoints: [""])
        _ = try ownersReplicas.replica(of: 0).insert([revision([mine, root], owner: "bob")])
        func tree() throws -> RevisionTree {
            let collection = try #require(try far.store.collections.first { $0.name == .default })
            return try #require(try far.store.readRows { try $0.record("z", in: collection) }).tree()
        }
        let bob = try replica("bob")
        let next = RevisionID(generation: 3, digest: [0xBB])
        _ = try bob.insert([revision([next, mine, root], owner: "bob", closing: [theirs])])
        #expect(try tree().contains(next))
        #expect(try tree().closed.isEmpty)
        // Neither is it a copy of something else, nor something else a copy of it or a part of its document.
        func copy(_ original: RevisionID, _ origin: RevisionID, over parent: RevisionID) -> RevisionID {
            CopyName(original: original, origin: origin).id(over: parent, of: "z", sha1: Hashing.sha1)
        }
        let ofTheirs = copy(theirs, theirs, over: next)
        let ofTheirLine = copy(mine, theirs, over: ofTheirs)
        let ofMine = copy(mine, root, over: ofTheirLine)
        let later = RevisionID(generation: 7, digest: [0xBB])
        let history = [later, ofMine, ofTheirLine, ofTheirs, next, mine, root]
        let copies: Set = [theirs, ofTheirs, ofTheirLine, ofMine]
        _ = try bob.insert([revision(history, owner: "bob", copies: copies)])
        #expect(try tree().contains(later))
        #expect(try tree().copies == [ofMine: mine])
        #expect(try tree().candidates.contains { $0.original == theirs })
        let over = RevisionID(generation: 4, digest: [0xBC])
        let result = try bob.insert([revision([over, theirs], owner: "bob")])
        guard case .failed(let error) = result.first else {
            Issue.record("a revision went on from content that its author may not write")
            return
        }
        #expect(error.code == .httpForbidden)
        #expect(try !tree().contains(over))
    }

    @Test func `what a peer may not write is refused for each document, and the rest is taken`() async throws
    {
        try save(far, "public", owner: "ana")
        try save(far, "secret", owner: "ana")
        rules.withLockedValue { $0 = ["public": .read] }
        let listener = try await serve()
        let first = try replicator(listener)
        first.start()
        _ = await first.waitUntilStopped()
        // An edit of what it may read only, a guess at what it may not see, another's name, and its own.
        try save(near, "public", owner: "bob")
        try save(near, "secret", owner: "bob")
        try save(near, "forged", owner: "ana")
        try save(near, "mine", owner: "bob")
        let before = try far.defaultCollection().contents()
        let second = try replicator(listener) { $0.replicatorType = .push }
        let events = second.documentReplications
        second.start()
        var errors: [String: LoveseatError.Code?] = [:]
        for await event in events {
            for document in event.documents { errors[document.id] = .some(document.error?.code) }
        }
        #expect(await second.waitUntilStopped().error == nil)
        #expect(
            errors == [
                "public": .httpForbidden, "secret": .httpForbidden, "forged": .httpForbidden, "mine": nil,
            ]
        )
        var after = try far.defaultCollection().contents()
        #expect(after.removeValue(forKey: "mine") != nil)
        #expect(after == before)
        await listener.stop()
    }

    @Test func `a collection without access is not there`() async throws {
        let listener = try await serve()
        let hidden = try near.createCollection(name: "hidden")
        for (user, code) in [("bob", LoveseatError.Code.httpNotFound), ("ana", nil)] {
            var configuration = try replicator(listener, user).config
            configuration = ReplicatorConfiguration(collections: [hidden], target: configuration.target)
            configuration.authenticator = BasicAuthenticator(username: user, password: user)
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error?.code == code)
        }
        await listener.stop()
    }

    @Test func `access that ends takes documents away from a connected peer`() async throws {
        try save(far, "shared", owner: "ana")
        try save(far, "kept", owner: "bob")
        rules.withLockedValue { $0 = ["shared": .read] }
        let listener = try await serve()
        let replicator = try replicator(listener) { $0.continuous = true }
        let events = replicator.documentReplications
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        #expect(try ids(near) == ["shared", "kept"])
        rules.withLockedValue { $0 = [:] }
        await listener.accessChanged()
        wait: for await event in events {
            for document in event.documents where document.flags.contains(.accessRemoved) {
                #expect(document.id == "shared")
                break wait
            }
        }
        #expect(try ids(near) == ["kept"])
        // Nothing that happens to it afterwards is seen.
        try save(far, "shared", owner: "ana")
        try save(far, "news", owner: "bob")
        let collection = try near.defaultCollection()
        try await eventually { try collection.document(id: "news") != nil }
        #expect(try ids(near) == ["kept", "news"])
        replicator.stop()
        await replicator.waitUntilStopped()
        await listener.stop()
    }

    @Test func `access that ended while a peer was away is told when it comes back, once`() async throws {
        try save(far, "shared", owner: "ana")
        rules.withLockedValue { $0 = ["shared": .read] }
        let first = try await serve()
        let before = try replicator(first)
        before.start()
        _ = await before.waitUntilStopped()
        #expect(try ids(near) == ["shared"])
        await first.stop()
        rules.withLockedValue { $0 = [:] }
        // Another listener, as after a restart; another peer that never had it hears nothing of it.
        let second = try await serve()
        let stranger = try scratch.database("stranger")
        for (database, user, expected) in [(stranger, "eve", 0), (near, "bob", 1), (near, "bob", 0)] {
            var configuration = ReplicatorConfiguration(
                collections: [try database.defaultCollection()],
                target: URLEndpoint(try #require(second.urls?.first))
            )
            configuration.authenticator = BasicAuthenticator(username: user, password: user)
            let replicator = Replicator(configuration)
            let events = replicator.documentReplications
            replicator.start()
            var told = 0
            for await event in events { told += event.documents.count }
            #expect(await replicator.waitUntilStopped().error == nil)
            #expect(told == expected)
        }
        #expect(try ids(near).isEmpty)
        await second.stop()
    }

    @Test func `every device of a user is told what the user lost, also what was lost twice`() async throws {
        for number in 1...450 { try save(far, "d\(number)", owner: "ana") }
        let all = try ids(far)
        rules.withLockedValue { $0 = Dictionary(uniqueKeysWithValues: all.map { ($0, .read) }) }
        let listener = try await serve()
        let second = try scratch.database("second")
        func pull(_ database: Database) async throws -> Set<String> {
            let collections = [CollectionConfiguration(collection: try database.defaultCollection())]
            let replicator = try replicator(listener) {
                $0.collections = collections
                $0.replicatorType = .pull
            }
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
            return try ids(database)
        }
        #expect(try await pull(near) == all)
        #expect(try await pull(second) == all)
        for kept in [["d1", "d450"], ["d1"]] as [Set<String>] {
            rules.withLockedValue { $0 = $0.filter { kept.contains($0.key) } }
            #expect(try await pull(near) == kept)
            // What is saved meanwhile is behind the losses in the feed of the second device.
            try save(far, "later", owner: "bob")
            #expect(try await pull(second) == kept.union(["later"]))
            try far.defaultCollection().purge(id: "later")
            try second.defaultCollection().purge(id: "later")
        }
        // It comes back when it changes, and can be lost again.
        rules.withLockedValue { $0["d450"] = .read }
        try save(far, "d450", owner: "ana")
        #expect(try await pull(near) == ["d1", "d450"])
        #expect(try await pull(second) == ["d1", "d450"])
        rules.withLockedValue { $0["d450"] = nil }
        #expect(try await pull(second) == ["d1"])
        #expect(try await pull(near) == ["d1"])
        await listener.stop()
    }

    @Test func `a blob is given only with a document, and its digest opens nothing`() throws {
        let blob = try far.saveBlob(Array("a photo".utf8), contentType: "image/jpeg")
        try far.defaultCollection().save(Document(id: "secret", ["owner": "ana", "photo": blob.json]))
        try far.defaultCollection().save(Document(id: "mine", ["owner": "bob"]))
        let policy = AccessPolicy { peer, _, document in
            document == nil || document?["owner"]?.string == peer.username ? .write : .none
        }
        for (user, isGiven) in [("bob", false), ("ana", true)] {
            let access = PeerAccess(peer: PeerIdentity(username: user), policy: policy)
            let replicas = DatabaseReplicas(store: try far.store, access: access, nowMilliseconds: { 0 })
            _ = try replicas.bind([.default], checkpoints: [""])
            let replica = replicas.replica(of: 0)
            let page = try replica.changes(ChangeQuery(since: 0, limit: 10))
            let requests = page.changes.map {
                RevisionRequest(
                    documentID: $0.documentID,
                    revision: $0.revision,
                    known: [],
                    maxHistory: 20,
                    peer: .client
                )
            }
            #expect(try replica.blobLength(blob.digest, of: nil) == nil)
            // Of a document that it may read it may ask for the blob without having been sent it.
            #expect(try replica.blobLength(blob.digest, of: "secret") == (isGiven ? 7 : nil))
            _ = try replica.revisions(requests)
            #expect(try replica.blobLength(blob.digest, of: nil) == (isGiven ? 7 : nil))
            // A peer that pushes a document that refers to it has to send it.
            #expect(try replica.holdBlobs([blob.digest], of: "new") == (isGiven ? [] : [blob.digest]))
            replica.releaseBlobs([blob.digest])
            let proof = try replica.proveBlob(blob.digest, nonce: [1])
            #expect((proof != nil) == isGiven)
        }
    }
}
