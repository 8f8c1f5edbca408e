import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Remotes that lie, break and fail.
struct HostileRemoteTests {
    private let active: ActiveSide

    init() throws { active = try ActiveSide() }

    private func url(_ server: RawServer) throws -> URL {
        try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
    }

    private static let oneChange =
        #"{"results":[{"seq":"1-a","id":"x","changes":[{"rev":"1-a"}]}],"last_seq":"1-a"}"#

    /// One change, and then none.
    private static func change(_ request: RawServer.Request) -> RawServer.Reply? {
        guard request.target.hasPrefix("/db/_changes"), !request.target.contains("since") else { return nil }
        return RawServer.json(200, oneChange)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<ht",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\":",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}", "nonsense\r\n\r\n", "",
        "HTTP/1.1 200 OK\r\n\(String(repeating: "X-Long: \(String(repeating: "y", count: 1_000))\r\n", count: 200))\r\n",
    ]) func `an answer that is not one ends the attempt`(_ text: String) async throws {
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                guard request.target.hasPrefix("/db/_changes") else { return nil }
                return .last(Array(text.utf8))
            }
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error != nil)
        #expect(pass.documents.isEmpty)
    }

    @Test func `answers that are cut now and then are asked for again`() async throws {
        let count = Mutex(0)
        let server = try RawServer { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number % 2 == 0 else {
                return .last(Array("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"results\":[".utf8))
            }
            return RawServer.emptyDatabase(request)
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error == nil)
    }

    @Test func `an answer without an end is not held in memory`() async throws {
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                guard request.target.hasPrefix("/db/_changes") else { return nil }
                return .endless(
                    Array("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"results\":[{\"id\":\"".utf8),
                    then: [UInt8](repeating: 0x61, count: 64 << 10)
                )
            }
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error?.code == .remoteError)
    }

    @Test func `a feed of rows without an end is read in parts`() async throws {
        let row = Array(#"{"seq":1,"id":"_user/x","changes":[]},"#.utf8)
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                guard request.target.hasPrefix("/db/_changes"), !request.target.contains("since") else {
                    return nil
                }
                return .endless(
                    Array("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"results\":[".utf8),
                    then: Array([[UInt8]](repeating: row, count: 500).joined())
                )
            }
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error == nil)
    }

    @Test func `a remote that never answers can be stopped`() async throws {
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { $0.target.hasPrefix("/db/_changes") ? .silence : nil }
        }
        let replicator = Replicator(try active.configuration(CouchDBEndpoint(url: url(server)), .pull))
        replicator.start()
        try await eventually { server.requests.contains { $0.target.hasPrefix("/db/_changes") } }
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [ReplicatorType.pull, .pushAndPull])
    func `a remote that goes away is noticed while both sides wait`(_ type: ReplicatorType) async throws {
        let served = try await ServedDatabase()
        let port = try #require(served.listener.port)
        let endpoint = CouchDBEndpoint(url: try #require(URL(string: "http://127.0.0.1:\(port)/main")))
        var configuration = try active.configuration(endpoint, type)
        configuration.continuous = true
        configuration.maxAttempts = 0
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        var isStopped = false
        for await status in statuses {
            if status.activity == .idle, !isStopped {
                isStopped = true
                await served.listener.stop()
            }
            if status.activity == .offline { break }
        }
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    @Test func `a damaged document is reported, and the others come`() async throws {
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                if let reply = Self.change(request) { return reply }
                guard request.target.hasPrefix("/db/x") else { return nil }
                let parts =
                    "--b\r\nContent-Type: application/json\r\n\r\n"
                    + #"{"_id":"x","_rev":"1-a","_attachments":{"a":{"follows":true,"length":10,"revpos":1}}}"#
                    + "\r\n--b\r\n\r\nshort\r\n--b--"
                return .bytes(
                    Array(
                        "HTTP/1.1 200 OK\r\nContent-Type: multipart/related; boundary=b\r\nContent-Length: \(parts.utf8.count)\r\n\r\n\(parts)"
                            .utf8
                    )
                )
            }
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed["x"]?.code == .remoteError)
        #expect(try active.leaves("x").isEmpty)
    }

    @Test(arguments: [400, 403, 406, 410, 413, 414])
    func `a document that the remote does not give is reported, and the others come`(_ status: Int)
        async throws
    {
        let changes =
            #"{"results":[{"seq":"1-a","id":"x","changes":[{"rev":"1-a"}]},{"seq":"2-a","id":"y","changes":[{"rev":"1-b"}]}],"last_seq":"2-a"}"#
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                if request.target.hasPrefix("/db/_changes"), !request.target.contains("since") {
                    return RawServer.json(200, changes)
                }
                if request.target.hasPrefix("/db/x") {
                    return RawServer.json(status, #"{"error":"no","reason":"no"}"#)
                }
                guard request.target.hasPrefix("/db/y") else { return nil }
                return RawServer.json(200, #"{"_id":"y","_rev":"1-b","_revisions":{"start":1,"ids":["b"]}}"#)
            }
        }
        let pass = try await active.replicate(url(server), .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed["x"]?.code == .init(10_000 + status))
        #expect(try active.leaves("y") == ["1-b"])
    }

    @Test func `a locked account and too many requests are failures of the remote`() async throws {
        try active.save("a", [:])
        for (status, text) in [
            (
                403,
                #"{"error":"forbidden","reason":"Account is temporarily locked due to multiple authentication failures"}"#
            ),
            (429, #"{"error":"too_many_requests","reason":"slow down"}"#),
        ] {
            let server = try RawServer { request in
                RawServer.emptyDatabase(request) { request in
                    guard request.target.hasPrefix("/db/_revs_diff") else { return nil }
                    return RawServer.json(status, text, ["Retry-After: 7000"])
                }
            }
            let pass = try await active.replicate(url(server), .push)
            #expect(pass.status.error?.code == .init(10_429))
            #expect(pass.failed.isEmpty)
        }
    }

    @Test func `a batch that is too large is divided, and a document that is too large is refused`()
        async throws
    {
        for index in 0..<8 { try active.save("d\(index)", ["n": JSONValue(index)]) }
        try active.save("large", ["text": .string(String(repeating: "x", count: 2_000))])
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                switch request.target {
                case "/db/_revs_diff":
                    guard let asked = try? JSONElement(parsing: request.body) else { return nil }
                    let missing = asked.members.map {
                        "\"\($0.key)\":{\"missing\":\(String(decoding: $0.value.bytes, as: UTF8.self))}"
                    }
                    return RawServer.json(200, "{\(missing.joined(separator: ","))}")
                case "/db/_bulk_docs":
                    return request.body.count > 700
                        ? RawServer.json(
                            413,
                            #"{"error":"too_large","reason":"the request entity is too large"}"#
                        )
                        : RawServer.json(201, "[]")
                default: return nil
                }
            }
        }
        let pass = try await active.replicate(url(server), .push)
        #expect(pass.status.error == nil)
        #expect(pass.pushed == (0..<8).map { "d\($0)" })
        #expect(pass.failed["large"]?.code == .init(10_413))
    }

    @Test func `a document of which the remote does not say whether it lacks it is reported, and sent later`()
        async throws
    {
        for id in ["a", "b", "c"] { try active.save(id, [:]) }
        let isOdd = Mutex(true)
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                switch request.target {
                case "/db/_revs_diff":
                    guard let asked = try? JSONElement(parsing: request.body) else { return nil }
                    let rows = asked.members.map { id, revisions in
                        let lacked = String(decoding: revisions.bytes, as: UTF8.self)
                        return id == "b" && isOdd.withLock { $0 }
                            ? #""b":{"missed":\#(lacked)}"# : #""\#(id)":{"missing":\#(lacked)}"#
                    }
                    return RawServer.json(200, "{\(rows.joined(separator: ","))}")
                case "/db/_bulk_docs": return RawServer.json(201, "[]")
                default: return nil
                }
            }
        }
        let first = try await active.replicate(url(server), .push)
        #expect(first.status.error == nil)
        #expect(first.pushed == ["a", "c"])
        #expect(first.failed.mapValues(\.code) == ["b": .remoteError])
        isOdd.withLock { $0 = false }
        let second = try await active.replicate(url(server), .push)
        #expect(second.pushed.contains("b"))
        #expect(second.failed.isEmpty)
    }

    @Test(arguments: [1_000, 100_000])
    func `the reason of an error is told, however long the answer is`(_ length: Int) async throws {
        let server = try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                guard request.target.hasPrefix("/db/_changes") else { return nil }
                let rest = String(repeating: "x", count: length)
                return RawServer.json(403, #"{"error":"forbidden","reason":"only for members \#(rest)"}"#)
            }
        }
        let error = try #require(try await active.replicate(url(server), .pull).status.error)
        #expect(error.code == .httpForbidden)
        #expect(error.message.contains("only for members"))
        #expect(error.message.count < 1_000)
    }

    @Test func `a digest is computed when the remote asks for one`() async throws {
        let server = try RawServer { request in
            let given = request.headers["authorization"] ?? ""
            guard given.hasPrefix("Digest "), given.contains("username=\"ana\""),
                given.contains("uri=\"\(request.target)\""), given.contains("nc=000000")
            else {
                return RawServer.json(
                    401,
                    "",
                    [#"WWW-Authenticate: Digest realm="TouchDB", qop="auth", nonce="abc""#]
                )
            }
            return RawServer.emptyDatabase(request)
        }
        var configuration = try active.configuration(CouchDBEndpoint(url: url(server)), .pull)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "x")
        #expect(try await active.replicate(configuration).status.error == nil)
    }

    @Test func `a session is asked for where Basic is not taken, and renewed`() async throws {
        let server = try RawServer { request in
            if request.target == "/_session" {
                let isRight = String(decoding: request.body, as: UTF8.self) == "name=ana&password=a%2Bb"
                return isRight
                    ? RawServer.json(200, "{\"ok\":true}", ["Set-Cookie: AuthSession=abc; Path=/; HttpOnly"])
                    : RawServer.json(401, "{}")
            }
            guard request.headers["cookie"] == "AuthSession=abc", request.headers["authorization"] == nil
            else {
                return RawServer.json(401, #"{"error":"unauthorized","reason":"no"}"#)
            }
            return RawServer.emptyDatabase(request)
        }
        var configuration = try active.configuration(CouchDBEndpoint(url: url(server)), .pull)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "a+b")
        #expect(try await active.replicate(configuration).status.error == nil)
    }

    @Test func `credentials do not follow a redirect to another origin`() async throws {
        let other = try RawServer { request in RawServer.emptyDatabase(request) }
        let server = try RawServer { request in
            RawServer.json(307, "", ["Location: http://127.0.0.1:\(other.port)\(request.target)"])
        }
        var configuration = try active.configuration(CouchDBEndpoint(url: url(server)), .pull)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "x")
        configuration.headers = ["X-Secret": "1"]
        #expect(try await active.replicate(configuration).status.error == nil)
        #expect(!other.requests.isEmpty)
        #expect(
            other.requests.allSatisfy { $0.headers["authorization"] == nil && $0.headers["x-secret"] == nil }
        )
        #expect(server.requests.allSatisfy { $0.headers["authorization"] != nil })
    }

    @Test(arguments: ["ws://h/db", "http://h", "http://u:p@h/db", "http://h:0/db", "http://h/db?x=1"])
    func `a URL that cannot be used is refused before anything is sent`(_ text: String) async throws {
        let url = try #require(URL(string: text))
        #expect(try await active.replicate(url, .pull).status.error?.code == .invalidURL)
    }
}
