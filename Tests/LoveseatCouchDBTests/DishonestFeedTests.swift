import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Remotes whose lists of changes do not end, leave out changes, or list what no database can have.
struct DishonestFeedTests {
    private let active: ActiveSide

    init() throws { active = try ActiveSide() }

    /// Pulls on a clock that runs fast.
    private func pull(_ server: RawServer) async throws -> ActiveSide.Pass {
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.transport = FaultyTransport(seed: 1)
        return try await active.replicate(try active.configuration(endpoint, .pull))
    }

    /// A database whose list of changes is what a test says. `since`: the text of the query, nil if there is none.
    private func server(
        _ changes: @escaping @Sendable (_ since: String?, RawServer.Request) -> RawServer.Reply?
    ) throws -> RawServer {
        try RawServer { request in
            RawServer.emptyDatabase(request) { request in
                let query = URLComponents(string: request.target)?.queryItems ?? []
                if request.target.hasPrefix("/db/_changes") {
                    return changes(query.first { $0.name == "since" }?.value, request)
                }
                guard request.target.hasPrefix("/db/_bulk_get") else { return nil }
                let asked = (try? JSONElement(parsing: request.body))?["docs"]?.items.map(\.self)
                let results = (asked ?? []).map { item in
                    let (id, revision) = (item["id"]?.value ?? .null, item["rev"]?.value ?? .null)
                    return "{\"id\":\(id),\"docs\":[{\"ok\":{\"_id\":\(id),\"_rev\":\(revision)}}]}"
                }
                return RawServer.json(200, "{\"results\":[\(results.joined(separator: ","))]}")
            }
        }
    }

    /// A page of rows, with the text of each.
    private static func page(_ rows: [String], last: String, pending: Int? = nil) -> RawServer.Reply {
        let rest = pending.map { ",\"pending\":\($0)" } ?? ""
        return RawServer.json(
            200,
            "{\"results\":[\(rows.joined(separator: ","))],\"last_seq\":\"\(last)\"\(rest)}"
        )
    }

    @Test func `a list that repeats its rows under new sequences ends with an error`() async throws {
        let count = Mutex(0)
        let server = try server { _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let rows = (0..<3).map {
                #"{"seq":"\#(number)-\#($0)","id":"d\#((number + $0) % 7)","changes":[{"rev":"1-aa"}]}"#
            }
            return Self.page(rows, last: "\(number)-z", pending: 9)
        }
        let pass = try await pull(server)
        #expect(pass.status.error?.code == .remoteError)
        #expect(pass.status.error?.message.contains("again and again") == true)
        #expect(pass.pulled == (0..<7).map { "d\($0)" })
        #expect(count.withLock { $0 } < 150)
    }

