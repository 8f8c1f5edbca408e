import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// What becomes of marks when a peer loses its last commits (docs/decisions/0006-lost-commits.md).
@Suite struct PowerLossTests: PairSuite {
    let pair: DatabasePair

    init() throws { pair = try DatabasePair() }

    @discardableResult
    private func run(
        _ type: ReplicatorType = .pushAndPull,
        documentIDs: [String]? = nil,
        reset: Bool = false,
        resetMarks: Bool = false
    ) async -> Replicator.Status {
        let replicator = replicator(type) { $0.documentIDs = documentIDs }
        replicator.start(reset: reset, resetMarks: resetMarks)
        return await replicator.waitUntilStopped()
    }

    /// The peer goes back to what it held before a closure ran.
    private func losingPower(_ body: () async throws -> Void) async throws {
        let durable = try far.store.snapshot()
        try await body()
        try far.store.restore(durable)
    }

    @Test func `a document that the peer lost with its last commits is pushed again`() async throws {
        try here.save(Document(id: "first"))
        #expect(await run().error == nil)
        try await losingPower {
            try here.save(Document(id: "second"))
            #expect(await run().progress.documents == 1)
        }
        #expect(try there.document(id: "second") == nil)
        #expect(await run().error == nil)
        #expect(try there.document(id: "second") != nil)
    }

    @Test func `what another configuration pushed and the peer lost is pushed again`() async throws {
        try here.save(Document(id: "first"))
        #expect(await run().error == nil)
        try await losingPower {
            try here.save(Document(id: "second"))
            #expect(await run(.push, documentIDs: ["second"]).progress.documents == 1)
        }
        // The checkpoint of this configuration is the same on both sides, and says nothing of the other's push.
        #expect(await run().error == nil)
        #expect(try there.document(id: "second") != nil)
    }

    @Test func `what was pulled and the peer lost is given back`() async throws {
        try there.save(Document(id: "first"))
        #expect(await run().error == nil)
        try await losingPower {
            try there.save(Document(id: "second"))
            #expect(await run(documentIDs: ["second"]).progress.documents == 1)
        }
        #expect(await run().error == nil)
        #expect(try there.document(id: "second") != nil)
    }

    /// Both sides edited the same document; the peer's own edit came after it had lost ours.
    @Test func `an edit that the peer lost is not given up for what the peer made instead`() async throws {
        var mine = Document(id: "d", ["n": 1])
        try here.save(&mine)
        #expect(await run().error == nil)
        try await losingPower {
            for number in 2...4 {
                mine["n"] = JSONValue(number)
                try here.save(&mine)
            }
            #expect(await run(.push, documentIDs: ["d"]).progress.documents == 1)
        }
        var theirs = try #require(try there.document(id: "d"))
        theirs["n"] = 20
        try there.save(&theirs)
        #expect(await run().error == nil)
        // Three edits stand against one.
        #expect(try here.document(id: "d")?["n"] == 4)
        #expect(try there.document(id: "d")?["n"] == 4)
    }

    /// A connection of another configuration marked the document.
    @Test func `what no checkpoint covers is pending, since the next run offers it again`() async throws {
        try here.save(Document(id: "first"))
        #expect(await run().error == nil)
        let replicator = Replicator(
            ReplicatorConfiguration(collections: [here], target: DatabaseEndpoint(database: far))
        )
        #expect(try replicator.pendingDocumentIds(collection: here).isEmpty)
        try await losingPower {
            try here.save(Document(id: "second"))
            #expect(await run(.push, documentIDs: ["second"]).progress.documents == 1)
        }
        // What another configuration pushed is at the peer, as far as anybody here knows.
        #expect(try replicator.syncState(of: "second", collection: here) == .upToDate)
        // As if its connection had broken before the checkpoint.
        let collection = try #require(near.store.collection(.default))
        try near.store.write { try $0.checkpointTables.doubtMarks(of: 1, in: collection) }
        #expect(try replicator.pendingDocumentIds(collection: here) == ["second"])
        #expect(try replicator.isDocumentPending("second", collection: here))
        #expect(try replicator.syncState(of: "second", collection: here) == .pending)
        #expect(try replicator.syncState(of: "first", collection: here) == .upToDate)
        #expect(await run().error == nil)
        #expect(try there.document(id: "second") != nil)
        #expect(try replicator.pendingDocumentIds(collection: here).isEmpty)
        #expect(try replicator.syncState(of: "second", collection: here) == .upToDate)
    }

    // MARK: Resolvers

