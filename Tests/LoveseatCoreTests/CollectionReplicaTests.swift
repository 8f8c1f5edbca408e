import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// The state that the replicas of one connection share, and the state that each has for itself.
@Suite struct CollectionReplicaTests {
    private let scratch: Scratch
    private let store: DocumentStore
    private let collections: [CollectionHandle]

    init() throws {
        scratch = try Scratch()
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs")
        let names = try ["many.a", "many.b"].map { try #require(CollectionName(path: $0)) }
        collections = try store.write { transaction in
            try names.map { try transaction.createCollection($0) }
        }
    }

    private func connect() -> DatabaseReplicas {
        DatabaseReplicas(
            store: store,
            collections: collections,
            checkpointIDs: ["cp-a", "cp-b"],
            remote: 1,
            nowMilliseconds: { 0 }
        )
    }

    @Test func `a replica counts the connections of its database, and not its collections`() {
        let first = connect().makeReplicas()
        #expect(first.map { $0.connections } == [1, 1])
        let second = connect().makeReplicas()
        #expect(first.map { $0.connections } == [2, 2])
        withExtendedLifetime(second) {}
    }

    @Test func `a blob that one collection receives is not received for another over the same connection`()
        throws
    {
        let digest = BlobDigest(sha1: [UInt8](repeating: 7, count: 20))
        let replicas = connect().makeReplicas()
        #expect(try replicas[0].beginBlob(1, digest, resumes: false) == .from(0))
        #expect(try replicas[1].beginBlob(2, digest, resumes: false) == .underWay)
        replicas[0].cancelBlob(1)
        #expect(try replicas[1].beginBlob(2, digest, resumes: false) == .from(0))
        replicas[1].cancelBlob(2)
    }

    @Test func `each collection has its own checkpoint`() throws {
        let replicas = connect().makeReplicas()
        for replica in replicas { #expect(try replica.checkpoint().body == nil) }
        let body = JSONText(canonical: ["local": 1])
        try replicas[1].saveCheckpoint(body, coversMarks: true)
        #expect(try replicas[0].checkpoint().body == nil)
        #expect(try replicas[1].checkpoint().body == body)
    }
}
