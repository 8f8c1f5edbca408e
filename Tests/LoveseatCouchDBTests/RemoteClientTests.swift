import AsyncHTTPClient
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import NIOHTTP1
import Synchronization
import Testing

/// The client that sends requests to a remote.
struct RemoteClientTests {
    // MARK: URLs

    @Test(arguments: [
        ("http://h/db", "h", 80, "/db", "", "db"), ("https://h/db/", "h", 443, "/db", "", "db"),
        ("http://h:5984//a//b/db//", "h", 5_984, "/a/b/db", "/a/b", "db"),
        ("HTTP://[::1]:5984/db", "::1", 5_984, "/db", "", "db"),
        ("https://h/a%2Fb", "h", 443, "/a%2Fb", "", "a%2Fb"),
        ("http://h:1/db#x", "h", 1, "/db", "", "db"),
    ])
    func `a URL names a server and a database`(
        _ text: String,
        _ host: String,
        _ port: Int,
        _ path: String,
        _ rootPath: String,
        _ name: String
    ) throws {
        let address = try RemoteAddress(try #require(URL(string: text)))
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.isSecure == text.lowercased().hasPrefix("https"))
        #expect(address.path == path)
        #expect(address.rootPath == rootPath)
        #expect(address.databaseName == name)
    }

    @Test(arguments: [
        "ws://h/db", "ftp://h/db", "h/db", "http://h", "http://h/", "http://h///", "http://h:0/db",
        "http://h/db?x=1", "http://ana:se-cret@h/db",
        "http://ana@h/db",
    ])
    func `a URL that cannot be used is refused, and its password is not repeated`(_ text: String) throws {
        let url = try #require(URL(string: text))
        let error = #expect(throws: LoveseatError.self) { try RemoteAddress(url) }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.contains("se-cret") == false)
    }

    // MARK: Redirects

    private static func options() -> ConnectionOptions {
        var options = ConnectionOptions()
        options.authenticator = BasicAuthenticator(username: "ana", password: "x")
        options.headers = ["X-Secret": "1"]
        return options
    }