    /// One session with a hub, as far as the database sees it.
    private func session(_ marks: MarkTrust = MarkTrust()) throws -> (CollectionReplica, CollectionHandle) {
        let collection = try #require(near.store.collection(.default))
        var rules = CollectionRules()
        rules.asksResolver = true
        let replicas = DatabaseReplicas(
            store: try near.store,
            collections: [collection],
            checkpointIDs: ["cp"],
            remote: 1,
            rules: [rules],
            nowMilliseconds: { 0 }
        )
        let replica = replicas.replica(of: 0)
        _ = try replica.checkpoint()
        replica.believeMarks(marks)
        return (replica, collection)
    }

    private var doubts: MarkTrust {
        var trust = MarkTrust()
        trust.leavesOutMarked = false
        return trust
    }

    private func offered(_ replica: CollectionReplica) throws -> [String] {
        var query = ChangeQuery(since: 0, limit: 100)
        query.isForPush = true
        return try replica.changes(query).changes.map(\.documentID)
    }

    /// A document made here that a hub has another revision of, and that waits for a resolver.
    private func makeConflict() throws -> RevisionID {
        try here.save(Document(id: "d", ["by": "us"]))
        let theirs = try #require(RevisionID("1-ff"))
        let (replica, _) = try session()
        let incoming = IncomingRevision(
            documentID: "d",
            history: [theirs],
            isDeleted: false,
            body: JSONText(canonical: ["by": "them"]),
            sender: .hub
        )
        #expect(try replica.insert([incoming]) == [.conflict])
        return theirs
    }

    private func resolve(_ verdict: ConflictVerdict) throws {
        let collection = try #require(near.store.collection(.default))
        let resolution = ConflictResolution(
            store: try near.store,
            collection: collection,
            documentID: "d",
            peer: .hub
        )
        let conflict = try #require(try resolution.next())
        #expect(try resolution.store(verdict, of: conflict))
    }

    @Test func `what a resolver took from a hub is offered to it where the hub may have lost it`() throws {
        _ = try makeConflict()
        // In doubt from here on: the hub lost power.
        let (replica, _) = try session(doubts)
        try resolve(.remote)
        #expect(try offered(replica) == ["d"])
    }

    @Test func `a session that passes over a conflict does not vouch for what the hub had`() throws {
        _ = try makeConflict()
        let (replica, _) = try session(doubts)
        #expect(try offered(replica).isEmpty)
        try resolve(.remote)
        // The checkpoint of the session before covers all marks.
        let (later, _) = try session()
        #expect(try offered(later) == ["d"])
    }

    @Test func `a copy for a hub is sent without anything being written, and says what it is a copy of`()
        throws
    {
        let theirs = try makeConflict()
        try resolve(.local)
        let (replica, _) = try session()
        let ours = try near.store.readRows { view in
            let collection = try #require(near.store.collection(.default))
            return try #require(try view.record("d", in: collection)).revision
        }
        let before = try near.store.durableWriteCount
        let request = RevisionRequest(
            documentID: "d",
            revision: ours,
            known: [.revision(theirs)],
            maxHistory: 20,
            wantsDelta: false,
            peer: .hub
        )
        guard case .found(let content)? = try replica.revisions([request]).first else {
            Issue.record("the document was not read")
            return
        }
        #expect(content.copy?.parent == theirs)
        #expect(CopyName.isCopy(content.revision, over: theirs, of: "d", sha1: Hashing.sha1))
        #expect(CopyName(content.revision)?.isOf(ours) == true)
        #expect(try near.store.durableWriteCount == before)
    }

    @Test func `what a session marked itself it does not offer, although it doubts older marks`() throws {
        let theirs = try makeConflict()
        let (replica, _) = try session(doubts)
        let known = SyncedRevision(documentID: "d", revision: theirs, sequence: nil)
        try replica.markSynced([known])
        try resolve(.remote)
        #expect(try offered(replica).isEmpty)
    }

    // MARK: Reset

    @Test func `a reset sends nothing that the peer is known to have; a reset of the marks does`()
        async throws
    {
        for number in 0..<10 { try here.save(Document(id: "d\(number)")) }
        #expect(await run().progress.documents == 10)
        try there.purge(id: "d3")
        #expect(await run(.push, reset: true).progress.documents == 0)
        #expect(try there.document(id: "d3") == nil)
        #expect(await run(.push, resetMarks: true).progress.documents == 1)
        #expect(try there.document(id: "d3") != nil)
    }
}
