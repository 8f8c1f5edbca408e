import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// What a passive session does at its limits, with small ones.
struct SessionLimitTests {
    private let store: DocumentStore
    private let collection: CollectionHandle
    private let scratch: Scratch

    init() throws { (scratch, store, collection) = try Conversation.database(["a", "b"]) }

    private var replicas: DatabaseReplicas { DatabaseReplicas(store: store, nowMilliseconds: { 0 }) }

    /// A session that has begun, and of which the peer has asked for the default collection by request 1.
    private func session(_ change: (inout ReplicationTuning) -> Void) -> ReplicationSession {
        var tuning = ReplicationTuning()
        change(&tuning)
        let plan = PassivePlan(collections: [.default])
        var session = ReplicationSession(passive: plan, replicas: replicas, tuning: tuning)
        _ = session.connected(.mobile3)
        let body = #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#
        let answers = session.received(
            Message(["Profile": "getCollections"], body: Array(body.utf8)),
            number: 1
        )
        #expect(answers.count == 1)
        return session
    }

    private func save(_ id: String, _ body: JSONValue) throws {
        let text = JSONText(canonical: body)
        try store.write {
            _ = try $0.save(id, in: collection, body: text, isDeleted: false, condition: .lastWriteWins)
        }
    }

    /// The codes with which requests are refused.
    private func refusals(_ effects: [ReplicationEffect]) -> [UInt64: Int] {
        var codes: [UInt64: Int] = [:]
        for case .replyError(let error, to: let number, _) in effects { codes[number] = error.code }
        return codes
    }

    @Test func `a peer may have so many blobs waiting, and no more`() throws {
        let writer = try store.blobs.writer()
        try writer.write([1, 2, 3])
        let digest = try writer.finish().digest
        try save("c", ["blob": BlobReference(digest: digest, length: 3, contentType: nil).json])
        var session = session { ($0.blobsSending, $0.blobsWaiting) = (1, 2) }
        let request = Message(
            ["Profile": "getAttachment", "collection": "0", "digest": digest.text, "docID": "c"]
        )
        // The first one is being sent, and two wait.
        let effects = (2...6).flatMap { session.received(request, number: $0) }
        #expect(effects.contains { if case .beginReply(_, to: 2, _) = $0 { true } else { false } })
        #expect(refusals(effects) == [5: 503, 6: 503])
    }

    @Test func `a peer may keep so many checkpoints, and no more`() {
        var session = session { $0.checkpointsSaved = 2 }
        let effects = ["x", "y", "z", "y"].enumerated().flatMap { index, id in
            session.received(
                Message(
                    ["Profile": "setCheckpoint", "collection": "0", "client": id],
                    body: Array("{}".utf8)
                ),
                number: UInt64(2 + index)
            )
        }
        // The second save of y names no revision.
        #expect(refusals(effects) == [4: 403, 5: 409])
    }

    @Test(arguments: [0, 1])
    func `revisions that fill the room exactly are sent at once`(_ missing: Int) throws {
        // The first one has more than half of the bytes.
        try save("b", ["text": .string(String(repeating: "x", count: 1_000))])
        try save("a", ["a": 2])
        let page = try #require(try activeReplicas().makeReplicas().first)
            .changes(ChangeQuery(since: 0, limit: 10))
        #expect(page.changes.count == 2)
        let bytes = page.changes.reduce(0) { $0 + $1.storedBytes }
        var session = session { $0.transmittingBytes = bytes - missing }
        let lists = session.received(Message(["Profile": "subChanges", "collection": "0"]), number: 2)
        let list = try #require(continuations(lists).first)
        let revisions = session.answered(list, .success(Message(body: Array("[[],[]]".utf8))))
        let first = continuations(revisions).filter(isRevision)
        #expect(first.count == 2 - missing)
        let rest = continuations(session.sent(try #require(first.first))).filter(isRevision)
        #expect(rest.count == missing)
    }

    private func activeReplicas() throws -> DatabaseReplicas {
        DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: try store.write { try $0.checkpointTables.remoteNumber("puppet") },
            nowMilliseconds: { 0 }
        )
    }

    private func continuations(_ effects: [ReplicationEffect]) -> [ReplyContinuation] {
        effects.compactMap { if case .send(_, then: let continuation) = $0 { continuation } else { nil } }
    }

    private func isRevision(_ continuation: ReplyContinuation) -> Bool {
        if case .revision = continuation { true } else { false }
    }

    @Test(arguments: ["getCheckpoint", "subChanges", "noProfile"])
    func `a peer that knows the default collection only is refused once where there is none for it`(
        _ profile: String
    ) throws {
        let other = try #require(CollectionName(path: "other"))
        var session = ReplicationSession(passive: PassivePlan(collections: [other]), replicas: replicas)
        _ = session.connected(.mobile3)
        let effects = session.received(Message(["Profile": profile, "client": "cp-x"]), number: 1)
        #expect(effects.count == 1)
        #expect(refusals(effects) == [1: 400])
    }
}
