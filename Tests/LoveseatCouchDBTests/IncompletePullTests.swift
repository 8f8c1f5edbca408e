import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Remotes that list what they cannot give: nothing is passed over in silence, and nothing holds up the rest.
struct IncompletePullTests {
    /// What happens to a document in one run.
    private enum Trouble: CaseIterable {
        /// 404, as from a machine of a cluster that lags behind.
        case missing
        case invalidUTF8, controlCharacter, loneSurrogate, notANumber, tooDeep, oneLevelTooDeep, noRevision
        /// It has another leaf, whose ID cannot be one.
        case badLeaf
        case unauthorized, forbidden, failing
        /// Another document is sent in its place.
        case mistaken
    }

    /// A database whose documents have troubles, or not, as a test decides before each run.
    private final class Source: Sendable {
        struct State {
            var troubles: [String: Trouble] = [:]
            /// Documents that `_changes` names no more.
            var gone: Set<String> = []
            var hasBulkGet = true
        }

        let state = Mutex(State())
        let names: [String]

        init(_ count: Int) { names = (0..<count).map { "d\($0)" } }

        private func text(_ name: String, _ trouble: Trouble?) -> [UInt8] {
            let value: [UInt8]
            switch trouble {
            case .invalidUTF8: value = [0x22, 0xE9, 0x22]
            case .controlCharacter: value = [0x22, 0x01, 0x22]
            case .loneSurrogate: value = Array(#""\ud83d""#.utf8)
            case .notANumber: value = Array("NaN".utf8)
            case .tooDeep:
                value = [UInt8](repeating: 0x5B, count: 3_000) + [UInt8](repeating: 0x5D, count: 3_000)
            case .oneLevelTooDeep:
                value = [UInt8](repeating: 0x5B, count: 128) + [UInt8](repeating: 0x5D, count: 128)
            default: value = Array("1".utf8)
            }
            let id = trouble == .mistaken ? "other" : name
            let revision =
                trouble == .noRevision ? "" : #""_rev":"1-aa","_revisions":{"start":1,"ids":["aa"]},"#
            return Array(#"{"_id":"\#(id)",\#(revision)"n":"#.utf8)
                + value
                + Array("}".utf8)
        }

        func answer(_ request: RawServer.Request) -> RawServer.Reply? {
            let state = state.withLock { $0 }
            let path = String(request.target.prefix { $0 != "?" })
            func reply(_ status: Int, _ body: [UInt8]) -> RawServer.Reply {
                .bytes(
                    Array(
                        "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\nContent-Length: \(body.count)\r\n\r\n"
                            .utf8
                    ) + body
                )
            }
            switch path {
            case "/":
                return RawServer.json(
                    200,
                    #"{"couchdb":"Welcome","uuid":"0123456789abcdef0123456789abcdef"}"#
                )
            case "/db/": return RawServer.json(200, #"{"db_name":"db"}"#)
            case "/db/_changes":
                // All rows come first, and after that none; a list of documents is answered for each.
                let isListed = request.method == "POST"
                if request.target.contains("since"), !isListed {
                    return RawServer.json(200, #"{"results":[],"last_seq":"9"}"#)
                }
                let asked = (try? JSONElement(parsing: request.body))?["doc_ids"]?.items.compactMap(\.string)
                let rows = names.filter { !state.gone.contains($0) && asked?.contains($0) ?? true }.map {
                    let other = state.troubles[$0] == .badLeaf ? #",{"rev":"no revision"}"# : ""
                    return #"{"seq":"9","id":"\#($0)","changes":[{"rev":"1-aa"}\#(other)]}"#
                }
                return RawServer.json(200, #"{"results":[\#(rows.joined(separator: ","))],"last_seq":"9"}"#)
            case "/db/_bulk_get":
                guard state.hasBulkGet, let asked = try? JSONElement(parsing: request.body) else {
                    return RawServer.json(405, "{}")
                }
                var body = Array(#"{"results":["#.utf8)
                for (index, item) in (asked["docs"]?.items.compactMap { $0["id"]?.string } ?? []).enumerated()
                {
                    if index > 0 { body.append(UInt8(ascii: ",")) }
                    body += Array(#"{"id":"\#(item)","docs":["#.utf8)
                    switch state.troubles[item] {
                    case .missing:
                        body += Array(#"{"error":{"id":"x","rev":"1-aa","error":"not_found"}}"#.utf8)
                    case .unauthorized, .forbidden, .failing:
                        body += Array(#"{"error":{"id":"x","rev":"1-aa","error":"forbidden"}}"#.utf8)
                    case let trouble: body += Array(#"{"ok":"#.utf8) + text(item, trouble) + Array("}".utf8)
                    }
                    body += Array("]}".utf8)
                }
                return reply(200, body + Array("]}".utf8))
            case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
                return RawServer.json(201, #"{"ok":true,"rev":"0-1"}"#)
            case _ where path.hasPrefix("/db/d"):
                let name = String(path.dropFirst(4))
                switch state.troubles[name] {
                case .missing: return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
                case .unauthorized: return RawServer.json(401, #"{"error":"unauthorized","reason":"no"}"#)
                case .forbidden: return RawServer.json(403, #"{"error":"forbidden","reason":"no"}"#)
                case .failing: return RawServer.json(500, #"{"error":"unknown_error","reason":"boom"}"#)
                case let trouble: return reply(200, text(name, trouble))
                }
            default: return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            }
        }
    }

    @Test(arguments: [true, false])
    func `each revision that is listed arrives, is reported in every run, or is listed no more`(
        _ hasBulkGet: Bool
    )
        async throws
    {
        for seed in PropertySeeds.of("PULL", 4) {
            var random = SeededGenerator(seed: seed)
            let source = Source(30)
            // An answer 500 is tried again for seconds, which is another test's.
            let kinds = Trouble.allCases.filter { $0 != .failing }
            for name in source.names where Int.random(in: 0..<4, using: &random) == 0 {
                source.state.withLock { $0.troubles[name] = kinds.randomElement(using: &random) }
            }
            source.state.withLock { $0.hasBulkGet = hasBulkGet }
            let server = try RawServer { source.answer($0) }
            let active = try ActiveSide()
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
            for run in 0..<4 {
                let (troubles, gone) = source.state.withLock { ($0.troubles, $0.gone) }
                let pass = try await active.replicate(url, .pull)
                #expect(pass.status.error == nil, "seed \(seed), run \(run)")
                let expected = Set(troubles.keys).subtracting(gone)
                #expect(Set(pass.failed.keys) == expected, "seed \(seed), run \(run)")
                let here = try source.names.filter { try !active.leaves($0).isEmpty }
                let stored = source.names.filter { troubles[$0] == nil || troubles[$0] == .badLeaf }
                #expect(here == stored, "seed \(seed), run \(run)")
                let replicator = Replicator(try active.configuration(CouchDBEndpoint(url: url), .pull))
                for name in expected.sorted() {
                    let state = try replicator.syncState(of: name, collection: active.collection)
                    guard case .notPulled = state else {
                        Issue.record(
                            "seed \(seed), run \(run): \(name), \(String(describing: troubles[name])): \(state)"
                        )
                        continue
                    }
                }
                // Some recover, and some are purged at the remote.
                for name in troubles.keys.sorted() where Bool.random(using: &random) {
                    source.state.withLock {
                        if Bool.random(using: &random), $0.gone.isEmpty {
                            $0.gone.insert(name)
                        } else if !$0.gone.contains(name) {
                            $0.troubles[name] = nil
                        }
                    }
                }
            }
        }
    }

    @Test func `a continuous pull asks again for what was missing`() async throws {
        let source = Source(3)
        source.state.withLock { $0.troubles["d1"] = .missing }
        let server = try RawServer { request in
            // A waiting feed is answered late enough.
            request.target.contains("longpoll") ? .silence : source.answer(request)
        }
        let active = try ActiveSide()
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        var configuration = try active.configuration(CouchDBEndpoint(url: url), .pull)
        configuration.continuous = true
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        replicator.start()
        defer { replicator.stop() }
        var seen: [String] = []
        for await batch in events {
            for document in batch.documents where document.id == "d1" {
                seen.append(document.error == nil ? "came" : "failed")
                source.state.withLock { $0.troubles = [:] }
            }
            if seen.last == "came" { break }
        }
        #expect(seen == ["failed", "came"])
    }

    @Test func `a server that allows few requests is waited for, and all documents come`() async throws {
        let source = Source(12)
        source.state.withLock { $0.hasBulkGet = false }
        let counts = Mutex((requests: 0, refused: 0))
        let server = try RawServer { request in
            let refuses = counts.withLock { counts in
                counts.requests += 1
                guard counts.requests.isMultiple(of: 7) else { return false }
                counts.refused += 1
                return true
            }
            // Some say how long, some do not.
            guard refuses else { return source.answer(request) }
            return RawServer.json(counts.withLock { $0.refused } == 1 ? 503 : 429, "{}", ["Retry-After: 0"])
        }
        let active = try ActiveSide()
        let pass = try await active.replicate(
            try #require(URL(string: "http://127.0.0.1:\(server.port)/db")),
            .pull
        )
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
        #expect(pass.pulled.count == 12)
        #expect(counts.withLock { $0.refused } > 1)
    }

    @Test
    func `a gateway is recognised, its versions are left out, and what it takes away is not stored as empty`()
        async throws
    {
        let isTaken = Mutex(false)
        let server = try RawServer { request in
            let path = String(request.target.prefix { $0 != "?" })
            let taken = isTaken.withLock { $0 }
            let revision = taken ? "2-bb" : "1-aa"
            func json(_ text: String) -> RawServer.Reply {
                RawServer.json(200, text, ["Server: Couchbase Sync Gateway/4.1 CE"])
            }
            switch path {
            case "/": return json(#"{"couchdb":"Welcome","vendor":{"name":"Couchbase Sync Gateway"}}"#)
            case "/db/": return json(#"{"db_name":"db"}"#)
            case "/db/_changes":
                let isNew = !request.target.contains("since") || (taken && request.target.contains("since=1"))
                let removed = taken ? #","removed":["a"]"# : ""
                return json(
                    isNew
                        ? #"{"results":[{"seq":\#(taken ? 2 : 1),"id":"x","changes":[{"rev":"\#(revision)"}]\#(removed)}],"last_seq":\#(taken ? 2 : 1)}"#
                        : #"{"results":[],"last_seq":\#(taken ? 2 : 1)}"#
                )
            case "/db/x":
                return json(
                    taken
                        ? #"{"_id":"x","_rev":"2-bb","_removed":true,"_revisions":{"start":2,"ids":["bb","aa"]}}"#
                        : #"{"_id":"x","_rev":"1-aa","_cv":"1@s","_vv":{},"_revisions":{"start":1,"ids":["aa"]},"n":1}"#
                )
            case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
                return RawServer.json(201, #"{"ok":true,"rev":"0-1"}"#)
            default: return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            }
        }
        for purges in [true, false] {
            isTaken.withLock { $0 = false }
            let active = try ActiveSide()
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
            var configuration = try active.configuration(CouchDBEndpoint(url: url), .pull)
            configuration.enableAutoPurge = purges
            #expect(try await active.replicate(configuration).pulled == ["x"])
            let stored = try active.collection.document(id: "x")?.properties
            #expect(stored == ["n": 1])
            isTaken.withLock { $0 = true }
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
            #expect(replicator.notice?.contains("ws://") == true)
            let kept = try active.collection.document(id: "x")?.properties
            #expect(kept == (purges ? nil : ["n": 1]))
        }
    }

    @Test
    func `a gateway is asked for what is revoked, which is taken away, and for IDs with a percent sign`()
        async throws
    {
        let ids = ["50%", "a%2Fb", "gone", "kept"]
        let isRevoked = Mutex(false)
        let server = try RawServer { request in
            let path = String(request.target.prefix { $0 != "?" })
            func json(_ text: String) -> RawServer.Reply {
                RawServer.json(200, text, ["Server: Couchbase Sync Gateway/3.3 CE"])
            }
            switch path {
            case "/", "/db/": return json(#"{"db_name":"db"}"#)
            case "/db/_changes":
                if request.target.contains("since=4"), isRevoked.withLock({ $0 }) {
                    guard request.target.contains("revocations=true") else { return nil }
                    let rows = ["gone", "never"].map {
                        #"{"seq":"4:5","id":"\#($0)","changes":[{"rev":"1-aa"}],"revoked":true}"#
                    }
                    return json(#"{"results":[\#(rows.joined(separator: ","))],"last_seq":"5"}"#)
                }
                guard !request.target.contains("since") else {
                    return json(#"{"results":[],"last_seq":"\#(isRevoked.withLock { $0 } ? 5 : 4)"}"#)
                }
                let rows = ids.map { #"{"seq":4,"id":"\#($0)","changes":[{"rev":"1-aa"}]}"# }
                return json(#"{"results":[\#(rows.joined(separator: ","))],"last_seq":"4"}"#)
            case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
                return RawServer.json(201, #"{"ok":true,"rev":"0-1"}"#)
            case _ where path.hasPrefix("/db/") && !path.contains("_"):
                let name = path.dropFirst(4).removingPercentEncoding?.removingPercentEncoding
                guard let name, ids.contains(name) else { return json(#"{"_id":"other"}"#) }
                return json(
                    #"{"_id":"\#(name)","_rev":"1-aa","_revisions":{"start":1,"ids":["aa"]},"n":1}"#
                )
            default: return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            }
        }
        let active = try ActiveSide()
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        #expect(try await active.replicate(url, .pull).pulled == ids.sorted())
        isRevoked.withLock { $0 = true }
        let pass = try await active.replicate(url, .pull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
        #expect(pass.documents.map(\.document.id) == ["gone"])
        #expect(pass.documents.allSatisfy { $0.document.flags.contains(.accessRemoved) })
        #expect(try active.collection.document(id: "gone") == nil)
        #expect(try active.collection.count == 3)
    }

    @Test func `a client that sends what a gateway took away is refused`() async throws {
        let served = try await ServedDatabase()
        let answer = try await served.call("PUT", "/main/x", ["_removed": true])
        #expect(answer.status == 400)
        #expect(try served.database.defaultCollection().document(id: "x") == nil)
    }
}