    @Test func `the search for one document ends as well where the remote lists others for ever`()
        async throws
    {
        let count = Mutex(0)
        let server = try server { since, request in
            if since == nil, request.method == "GET" {
                // A document that cannot be fetched, which is asked for again.
                return Self.page([#"{"seq":"1-a","id":"x","changes":[{"rev":"zz"}]}"#], last: "1-a")
            }
            guard request.method == "POST" else { return Self.page([], last: "1-a") }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return Self.page(
                [#"{"seq":"\#(number)-b","id":"other","changes":[{"rev":"1-aa"}]}"#],
                last: "\(number)-b"
            )
        }
        #expect(try await pull(server).failed["x"] != nil)
        let second = try await pull(server)
        #expect(second.status.error?.code == .remoteError)
        #expect(count.withLock { $0 } < 150)
    }

    @Test func `an empty list although changes follow is asked for again, and does not move the checkpoint`()
        async throws
    {
        let isOdd = Mutex(true)
        let asked = Mutex<[String?]>([])
        let server = try server { since, _ in
            asked.withLock { $0.append(since) }
            if isOdd.withLock({ $0 }) { return Self.page([], last: "5-z", pending: 5) }
            guard since == nil else { return Self.page([], last: "5-z", pending: 0) }
            return Self.page([#"{"seq":"5-z","id":"x","changes":[{"rev":"1-aa"}]}"#], last: "5-z", pending: 0)
        }
        let pass = try await pull(server)
        #expect(pass.status.error?.code == .remoteError)
        #expect(pass.status.error?.message.contains("5 changes") == true)
        #expect(asked.withLock { $0.count } > 2)
        #expect(asked.withLock { $0.allSatisfy { $0 == nil } })
        isOdd.withLock { $0 = false }
        let second = try await pull(server)
        #expect(second.status.error == nil)
        #expect(second.pulled == ["x"])
    }

    @Test func `a change that comes while an empty list is made is pulled`() async throws {
        let count = Mutex(0)
        let server = try server { since, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { return Self.page([], last: "0-z", pending: 1) }
            guard since == nil else { return Self.page([], last: "1-z", pending: 0) }
            return Self.page([#"{"seq":"1-z","id":"x","changes":[{"rev":"1-aa"}]}"#], last: "1-z", pending: 0)
        }
        let pass = try await pull(server)
        #expect(pass.status.error == nil)
        #expect(pass.pulled == ["x"])
    }

    @Test(arguments: ["", "_foo", "_design/", "_local/x", "_"])
    func `a listed document whose ID cannot be stored is reported in each run, and the others come`(
        _ id: String
    ) async throws {
        let isListed = Mutex(true)
        let server = try server { since, request in
            let bad = #"{"seq":"1-a","id":"\#(id)","changes":[{"rev":"1-aa"}]}"#
            let rows = isListed.withLock { $0 } ? [bad] : []
            if request.method == "POST" { return Self.page(rows, last: "2-a") }
            guard since == nil else { return Self.page([], last: "2-a") }
            return Self.page(rows + [#"{"seq":"2-a","id":"y","changes":[{"rev":"1-aa"}]}"#], last: "2-a")
        }
        let first = try await pull(server)
        #expect(first.status.error == nil)
        #expect(first.pulled == ["y"])
        #expect(first.failed.mapValues(\.code) == [id: .remoteError])
        #expect(try await pull(server).failed.keys.map(\.self) == [id])
        isListed.withLock { $0 = false }
        #expect(try await pull(server).failed.isEmpty)
    }

    @Test(arguments: ["_user/ana", "_role/x"])
    func `users and roles of a gateway are passed over`(_ id: String) async throws {
        let server = try server { since, _ in
            guard since == nil else { return Self.page([], last: "2") }
            return Self.page([#"{"seq":1,"id":"\#(id)","changes":[]}"#], last: "2")
        }
        let pass = try await pull(server)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
    }

    @Test(arguments: ["zz", "0-bb", "99999999999-bb", "", String(repeating: "c", count: 5_000)])
    func `a leaf that cannot be stored is reported in each run, and its sibling comes`(_ revision: String)
        async throws
    {
        let row = #"{"seq":"1-a","id":"x","changes":[{"rev":"1-aa"},{"rev":"\#(revision)"}]}"#
        let server = try server { since, request in
            Self.page(since == nil || request.method == "POST" ? [row] : [], last: "1-a")
        }
        for _ in 0..<2 {
            let pass = try await pull(server)
            #expect(pass.status.error == nil)
            #expect(pass.failed["x"]?.code == .remoteError)
            #expect((pass.failed["x"]?.message.count ?? 0) < 300)
            #expect(try active.leaves("x") == ["1-aa"])
        }
    }

    @Test(.timeLimit(.minutes(1))) func `too many requests without a time are an error that shows soon`()
        async throws
    {
        let isBusy = Mutex(true)
        let server = try server { _, _ in
            guard isBusy.withLock({ $0 }) else { return nil }
            return RawServer.json(429, #"{"error":"too_many_requests","reason":"slow down"}"#)
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        // On the real clock.
        var configuration = try active.configuration(CouchDBEndpoint(url: url), .pull)
        configuration.maxAttempts = 2
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        for await status in statuses {
            guard status.activity == .offline else { continue }
            #expect(status.error?.code == .init(10_429))
            #expect(status.error?.message.contains("slow down") == true)
            break
        }
        isBusy.withLock { $0 = false }
        #expect(await replicator.waitUntilStopped().error == nil)
    }
}
