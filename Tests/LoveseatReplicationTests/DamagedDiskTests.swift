import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// What a side reports whose own disk fails while it replicates.
struct DamagedDiskTests {
    /// A disk that can be read and written until it fails.
    final class FailingDisk {
        enum Fault: CaseIterable {
            case error, endOfFile
        }

        var fault: Fault?

        /// The replicas of a database on this disk.
        func holding(_ replicas: any ReplicaSource) -> LayeredReplicas {
            LayeredReplicas(replicas) { [self] replica, _ in FailingReplica(replica, self) }
        }
    }

    private final class FailingReplica: ReplicaLayer {
        let inner: any Replica
        private let disk: FailingDisk

        init(_ inner: any Replica, _ disk: FailingDisk) { (self.inner, self.disk) = (inner, disk) }

        func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8] {
            // The first piece is still there.
            guard let fault = disk.fault, offset > 0 else {
                return try inner.readBlob(digest, offset: offset, count: count)
            }
            switch fault {
            case .error: throw LoveseatError(.ioError, "the disk cannot be read")
            case .endOfFile: return []
            }
        }

        func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError) {
            guard disk.fault == nil else { throw LoveseatError(.ioError, "the disk cannot be written") }
            try inner.markSynced(revisions)
        }
    }

    private func blobErrors(_ reports: [ReplicationReport]) -> [LoveseatError.Code] {
        reports.compactMap { if case .blob(let event) = $0 { event.error?.code } else { nil } }
    }

    @Test(arguments: FailingDisk.Fault.allCases, [true, false])
    func `a blob that cannot be read to its end is reported, with its document if that is known`(
        _ fault: FailingDisk.Fault,
        _ namesDocument: Bool
    ) throws {
        let disk = FailingDisk()
        let peer = try Conversation(passive: [], wrap: disk.holding)
        var generator = SeededGenerator(seed: 1)
        let content = generator.bytes(200_000)
        let writer = try peer.store.blobs.writer()
        try writer.write(content)
        let (digest, length) = try writer.finish()
        let blob = BlobReference(digest: digest, length: length, contentType: nil)
        try peer.store.write {
            _ = try $0.save(
                "a",
                in: peer.collection,
                body: JSONText(canonical: ["photo": blob.json]),
                isDeleted: false,
                condition: .lastWriteWins
            )
        }
        try peer.line.connect(.mobile3)
        try peer.say("getCollections", [:], #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#)
        var request: MessageProperties = ["collection": "0", "digest": digest.text, "docID": "a"]
        let whole = try peer.say("getAttachment", request)
        #expect(try whole?.get().body == content)
        #expect(blobErrors(peer.reports).isEmpty)
        disk.fault = fault
        if !namesDocument { request["docID"] = nil }
        let part = try peer.say("getAttachment", request)
        #expect(try part?.get().body.count ?? .max < content.count)
        let code: LoveseatError.Code = fault == .error ? .ioError : .corruptData
        #expect(blobErrors(peer.reports) == [code])
        #expect(peer.documentErrors.mapValues(\.code) == (namesDocument ? ["a": code] : [:]))
        #expect(peer.line.failure == nil)
    }

    private func continuations(_ effects: [ReplicationEffect]) -> [ReplyContinuation] {
        effects.compactMap { if case .send(_, then: let continuation) = $0 { continuation } else { nil } }
    }

    @Test func `what cannot be written down any more when a connection breaks is reported`() throws {
        let (scratch, store, collection) = try Conversation.database(["a", "b"])
        defer { withExtendedLifetime(scratch) {} }
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        let disk = FailingDisk()
        let replicas = DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: remote,
            nowMilliseconds: { 0 }
        )
        let binding = ActivePlan.Binding(name: .default, checkpointID: "cp-x")
        let plan = ActivePlan(collections: [binding], pushes: true, pulls: false, isContinuous: false)
        var session = ReplicationSession(active: plan, replicas: disk.holding(replicas))
        _ = session.connected(.mobile3)
        let offers = session.answered(.getCheckpoint(collection: 0), .failure(ReplyError("HTTP", 404)))
        let list = try #require(continuations(offers).first)
        let revisions = continuations(session.answered(list, .success(Message(body: Array("[]".utf8)))))
        #expect(revisions.count == 2)
        _ = session.answered(try #require(revisions.first), .success(Message()))
        disk.fault = .error
        let errors: [LoveseatError.Code] = session.disconnected().compactMap {
            if case .report(.checkpointNotSaved(let error)) = $0 { error.code } else { nil }
        }
        #expect(errors == [.ioError])
    }
}