    private static func redirect(_ location: String, _ status: Int = 307) -> HTTPClientResponse {
        .json(status, "", ["Location": location])
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect on the same server is followed with the credentials`(_ status: Int) async throws {
        let remote = try ScriptedRemote(Self.options()) { request, _ in
            request.url.hasSuffix("/new/db/") ? .json(200) : Self.redirect("/new/db/", status)
        }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 200)
        #expect(remote.transport.requests.map(\.url) == ["http://h:5984/db/", "http://h:5984/new/db/"])
        #expect(remote.transport.requests.map(\.secrets.count) == [2, 2])
    }

    @Test(arguments: ["http://other:5984/db/", "http://h:5985/db/", "http://h.other:5984/db/"])
    func `credentials are sent to no other origin, and not to the first one after it`(_ location: String)
        async throws
    {
        let remote = try ScriptedRemote(Self.options()) { request, number in
            switch number {
            case 0: Self.redirect(location)
            case 1: Self.redirect("http://h:5984/back/")
            default: .json(401, "{}", ["WWW-Authenticate": #"Digest realm="r", qop="auth", nonce="n""#])
            }
        }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 401)
        #expect(
            remote.transport.requests.map(\.url) == ["http://h:5984/db/", location, "http://h:5984/back/"]
        )
        #expect(remote.transport.requests.map(\.secrets.isEmpty) == [false, true, true])
    }

    @Test(arguments: ["ftp://h/db", "http://", "http://h:0/db", "db", "//h/db", "javascript:x", ""])
    func `a redirect to what is not an HTTP URL is an error`(_ location: String) async throws {
        let remote = try ScriptedRemote { _, _ in Self.redirect(location) }
        let error = await #expect(throws: LoveseatError.self) {
            try await remote.run { try await $0.client.send(.information, to: "/db") }
        }
        #expect(error?.code == .invalidRedirect)
    }

    @Test func `redirects without an end are an error`() async throws {
        let remote = try ScriptedRemote { _, number in Self.redirect("/\(number)") }
        let error = await #expect(throws: LoveseatError.self) {
            try await remote.run { try await $0.client.send(.information, to: "/db") }
        }
        #expect(error?.code == .tooManyRedirects)
        #expect(remote.transport.requests.count == 11)
    }

    @Test func `a redirect without a place is an answer`() async throws {
        let remote = try ScriptedRemote { _, _ in .json(302) }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 302)
    }

    @Test func `a redirect to a server that is not allowed is an error`() async throws {
        let remote = try ScriptedRemote(allowsURL: { $0.host() == "h" }) { request, number in
            number == 0 ? Self.redirect("/x") : Self.redirect("http://inside/db")
        }
        let error = await #expect(throws: LoveseatError.self) {
            try await remote.run { try await $0.client.send(.information, to: "/db") }
        }
        #expect(error?.code == .invalidRedirect)
        #expect(remote.transport.requests.count == 2)
    }

    // MARK: What is tried again

    private func attempts(_ error: any Error, isShutDown: Bool = false) async throws -> Int {
        let remote = try ScriptedRemote { _, _ in .json(200) }
        if isShutDown { await remote.client.shutDown() }
        let count = Mutex(0)
        do {
            try await remote.client.retrying { () async throws -> Void in
                count.withLock { $0 += 1 }
                throw error
            }
        } catch {}
        await remote.client.shutDown()
        return count.withLock { $0 }
    }

    @Test(arguments: [
        (408, 5), (429, 5), (500, 5), (502, 5), (503, 5), (504, 5), (400, 1), (401, 1), (403, 1), (404, 1),
        (409, 1),
        (412, 1), (413, 1), (417, 1), (501, 1), (507, 1),
    ])
    func `an answer that may pass is asked for again`(_ status: Int, _ count: Int) async throws {
        #expect(try await attempts(RemoteFailure(status: status, body: [])) == count)
        #expect(try await attempts(RemoteFailure(status: status, body: [], retryAfter: 1)) == count)
        // The replicator waits for so long.
        #expect(try await attempts(RemoteFailure(status: status, body: [], retryAfter: 60)) == 1)
        #expect(try await attempts(RemoteFailure(status: status, body: []), isShutDown: true) == 1)
    }

    @Test(arguments: [
        (LoveseatError.Code.webSocketAbnormalClose, 5), (.remoteError, 1), (.timeout, 1), (.corruptData, 1),
        (.invalidURL, 1),
    ])
    func `an error that may pass is tried again`(_ code: LoveseatError.Code, _ count: Int) async throws {
        #expect(try await attempts(LoveseatError(code, "")) == count)
        #expect(try await attempts(CancellationError()) == 1)
        let full = Array(#"{"error":"enospc","reason":""}"#.utf8)
        #expect(try await attempts(RemoteFailure(status: 500, body: full)) == 1)
    }

    // MARK: Too many requests

    @Test(arguments: [429, 503]) func `a short time that the server names is waited for`(_ status: Int)
        async throws
    {
        let remote = try ScriptedRemote { _, number in
            number < 2 ? .json(status, "{}", ["Retry-After": "2"]) : .json(200)
        }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 200)
        #expect(remote.client.requestsAtOnce == 2)
    }

    @Test(arguments: [(429, 4), (503, 8)])
    func `a refusal without a time is an answer at once`(_ status: Int, _ atOnce: Int) async throws {
        let remote = try ScriptedRemote { _, _ in .json(status, #"{"reason":"slow down"}"#) }
        let failure = try await remote.run { remote in
            try await remote.client.send(.information, to: "/db").failure()
        }
        #expect(failure.status == status)
        #expect(failure.reason == "slow down")
        #expect(failure.retryAfter == nil)
        #expect(remote.transport.requests.count == 1)
        #expect(remote.client.requestsAtOnce == atOnce)
    }

    @Test(arguments: ["31", "7000"])
    func `a long time is an error that names it`(_ seconds: String) async throws {
        let remote = try ScriptedRemote { _, _ in .json(429, "{}", ["Retry-After": "\(seconds)"]) }
        let failure = try await remote.run { remote in
            try await remote.client.send(.information, to: "/db").failure()
        }
        #expect((failure.retryAfter ?? 0) > 30)
        #expect(failure.failure(of: "x").retryAfter == failure.retryAfter)
        #expect(remote.transport.requests.count == 1)
    }

    // MARK: Authentication

    @Test func `a client without credentials does not answer a challenge`() async throws {
        let remote = try ScriptedRemote { _, _ in
            .json(401, "{}", ["WWW-Authenticate": #"Digest realm="r", qop="auth", nonce="n""#])
        }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 401)
        #expect(remote.transport.requests.count == 1)
        #expect(remote.transport.requests.allSatisfy { $0.secrets.isEmpty })
    }

    @Test(arguments: [nil, #"Digest realm="r", qop="auth", nonce="n""#])
    func `a wrong password is not tried for ever`(_ challenge: String?) async throws {
        let remote = try ScriptedRemote(Self.options()) { _, _ in
            .json(401, "{}", challenge.map { ["WWW-Authenticate": $0] } ?? [:])
        }
        let response = try await remote.run { try await $0.client.send(.information, to: "/db") }
        #expect(response.status == 401)
        #expect(remote.transport.requests.count <= 3)
    }

    @Test func `a path is encoded once more for a gateway`() async throws {
        let remote = try ScriptedRemote { _, _ in
            .json(200, "{}", ["Server": "Couchbase Sync Gateway/3.2 CE"])
        }
        try await remote.run { (remote) async throws -> Void in
            _ = try await remote.client.send(.information, to: "/db")
            #expect(remote.client.isGateway)
            _ = try await remote.client.send(.checkpoint("50%"), to: "/db")
        }
        #expect(remote.transport.requests.last?.url == "http://h:5984/db/_local/50%2525")
    }
}
