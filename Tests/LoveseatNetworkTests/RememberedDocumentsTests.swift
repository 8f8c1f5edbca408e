import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// The documents that a listener remembers a peer to have: of those, the peer is told that it may not read them any more, or that they are
/// deleted.
struct RememberedDocumentsTests {
    private let scratch: Scratch
    private let database: Database
    /// The documents that the peer may read and write.
    private let allowed = NIOLockedValueBox<Set<String>>([])

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("database")
    }

    private func access() -> PeerAccess {
        let allowed = allowed
        let policy = AccessPolicy { _, _, document in
            guard let document else { return .write }
            return allowed.withLockedValue { $0.contains(document.id) } ? .write : .none
        }
        return PeerAccess(peer: PeerIdentity(username: "bob"), policy: policy)
    }

    private func allow(_ ids: Set<String>) { allowed.withLockedValue { $0 = ids } }

    /// The database as a connection of the peer has it.
    private func replica() throws -> CollectionReplica {
        let replicas = DatabaseReplicas(store: try database.store, access: access(), nowMilliseconds: { 0 })
        _ = try replicas.bind([.default], checkpoints: [""])
        return replicas.replica(of: 0)
    }

    /// The documents that a device of the peer is told that it has lost, and how far it has then got in the feed.
    private func losses(since sequence: UInt64) throws -> (ids: [String], through: UInt64) {
        let replica = try replica()
        try replica.noteLosses()
        var query = ChangeQuery(since: sequence, limit: 100)
        query.tellsLosses = true
        let page = try replica.changes(query)
        return (page.changes.filter(\.takesAway).map(\.documentID), page.through)
    }

    private func push(_ id: String) throws {
        let revision = IncomingRevision(
            documentID: id,
            history: [RevisionID(generation: 1, digest: [0xAA])],
            isDeleted: false,
            body: JSONText(canonical: ["n": 1]),
            sender: .loveseat
        )
        _ = try replica().insert([revision])
    }

    private func collectionAccess() throws -> CollectionAccess {
        let handle = try database.defaultCollection().handle
        return CollectionAccess(access(), store: try database.store, collection: handle)
    }

    private func record(_ id: String) throws -> DocumentRecord {
        let handle = try database.defaultCollection().handle
        return try #require(try database.store.readRows { try $0.record(id, in: handle) })
    }

    @Test func `a peer has what it pushed, and is told when it loses that; what was refused it never had`()
        throws
    {
        try database.defaultCollection().save(Document(id: "ours"))
        allow(["theirs"])
        for id in ["theirs", "refused"] { try push(id) }
        #expect(try losses(since: 0).ids.isEmpty)
        allow([])
        #expect(try losses(since: 0).ids == ["theirs"])
    }

    @Test func `what a peer lost while a device was away, and regained, the device can lose later`() throws {
        allow(["d"])
        try push("d")
        let had = try losses(since: 0)
        #expect(had.ids.isEmpty)
        // Other devices are told.
        allow([])
        #expect(try losses(since: had.through).ids == ["d"])
        // This one still has it when the peer may read it again.
        allow(["d"])
        let again = try losses(since: had.through)
        #expect(again.ids.isEmpty)
        allow([])
        #expect(try losses(since: again.through).ids == ["d"])
    }

    @Test func `a peer that was sent a document may read its deletion, and no other peer`() async throws {
        let collection = try database.defaultCollection()
        for id in ["sent", "other"] {
            try collection.save(Document(id: id, ["n": 1]))
            let saved = try #require(try collection.document(id: id))
            if id == "sent" {
                // Twice, since each answer that has the document says so.
                for _ in 0..<2 { try await collectionAccess().grant(["sent"]) }
            }
            try collection.delete(saved)
        }
        #expect(try collectionAccess().mayRead(record("sent")))
        #expect(try !collectionAccess().mayRead(record("other")))
        try await collectionAccess().grant(["sent", "other"])
        #expect(try collectionAccess().mayRead(record("other")))
    }

    @Test func `a peer sees the branches of a document that it may read, and of no other`() throws {
        for id in ["open", "hidden"] { try database.defaultCollection().save(Document(id: id, ["n": 1])) }
        allow(["open"])
        let open = try #require(try collectionAccess().branches(of: record("open")))
        #expect(try open.leaves.map(\.id) == [record("open").revision])
        #expect(try collectionAccess().branches(of: record("hidden")) == nil)
    }
}
