import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOCore
import NIOPosix
import Testing

/// A listener and what comes to its port.
struct ListenerTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private func listener(
        _ change: (inout URLEndpointListenerConfiguration) -> Void = { _ in }
    ) async throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        // A machine that is busy with other tests must not look like a silent client.
        configuration.handshakeSeconds = 600
        change(&configuration)
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        return listener
    }

    private func configuration(_ listener: URLEndpointListener) throws -> ReplicatorConfiguration {
        let url = try #require(listener.urls?.first)
        return ReplicatorConfiguration(collections: [try near.defaultCollection()], target: URLEndpoint(url))
    }

    private func sync(_ configuration: ReplicatorConfiguration) async -> Replicator.Status {
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped()
    }

    @Test func `documents and blobs cross a WebSocket both ways`() async throws {
        let listener = try await listener()
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        let content = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let blob = try far.saveBlob(content, contentType: "text/plain")
        try there.save(Document(id: "blob", ["blob": blob.json]))
        let long = JSONValue.string(String(repeating: "lorem ", count: 10_000))
        try await near.write { transaction in
            for number in 0..<2_000 {
                try transaction.save(Document(id: "here\(number)", ["n": JSONValue(number)]), in: here)
            }
            try transaction.save(Document(id: "long", ["text": long]), in: here)
        }
        let status = await sync(try configuration(listener))
        #expect(status.error == nil)
        #expect(status.progress.documents == 2_002)
        #expect(try near.blobContent(blob) == Data(content))
        #expect(try here.contents() == there.contents())
        await listener.stop()
        #expect(listener.urls == nil)
        #expect(listener.port == nil)
    }

    @Test func `a continuous replicator hears of changes, and of the listener's end`() async throws {
        let listener = try await listener()
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        var configuration = try configuration(listener)
        configuration.continuous = true
        let replicator = Replicator(configuration)
        let arrivals = try here.documentChanges(id: "news")
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        try there.save(Document(id: "news"))
        for await _ in arrivals { break }
        #expect(listener.status.connectionCount == 1)
        try await far.close()
        #expect(await replicator.waitUntilStopped().error?.code == .webSocketGoingAway)
        #expect(listener.urls == nil)
    }

    @Test func `the password decides who may connect`() async throws {
        let listener = try await listener {
            $0.authenticator = ListenerPasswordAuthenticator { user, password in
                user == "ana" && ListenerPasswordAuthenticator.isEqual(password, "s3crét:x")
            }
        }
        try far.defaultCollection().save(Document(id: "d"))
        var configuration = try configuration(listener)
        #expect(await sync(configuration).error?.code == .httpAuthRequired)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "wrong")
        #expect(await sync(configuration).error?.code == .httpAuthRequired)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "s3crét:x")
        #expect(await sync(configuration).error == nil)
        #expect(try near.defaultCollection().count == 1)
    }

    @Test func `a read-only listener is pulled from and refuses a push`() async throws {
        let listener = try await listener { $0.readOnly = true }
        try far.defaultCollection().save(Document(id: "theirs"))
        try near.defaultCollection().save(Document(id: "mine"))
        var configuration = try configuration(listener)
        configuration.replicatorType = .pull
        #expect(await sync(configuration).error == nil)
        #expect(try near.defaultCollection().count == 2)
        configuration.replicatorType = .push
        #expect(await sync(configuration).error?.code == .httpForbidden)
        #expect(try far.defaultCollection().count == 1)
    }

    @Test func `a write-only listener is pushed to and refuses a pull`() async throws {
        let listener = try await listener { $0.writeOnly = true }
        try far.defaultCollection().save(Document(id: "theirs"))
        try near.defaultCollection().save(Document(id: "mine"))
        var configuration = try configuration(listener)
        configuration.replicatorType = .push
        #expect(await sync(configuration).error == nil)
        #expect(try far.defaultCollection().count == 2)
        #expect(await sync(configuration).progress.documents == 0)
        for type in [ReplicatorType.pull, .pushAndPull] {
            configuration.replicatorType = type
            #expect(await sync(configuration).error?.code == .httpForbidden)
        }
        #expect(try near.defaultCollection().count == 1)
        await listener.stop()
        let error = await #expect(throws: LoveseatError.self) {
            _ = try await self.listener {
                $0.readOnly = true
                $0.writeOnly = true
            }
        }
        #expect(error?.code == .invalidParameter)
    }

    private static let upgrade = """
        GET /far/_blipsync HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Protocol: BLIP_3+CBMobile_9, BLIP_3+CBMobile_3\r\n\r\n
        """

    @Test func `each wrong request gets its status and an end`() async throws {
        let listener = try await listener()
        let port = try #require(listener.port)
        let cases: [(String, String)] = [
            ("GET /other/_blipsync HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("PUT /far HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("GET /far/_blipsync HTTP/1.1\r\nHost: localhost\r\n\r\n", "426"),
            ("POST /far/_blipsync HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", "426"),
            (Self.upgrade.replacingOccurrences(of: "Version: 13", with: "Version: 8"), "426"),
            (Self.upgrade.replacingOccurrences(of: "dGhlIHNhbXBsZSBub25jZQ==", with: "short"), "400"),
            (Self.upgrade.replacingOccurrences(of: "BLIP_3+CBMobile_3", with: "chat"), "400"),
            ("hello there\r\n\r\n", "400"),
            ("\u{16}\u{3}\u{1}\u{2}\u{0}", "400"),
        ]
        for (request, status) in cases {
            let answer = try await RawClient(port: port).exchange(request)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(request) gets \(answer)")
        }
        let answer = try await RawClient(port: port).exchange(Self.upgrade) { $0.hasSuffix("\r\n\r\n") }
        #expect(answer.hasPrefix("HTTP/1.1 101 "))
        #expect(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        #expect(answer.contains("BLIP_3+CBMobile_3\r\n"))
    }

    @Test func `a peer that vanishes is noticed by its heartbeat, and let go`() async throws {
        let listener = try await listener { $0.heartbeat = 0.3 }
        let port = try #require(listener.port)
        let changes = listener.peerChanges
        let client = try await RawClient(port: port)
        // It answers no ping, as one that lost its network.
        async let heard = client.exchange(Self.upgrade)
        var states: [Replicator.ActivityLevel] = []
        for await peer in changes {
            states.append(peer.status.activity)
            if peer.status.activity == .stopped { break }
        }
        #expect(states.first == .connecting)
        #expect(listener.status.connectionCount == 0)
        #expect(try await heard.contains("101"))
        let error = await #expect(throws: LoveseatError.self) {
            try await self.listener { $0.heartbeat = 0 }
        }
        #expect(error?.code == .invalidParameter)
        await listener.stop()
    }

    @Test func `several listeners serve one database while it replicates elsewhere`() async throws {
        let third = try scratch.database("third")
        try third.defaultCollection().save(Document(id: "third"))
        try near.defaultCollection().save(Document(id: "near"))
        let (one, other) = (try await listener(), try await listener { $0.readOnly = true })
        #expect(one.port != other.port)
        var configuration = ReplicatorConfiguration(
            collections: [try far.defaultCollection()],
            target: DatabaseEndpoint(database: third)
        )
        configuration.continuous = true
        let elsewhere = Replicator(configuration)
        elsewhere.start()
        for await status in elsewhere.statuses where status.activity == .idle { break }
        #expect(await sync(try self.configuration(one)).error == nil)
        var pulling = try self.configuration(other)
        pulling.replicatorType = .pull
        #expect(await sync(pulling).error == nil)
        let collection = try third.defaultCollection()
        try await eventually { try collection.document(id: "near") != nil }
        #expect(try near.defaultCollection().document(id: "third") != nil)
        // Closing the database ends all of them.
        try await far.close()
        #expect(one.port == nil)
        #expect(other.urls == nil)
        #expect(await elsewhere.waitUntilStopped().activity == .stopped)
    }

    @Test func `a stopped listener starts again on its port, and a read-only one still keeps checkpoints`()
        async throws
    {
        try far.defaultCollection().save(Document(id: "d"))
        let first = try await LastingPort.listener { port in
            try await listener {
                $0.readOnly = true
                $0.port = port
            }
        }
        let port = try #require(first.port)
        var configuration = try configuration(first)
        configuration.replicatorType = .pull
        #expect(await sync(configuration).progress.documents == 1)
        await first.stop()
        #expect(first.status.connectionCount == 0)
        #expect(first.status.activeConnectionCount == 0)
        let second = try await listener {
            $0.readOnly = true
            $0.port = port
        }
        #expect(second.port == port)
        #expect(await sync(configuration).progress.documents == 0)
        try await second.start()
        #expect(second.port == port)
        await second.stop()
    }

    @Test func `the client says which connection failed and how`() async throws {
        let collection = try near.defaultCollection()
        func error(_ url: String) async throws -> LoveseatError? {
            var configuration = ReplicatorConfiguration(
                collections: [collection],
                target: URLEndpoint(try #require(URL(string: url)))
            )
            configuration.maxAttempts = 1
            return await sync(configuration).error
        }
        #expect(try await error("http://127.0.0.1/db")?.code == .invalidURL)
        #expect(try await error("ws://127.0.0.1")?.code == .invalidURL)
        #expect(try await error("ws://ana:pw@127.0.0.1/db")?.code == .invalidURL)
        let listener = try await listener()
        let port = try #require(listener.port)
        #expect(try await error("ws://127.0.0.1:\(port)/other")?.code == .httpNotFound)
        await listener.stop()
        let refused = try await error("ws://127.0.0.1:\(port)/far")
        #expect(refused?.code == .init(Int(ECONNREFUSED), domain: .posix))
    }

    @Test func `an offline replicator tries again until the peer is there`() async throws {
        let first = try await LastingPort.listener { port in try await listener { $0.port = port } }
        let port = try #require(first.port)
        await first.stop()
        try near.defaultCollection().save(Document(id: "d"))
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(URL(string: "ws://127.0.0.1:\(port)/far")))
        )
        configuration.maxAttemptWaitTime = 1
        let replicator = Replicator(configuration)
        replicator.start()
        for await status in replicator.statuses where status.activity == .offline { break }
        let second = try await listener { $0.port = port }
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try far.defaultCollection().count == 1)
        await second.stop()
    }

    @Test func `a port that is taken and an interface that is not there are refused`() async throws {
        let first = try await listener()
        await #expect {
            _ = try await listener { $0.port = first.port }
        } throws: { ($0 as? LoveseatError)?.code == .init(Int(EADDRINUSE), domain: .posix) }
        await #expect {
            _ = try await listener { $0.networkInterface = "nowhere0" }
        } throws: { ($0 as? LoveseatError)?.code == .unknownHost }
        await first.stop()
    }

    @Test func `without an interface every address is listed, the host's own last`() async throws {
        let listener = try await listener { $0.networkInterface = nil }
        let urls = try #require(listener.urls)
        #expect(urls.contains { $0.host() == "127.0.0.1" })
        #expect(
            urls.allSatisfy {
                $0.scheme == "ws" && $0.path() == "/far" && $0.port == listener.port.map(Int.init)
            }
        )
        var configuration = try configuration(listener)
        let own = try #require(urls.last)
        configuration = ReplicatorConfiguration(
            collections: configuration.collections,
            target: URLEndpoint(own)
        )
        #expect(await sync(configuration).error == nil)
    }
}
