import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatPlatform
import LoveseatTesting
import Testing

/// Both wires on one port.
struct SharedPortTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private func listeners(_ change: (inout URLEndpointListenerConfiguration) -> Void = { _ in }) throws -> (
        URLEndpointListener, CouchDBListener
    ) {
        let couch = CouchDBListener(CouchDBListenerConfiguration(database: far))
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        configuration.handshakeSeconds = 600
        configuration.sharesPortWith = couch
        change(&configuration)
        return (URLEndpointListener(configuration), couch)
    }

    private func replicate(
        _ type: ReplicatorType,
        _ endpoint: any Endpoint,
        password: String? = nil,
        pin: TLSIdentity? = nil
    ) async throws -> LoveseatError? {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: endpoint
        )
        configuration.replicatorType = type
        configuration.maxAttempts = 1
        configuration.pinnedServerCertificate = pin?.certs.first
        if let password {
            configuration.authenticator = BasicAuthenticator(username: "ana", password: password)
        }
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    @Test func `peers of both wires replicate over one port, with one identity and one password`()
        async throws
    {
        let identity = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "far"],
            label: nil
        )
        let (listener, couch) = try listeners {
            $0.disableTLS = false
            $0.tlsIdentity = identity
            $0.authenticator = ListenerPasswordAuthenticator {
                $0 == "ana" && ListenerPasswordAuthenticator.isEqual($1, "secret")
            }
        }
        try await listener.start()
        #expect(couch.port == listener.port)
        #expect(couch.tlsIdentity?.certs == identity.certs)
        let blip = URLEndpoint(try #require(listener.urls?.first))
        let url = try #require(couch.urls?.first)
        #expect(url.scheme == "https")
        #expect(url.port == listener.port.map(Int.init))
        let http = CouchDBEndpoint(url: url.appending(path: "far"))
        for (endpoint, id) in [(blip as any Endpoint, "over blip"), (http, "over http")] {
            try near.defaultCollection().save(Document(id: id, [:]))
            let refused = try await replicate(.push, endpoint, password: "wrong", pin: identity)
            #expect(refused?.code == .httpAuthRequired)
            let error = try await replicate(.push, endpoint, password: "secret", pin: identity)
            #expect(error == nil)
        }
        #expect(try await far.defaultCollection().documentIDs() == ["over blip", "over http"])
        await listener.stop()
    }

    @Test func `IDs that are only composed in another way are those of different documents on both wires`()
        async throws
    {
        let (listener, couch) = try listeners()
        try await listener.start()
        let blip = URLEndpoint(try #require(listener.urls?.first))
        let http = CouchDBEndpoint(url: try #require(couch.urls?.first).appending(path: "far"))
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        let spellings = ["\u{C5}", "\u{212B}", "A\u{30A}"]
        for (endpoint, name) in [(blip as any Endpoint, "blip"), (http, "http")] {
            for spelling in spellings {
                try here.save(Document(id: "\(name) \(spelling)"))
                try there.save(Document(id: "\(name) far \(spelling)"))
            }
            #expect(try await replicate(.push, endpoint) == nil)
            #expect(try await replicate(.pull, endpoint) == nil)
        }
        for collection in [here, there] {
            #expect(collection.count == 12)
            for name in ["blip", "http", "blip far", "http far"] {
                for spelling in spellings {
                    #expect(try collection.document(id: "\(name) \(spelling)") != nil)
                }
            }
        }
        await listener.stop()
    }

    @Test func `both wires start and stop together, as often as one likes`() async throws {
        let (listener, couch) = try listeners()
        for round in 0..<3 {
            try await listener.start()
            let client = RawClient(port: try #require(couch.port))
            let answer = try await offPool {
                try client.send("PUT", "/far/d\(round)", body: Array("{}".utf8))
            }
            #expect(answer.status == 201)
            let blip = URLEndpoint(try #require(listener.urls?.first))
            #expect(try await replicate(.pull, blip) == nil)
            await listener.stop()
            #expect(couch.port == nil)
            #expect(couch.urls == nil)
            #expect(couch.connectionCount == 0)
        }
        #expect(try await near.defaultCollection().documentIDs() == ["d0", "d1", "d2"])
    }

    @Test func `one wire can end while the other one goes on`() async throws {
        let (listener, couch) = try listeners()
        try await listener.start()
        let client = RawClient(port: try #require(couch.port))
        await couch.stop()
        #expect(try await offPool { try client.exchange(Array("GET / HTTP/1.1\r\n\r\n".utf8)) } == [])
        #expect(try await replicate(.push, URLEndpoint(try #require(listener.urls?.first))) == nil)
        await listener.stop()
    }

    @Test func `a listener that has a port, or cannot share one, is refused`() async throws {
        let (listener, couch) = try listeners()
        var configuration = couch.config
        (configuration.disableTLS, configuration.networkInterface) = (true, "127.0.0.1")
        let own = CouchDBListener(configuration)
        try await own.start()
        for sharing in [own as any PortSharingListener, Nothing()] {
            let (other, _) = try listeners { $0.sharesPortWith = sharing }
            let error = await #expect(throws: LoveseatError.self) { try await other.start() }
            #expect(error?.code == .invalidParameter)
        }
        // Where the port cannot be opened, nothing stays open.
        let (late, guest) = try listeners { $0.port = own.port }
        let error = await #expect(throws: LoveseatError.self) { try await late.start() }
        #expect(error?.code == .init(Int(EADDRINUSE), domain: .posix))
        #expect(guest.port == nil)
        await own.stop()
        try await listener.start()
        await listener.stop()
    }

    private struct Nothing: PortSharingListener {}

    @Test func `requests may come byte by byte, and what is no request is refused`() async throws {
        let (listener, couch) = try listeners()
        try await listener.start()
        let client = RawClient(port: try #require(couch.port))
        let long = String(repeating: "x", count: 10_000)
        let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        let requests = [
            ("GET /far HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 "),
            ("GET /far/_blipsync?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 426 "),
            ("GET /other/_blipsync HTTP/1.1\r\nHost: localhost\r\n\(upgrade)\r\n", "HTTP/1.1 404 "),
            (
                "GET /far/_blipsync/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                "HTTP/1.1 404 "
            ),
            ("GET /far/\(long) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "),
            ("_blipsync\r\n\r\n", "HTTP/1.1 400 "),
        ]
        for (request, expected) in requests {
            let answer = try await offPool { try client.beginning(of: request) }
            #expect(answer.hasPrefix(expected), "\(request.prefix(60)): \(answer)")
            guard request.utf8.count < 1_000 else { continue }
            let slow = try await offPool { try client.beginning(of: request, pieces: 1) }
            #expect(slow.hasPrefix(expected), "\(request): \(slow)")
        }
        await listener.stop()
    }
}
