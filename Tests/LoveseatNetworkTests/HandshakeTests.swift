import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// What the client makes of a server's answer (blip.md §1.4), and both of silence.
struct HandshakeTests {
    private let scratch: Scratch
    private let near: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
    }

    private func sync(
        _ url: String,
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) async throws -> LoveseatError? {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(URL(string: url)))
        )
        configuration.maxAttempts = 1
        change(&configuration)
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 11_002, "did not open a WebSocket"),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 10_503, "Service Unavailable"),
        (
            "HTTP/1.1 403 No\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nnot you\n", 10_403,
            "not you"
        ),
        (
            "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"reason\":\"sad\"}",
            10_500,
            "sad"
        ),
        ("HTTP/1.1 302 Found\r\nLocation: ftp://x/y\r\nContent-Length: 0\r\n\r\n", 5_012, "ftp://x/y"),
        ("nonsense\r\n\r\n", 11_002, "not HTTP"),
        (
            "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: wrong\r\n\r\n",
            11_002,
            "handshake"
        ),
    ])
    func `each answer becomes its error`(_ answer: String, _ code: Int, _ text: String) async throws {
        let server = try await ScriptedServer { _, _ in answer }
        let error = try #require(try await sync("ws://127.0.0.1:\(server.port)/db"))
        #expect(error.code.value == code)
        #expect(error.message.contains(text))
    }

    @Test func `a server that hangs up without an answer is an abnormal close`() async throws {
        let server = try await ScriptedServer { _, _ in nil }
        #expect(try await sync("ws://127.0.0.1:\(server.port)/db")?.code == .webSocketAbnormalClose)
    }

    @Test func `redirects are followed ten times, and the password goes to the first host only`() async throws
    {
        let far = try scratch.database("far")
        try far.defaultCollection().save(Document(id: "d"))
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let port = try #require(listener.port)
        let server = try await ScriptedServer { number, _ in
            let target = number < 3 ? "/step\(number)" : "http://127.0.0.1:\(port)/far/_blipsync"
            return "HTTP/1.1 307 Elsewhere\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n"
        }
        #expect(try await sync("ws://127.0.0.1:\(server.port)/db") == nil)
        #expect(try near.defaultCollection().count == 1)
        #expect(
            server.requests.withLockedValue { $0.map { $0.prefix { $0 != "\r\n" } } } == [
                "GET /db/_blipsync HTTP/1.1", "GET /step1 HTTP/1.1", "GET /step2 HTTP/1.1",
            ]
        )

        let round = try await ScriptedServer { _, _ in
            "HTTP/1.1 301 Round\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
        }
        #expect(try await sync("ws://127.0.0.1:\(round.port)/db")?.code == .tooManyRedirects)
        #expect(round.requests.withLockedValue { $0.count } == 11)

        let last = try await ScriptedServer { _, _ in nil }
        let first = try await ScriptedServer { _, _ in
            "HTTP/1.1 302 X\r\nLocation: http://localhost:\(last.port)/db\r\nContent-Length: 0\r\n\r\n"
        }
        _ = try await sync("ws://127.0.0.1:\(first.port)/db") {
            $0.authenticator = BasicAuthenticator(username: "ana", password: "pw")
        }
        #expect(first.requests.withLockedValue { $0[0].contains("Authorization: Basic YW5hOnB3") })
        #expect(last.requests.withLockedValue { $0.count == 1 && !$0[0].contains("Authorization") })
    }

    /// What makes a WebSocket of the request's connection.
    private static func welcome(_ request: String) -> String {
        let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(
            19
        )
        return """
            HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\
            Sec-WebSocket-Accept: \(UpgradeHeaders.accept(key: String(key ?? "")))\r\n\r\n
            """
    }

    @Test func `what a server says in one breath with its answer is for the WebSocket`() async throws {
        // A ping must not be a fragment. Telling the server so once trapped in the middle of HTTP.
        let server = try await ScriptedServer(hangsUp: false) { _, request in
            Self.welcome(request) + "\u{09}\u{00}"
        }
        let error = try #require(try await sync("ws://127.0.0.1:\(server.port)/db"))
        #expect(error.code == .webSocketProtocolError)
    }

    @Test func `a peer that falls silent is given up after its heartbeat`() async throws {
        let server = try await ScriptedServer(hangsUp: false) { _, request in Self.welcome(request) }
        #expect(try await sync("ws://127.0.0.1:\(server.port)/db") { $0.heartbeat = 0.5 }?.code == .timeout)
    }

    @Test func `a client that says nothing is dropped after its deadline`() async throws {
        var configuration = URLEndpointListenerConfiguration(collections: [try near.defaultCollection()])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.handshakeSeconds = 0.2
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let port = try #require(listener.port)
        #expect(try await RawClient(port: port).exchange("") == "")
        #expect(try await RawClient(port: port).exchange("GET /near/_blipsync HTTP/1.1\r\n") == "")
        await listener.stop()
    }
}
