import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// What a listener refuses, and what it reports of transfers.
struct ListenerLimitTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private func listener(_ change: (inout URLEndpointListenerConfiguration) -> Void) async throws
        -> URLEndpointListener
    {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 600
        change(&configuration)
        return URLEndpointListener(configuration)
    }

    private func push(to listener: URLEndpointListener) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(listener.urls?.first))
        )
        configuration.replicatorType = .push
        return Replicator(configuration)
    }

    private static let upgrade = """
        GET /far/_blipsync HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n
        """

    @Test func `a peer too many is refused until another one has gone`() async throws {
        let listener = try await listener { $0.maximumConnections = 1 }
        try await listener.start()
        let port = try #require(listener.port)
        var configuration = try push(to: listener).config
        configuration.continuous = true
        let first = Replicator(configuration)
        first.start()
        for await status in first.statuses where status.activity == .idle { break }
        let refused = try await RawClient(port: port).exchange(Self.upgrade)
        #expect(refused.hasPrefix("HTTP/1.1 503 "))
        #expect(refused.contains("Retry-After: 5\r\n"))
        first.stop()
        await first.waitUntilStopped()
        var answer = ""
        // The listener may notice a little later that the connection is closed.
        for _ in 0..<1_000 where !answer.hasPrefix("HTTP/1.1 101 ") {
            answer = try await RawClient(port: port).exchange(Self.upgrade) { $0.hasSuffix("\r\n\r\n") }
        }
        #expect(answer.hasPrefix("HTTP/1.1 101 "))
        await listener.stop()
        let error = await #expect(throws: LoveseatError.self) {
            try await self.listener { $0.maximumConnections = 0 }.start()
        }
        #expect(error?.code == .invalidParameter)
    }

    @Test func `the app refuses a revision with its own error before blobs are sent`() async throws {
        let listener = try await listener {
            $0.incomingFilter = { _, document, flags in
                if flags.contains(.deleted) { return LoveseatError(.httpForbidden, "no deletions") }
                let length = document.blob("photo")?.length ?? 0
                return length > 1_000 ? LoveseatError(.init(10_413), "too large") : nil
            }
        }
        try await listener.start()
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        for (id, size) in [("small", 1_000), ("large", 1_000_000)] {
            let blob = try near.saveBlob([UInt8](repeating: 7, count: size), contentType: "image/png")
            try here.save(Document(id: id, ["photo": blob.json]))
        }
        let replicator = try push(to: listener)
        let (documents, transfers) = (replicator.documentReplications, replicator.blobTransfers)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        var errors: [String: LoveseatError.Code] = [:]
        for await batch in documents {
            for document in batch.documents { errors[document.id] = document.error?.code }
        }
        #expect(errors == ["large": .init(10_413)])
        for await transfer in transfers { #expect(transfer.documentID == "small") }
        #expect(try await there.documentIDs() == ["small"])
        try here.delete(id: "small")
        let deleting = try push(to: listener)
        let deletions = deleting.documentReplications
        deleting.start()
        await deleting.waitUntilStopped()
        for await batch in deletions {
            for document in batch.documents where document.id == "small" {
                #expect(document.error?.code == .httpForbidden)
            }
        }
        #expect(try await there.documentIDs() == ["small"])
        await listener.stop()
    }

    @Test func `both sides report how much of a blob was transferred`() async throws {
        let listener = try await listener { _ in }
        let received = listener.blobTransfers
        try await listener.start()
        let length = 3_000_000
        let blob = try near.saveBlob([UInt8](repeating: 7, count: length), contentType: "image/png")
        try near.defaultCollection().save(Document(id: "photo", ["photo": blob.json]))
        let replicator = try push(to: listener)
        let sent = replicator.blobTransfers
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        await listener.stop()
        for (feed, isPush) in [(sent, true), (received, false)] {
            var transferred: [UInt64] = []
            for await transfer in feed {
                #expect(transfer.isPush == isPush)
                #expect(transfer.documentID == "photo")
                #expect(transfer.digest == blob.digest)
                #expect(transfer.length == UInt64(length))
                transferred.append(transfer.transferred)
            }
            #expect(transferred.count > 2)
            #expect(transferred == transferred.sorted())
            #expect(transferred.last == UInt64(length))
        }
    }
}
