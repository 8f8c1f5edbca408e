import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatReplication
import LoveseatTesting
import NIOConcurrencyHelpers
import Testing

/// Which credentials go to which server: cookies that were kept, redirects, and what a server says about trying again
/// (replication.md §18.4–18.5, gateway.md 53).
struct CookieTests {
    private let scratch: Scratch
    private let near: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
    }

    private func configuration(_ url: String) throws -> ReplicatorConfiguration {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: URLEndpoint(try #require(URL(string: url)))
        )
        configuration.maxAttempts = 1
        return configuration
    }

    @discardableResult
    private func sync(
        _ server: ScriptedServer,
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) async throws -> LoveseatError? {
        var configuration = try configuration("ws://127.0.0.1:\(server.port)/db")
        change(&configuration)
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    /// The `Cookie` header of each request; nil for none.
    private func cookies(_ server: ScriptedServer) -> [String?] {
        server.requests.withLockedValue { requests in
            requests.map { request in
                request.split(separator: "\r\n").first { $0.hasPrefix("Cookie: ") }
                    .map { String($0.dropFirst("Cookie: ".count)) }
            }
        }
    }

    /// A gateway that renews a session with every answer.
    private func renewing() async throws -> ScriptedServer {
        try await ScriptedServer { _, _ in
            "HTTP/1.1 503 Busy\r\nSet-Cookie: SyncGatewaySession=renewed; Path=/db; Max-Age=3600\r\nContent-Length: 0\r\n\r\n"
        }
    }

    @Test func `the session that the app gives takes the place of one that was kept`() async throws {
        let server = try await renewing()
        for user in ["ana", "bob", "bob"] {
            try await sync(server) { $0.authenticator = SessionAuthenticator(sessionID: user) }
        }
        try await sync(server) { $0.headers = ["Cookie": "SyncGatewaySession=carl; other=1"] }
        #expect(
            cookies(server) == [
                "SyncGatewaySession=ana", "SyncGatewaySession=bob", "SyncGatewaySession=bob",
                "SyncGatewaySession=carl; other=1",
            ]
        )
    }

    @Test func `a kept cookie is for the user that it came with, and for nobody without credentials`()
        async throws
    {
        let server = try await renewing()
        func run(_ user: String?) async throws {
            try await sync(server) {
                $0.authenticator = user.map { BasicAuthenticator(username: $0, password: "pw") }
            }
        }
        for user in ["ana", "ana", nil, "bob", "ana", nil] { try await run(user) }
        let renewed = "SyncGatewaySession=renewed"
        #expect(cookies(server) == [nil, renewed, nil, nil, renewed, nil])
    }

    @Test func `a 401 makes the kept cookies of its database forgotten`() async throws {
        let server = try await ScriptedServer { number, _ in
            number == 1
                ? "HTTP/1.1 503 Busy\r\nSet-Cookie: SyncGatewaySession=old; Path=/db; Max-Age=3600\r\nContent-Length: 0\r\n\r\n"
                : "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
        }
        for _ in 0..<3 {
            try await sync(server) { $0.authenticator = BasicAuthenticator(username: "ana", password: "pw") }
        }
        #expect(cookies(server) == [nil, "SyncGatewaySession=old", nil])
    }

    @Test func `a 401 names everything that a gateway may mean by it`() async throws {
        let server = try await ScriptedServer { _, _ in "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" }
        let message = try await sync(server)?.message
        #expect(message?.contains("no such database, wrong user or password, or a disabled user") == true)
    }

    // MARK: Redirects

    @Test
    func `another port gets no password, no cookie and no header of the app, and neither does what follows`()
        async throws
    {
        let first = NIOLockedValueBox(0)
        let last = try await ScriptedServer { _, _ in
            "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:\(first.withLockedValue { $0 })/again\r\nContent-Length: 0\r\n\r\n"
        }
        let server = try await ScriptedServer { number, _ in
            // Once within the server, where everything is kept, then to another one.
            let location = number == 1 ? "/step" : "http://127.0.0.1:\(last.port)/db"
            return number > 2
                ? "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
                : "HTTP/1.1 302 X\r\nSet-Cookie: kept=1; Path=/; Max-Age=60\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"
        }
        first.withLockedValue { $0 = server.port }
        try await sync(server) {
            $0.authenticator = BasicAuthenticator(username: "ana", password: "pw")
            $0.headers = ["X-Mine": "secret", "Cookie": "own=1"]
        }
        func secrets(_ request: String) -> [Bool] {
            ["Authorization", "Cookie", "X-Mine"].map { request.contains("\r\n\($0): ") }
        }
        let requests = server.requests.withLockedValue { $0 }
        try #require(requests.count == 3)
        #expect(secrets(requests[0]) == [true, true, true])
        #expect(secrets(requests[1]) == [true, true, true])
        #expect(secrets(requests[2]) == [false, false, false])
        let others = last.requests.withLockedValue { $0 }
        #expect(others.map(secrets) == [[false, false, false]])
    }

    @Test func `a redirect from TLS to the clear is not followed`() async throws {
        let clear = try await ScriptedServer { _, _ in nil }
        let identity = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "kiosk"],
            label: nil
        )
        let server = try await HostileTLSServer(
            identity,
            .answers { [port = clear.port] _ in
                "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:\(port)/db\r\nContent-Length: 0\r\n\r\n"
            }
        )
        var configuration = try configuration("wss://127.0.0.1:\(server.port)/db")
        configuration.acceptOnlySelfSignedServerCertificate = true
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "pw")
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error?.code == .invalidRedirect)
        #expect(clear.requests.withLockedValue { $0.isEmpty })
    }

    // MARK: Trying again

    @Test func `a server's Retry-After is honoured up to the longest wait`() async throws {
        let server = try await ScriptedServer { _, _ in
            "HTTP/1.1 503 Busy\r\nRetry-After: 70\r\nContent-Length: 0\r\n\r\n"
        }
        let error = try #require(try await sync(server))
        #expect(error.retryAfter == 70)
        var policy = RetryPolicy(isContinuous: true, maxWait: 100)
        #expect(policy.wait(after: error) == 70)
        #expect(policy.wait(after: LoveseatError(.init(10_503), "")) == 4)
        var impatient = RetryPolicy(isContinuous: true, maxWait: 10)
        #expect(impatient.wait(after: error) == 10)
        #expect(CookieDate.delay("Thu, 01 Jan 1970 00:01:00 GMT", now: 50) == 10)
        #expect(CookieDate.delay("Thu, 01 Jan 1970 00:01:00 GMT", now: 500) == 0)
        #expect(CookieDate.delay("soon", now: 50) == nil)
    }

    @Test
    func `waits are spread by a fifth up to the maximum, so that many clients do not come back at once`() {
        var error = LoveseatError(.init(10_503), "")
        let policy = RetryPolicy(isContinuous: true, maxWait: 11)
        #expect(policy.spread(11, after: error, random: -1) == 8.8)
        #expect(policy.spread(11, after: error, random: 1) == 11)
        #expect(policy.spread(5, after: error, random: -1) == 4)
        #expect(policy.spread(5, after: error, random: 0) == 5)
        #expect(policy.spread(5, after: error, random: 1) == 6)
        error.retryAfter = 11
        #expect(policy.spread(11, after: error, random: -1) == 11)
        error.retryAfter = 5
        #expect(policy.spread(5, after: error, random: -1) == 6)
    }

    @Test(arguments: ["HTTP/1.1 101 Yes\r\nConnection: Upgr", "HTTP/1.1 101", "H"])
    func `a connection that ends inside the answer has broken, and is tried again`(_ answer: String)
        async throws
    {
        let server = try await ScriptedServer { _, _ in answer }
        #expect(try await sync(server)?.code == .webSocketAbnormalClose)
        // The same, said by a proxy.
        let proxy = ProxyConfiguration(host: "127.0.0.1", port: UInt16(server.port))
        #expect(try await sync(server) { $0.proxy = proxy }?.code == .webSocketAbnormalClose)
    }
}
