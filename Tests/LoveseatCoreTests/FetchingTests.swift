import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// Documents that a replicator fetches by their IDs over another connection.
struct FetchingTests {
    @Test func `the pieces of a blob that another connection brings are reported`() async throws {
        let scratch = try Scratch()
        let database = try scratch.database("near")
        let here = try database.defaultCollection()
        let gateway = ScriptedGateway()
        let digest = "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="
        let body = #"{"b":{"@type":"blob","digest":"\#(digest)","length":5,"content_type":"text/plain"}}"#
        gateway.edit { script in
            script.feed = [
                .init(1, "a", "1-aa", body: body, properties: ["norev": "503"]), .init(2, "c", "1-cc"),
            ]
            script.blobs = [digest: Array("hello".utf8)]
        }
        func transfers() async -> [BlobTransfer] {
            var configuration = ReplicatorConfiguration(collections: [here], target: gateway)
            configuration.replicatorType = .pull
            let replicator = Replicator(configuration)
            let feed = replicator.blobTransfers
            replicator.start()
            var transfers: [BlobTransfer] = []
            for await transfer in feed { transfers.append(transfer) }
            return transfers
        }
        #expect(await transfers().isEmpty)
        // The feed is past the document now, so that only another connection brings it.
        gateway.edit { $0.feed[0].properties = [:] }
        let pieces = await transfers()
        #expect(try here.document(id: "a") != nil)
        #expect(pieces.last?.documentID == "a")
        #expect(pieces.last?.transferred == 5)
    }

    @Test func `a report keeps its error when it moves to another connection's collection`() {
        let error = LoveseatError(.notFound, "no such blob")
        let blob = BlobEvent(
            collection: 0,
            documentID: "a",
            digest: BlobDigest(sha1: [UInt8](repeating: 7, count: 20)),
            isPush: true,
            transferred: 3,
            length: 5,
            error: error
        )
        var moved = blob
        moved.collection = 2
        #expect(moved.error == error)
        #expect(ReplicationReport.blob(blob).moved(to: 2) == .blob(moved))
        #expect(ReplicationReport.failure(error).moved(to: 2) == nil)
    }
}
