import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Remotes that refuse or fail at some documents, or at all, when they are pushed.
struct RefusedPushTests {
    /// What happens to a document.
    private enum Trouble: CaseIterable {
        /// A row of the answer.
        case forbiddenRow, unauthorizedRow, failingRow, invalidRow
        /// The answer to everything that the document is a part of.
        case unauthorized, forbidden, failing, tooLarge

        var isFinal: Bool { [.forbiddenRow, .forbidden, .tooLarge].contains(self) }

        var row: String? {
            switch self {
            case .forbiddenRow: #"{"error":"forbidden","reason":"no"}"#
            case .unauthorizedRow: #"{"error":"unauthorized","reason":"no"}"#
            case .failingRow: #"{"error":"internal_error","reason":"boom"}"#
            case .invalidRow: #"{"error":"bad_request","reason":"no"}"#
            default: nil
            }
        }

        var status: Int {
            switch self {
            case .unauthorized: 401
            case .forbidden: 403
            case .failing: 500
            case .tooLarge: 413
            default: 201
            }
        }
    }

    /// A database that stores what it has no trouble with.
    private final class Target: Sendable {
        struct State {
            var troubles: [String: Trouble] = [:]
            var stored: Set<String> = []
            var checkpoints: [String: String] = [:]
            var requests = 0
        }

        let state = Mutex(State())

        func answer(_ request: RawServer.Request) -> RawServer.Reply? {
            let path = String(request.target.prefix { $0 != "?" })
            let json = try? JSONElement(parsing: request.body)
            switch path {
            case "/": return RawServer.json(200, #"{"couchdb":"Welcome"}"#)
            case "/db/": return RawServer.json(200, #"{"db_name":"db"}"#)
            case "/db/_changes": return RawServer.json(200, #"{"results":[],"last_seq":"0"}"#)
            case "/db/_revs_diff":
                let stored = state.withLock { $0.stored }
                let rows =
                    json.map { Array($0.members) }?.filter { !stored.contains($0.key) }.map {
                        #""\#($0.key)":{"missing":\#(JSONText(canonical: $0.value.value))}"#
                    } ?? []
                return RawServer.json(200, "{\(rows.joined(separator: ","))}")
            case "/db/_bulk_docs":
                let ids = json?["docs"]?.items.compactMap { $0["_id"]?.string } ?? []
                return state.withLock { state in
                    state.requests += 1
                    for id in ids {
                        guard let trouble = state.troubles[id], trouble.row == nil else { continue }
                        return RawServer.json(trouble.status, #"{"error":"x","reason":"no"}"#)
                    }
                    var rows: [String] = []
                    for id in ids {
                        if let row = state.troubles[id]?.row {
                            rows.append(#"{"id":"\#(id)",\#(row.dropFirst())"#)
                        } else {
                            state.stored.insert(id)
                        }
                    }
                    return RawServer.json(201, "[\(rows.joined(separator: ","))]")
                }
            case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
                state.withLock { $0.checkpoints[path] = String(decoding: request.body, as: UTF8.self) }
                return RawServer.json(201, #"{"ok":true,"rev":"0-1"}"#)
            case _ where path.hasPrefix("/db/_local/"):
                let kept = state.withLock { $0.checkpoints[path] }
                return kept.map { RawServer.json(200, $0) }
                    ?? RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            default: return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            }
        }
    }

    @Test
    func
        `each document arrives, or is reported, and what was not refused for good is sent again in the next run`()
        async throws
    {
        for seed in PropertySeeds.of("PUSH", 4) {
            var random = SeededGenerator(seed: seed)
            let target = Target()
            let server = try RawServer { target.answer($0) }
            let active = try ActiveSide()
            let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
            let ids = (0..<40).map { "d\($0)" }
            for id in ids { try active.save(id, ["n": 1]) }
            // An answer 500 to one document is tried again for seconds: only one history has it, once.
            let kinds = Trouble.allCases.filter { $0 != .failing }
            for id in ids where random.chance(0.2) {
                target.state.withLock { $0.troubles[id] = random.pick(kinds) }
            }
            if seed == 1 { target.state.withLock { $0.troubles["d7"] = .failing } }
            var settled: Set<String> = []
            for run in 0..<3 {
                let troubles = target.state.withLock { $0.troubles }
                let pass = try await active.replicate(url, .push)
                #expect(pass.status.error == nil, "seed \(seed), run \(run)")
                let expected = Set(troubles.keys).subtracting(settled)
                #expect(Set(pass.failed.keys) == expected, "seed \(seed), run \(run)")
                for (id, error) in pass.failed {
                    #expect(error.code.value / 1_000 == 10 || error.code == .remoteError)
                    if troubles[id]?.isFinal == true { settled.insert(id) }
                }
                let stored = target.state.withLock { $0.stored }
                #expect(stored == Set(ids).subtracting(troubles.keys).union(settled.intersection(stored)))
                // Some recover.
                for id in troubles.keys.sorted() where !settled.contains(id) {
                    if random.chance(0.5) || troubles[id] == .failing {
                        target.state.withLock { $0.troubles[id] = nil }
                    }
                }
            }
        }
    }

    @Test func `a remote that refuses all that is written is not asked for each document`() async throws {
        let target = Target()
        let server = try RawServer { target.answer($0) }
        let active = try ActiveSide()
        for number in 0..<300 {
            try active.save("d\(number)", ["n": 1])
            target.state.withLock { $0.troubles["d\(number)"] = .unauthorized }
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        let pass = try await active.replicate(url, .push)
        #expect(pass.status.error?.code == .httpAuthRequired)
        #expect(target.state.withLock { $0.requests } < 80)
    }

    @Test(arguments: [false, true])
    func `a remote that is read-only ends the run by its reason, and gets everything once it is not`(
        _ withContent: Bool
    ) async throws {
        let isReadOnly = Mutex(true)
        let requests = Mutex(0)
        let target = Target()
        let server = try RawServer { request in
            let isWrite =
                request.target.hasPrefix("/db/_bulk_docs")
                || (request.method == "PUT" && !request.target.hasPrefix("/db/_local/"))
            guard isWrite else { return target.answer(request) }
            requests.withLock { $0 += 1 }
            guard isReadOnly.withLock({ $0 }) else {
                return request.method == "PUT" ? RawServer.json(201, "{}") : target.answer(request)
            }
            return RawServer.json(403, #"{"error":"forbidden","reason":"this listener is read-only"}"#)
        }
        let active = try ActiveSide()
        for number in 0..<5 {
            var document = try Document(id: "d\(number)", json: Array("{}".utf8))
            if withContent {
                document["blob"] = try active.database.saveBlob(
                    Array("content \(number)".utf8),
                    contentType: "text/plain"
                ).json
            }
            try active.collection.save(&document)
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        let pass = try await active.replicate(url, .push)
        #expect(pass.status.error?.code == .httpForbidden)
        #expect(pass.status.error?.message.contains("this listener is read-only") == true)
        #expect(pass.failed.isEmpty)
        #expect(requests.withLock { $0 } < 10)
        isReadOnly.withLock { $0 = false }
        let second = try await active.replicate(url, .push)
        #expect(second.status.error == nil)
        #expect(second.pushed == (0..<5).map { "d\($0)" })
    }

    @Test(arguments: [(false, false), (false, true), (true, false), (true, true)])
    func `a remote that refuses one direction ends the run when the other one is done`(
        _ isReadOnly: Bool,
        _ isContinuous: Bool
    ) async throws {
        let remote = try await PassiveSide { ($0.readOnly, $0.writeOnly) = (isReadOnly, !isReadOnly) }
        let active = try ActiveSide()
        let (mine, theirs) = ((0..<300).map { "mine\($0)" }, (0..<300).map { "theirs\($0)" })
        for id in mine { try active.save(id, ["n": 1]) }
        for id in theirs { try remote.database.defaultCollection().save(Document(id: id)) }
        var configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pushAndPull)
        configuration.continuous = isContinuous
        let pass = try await active.replicate(configuration)
        #expect(pass.status.error?.code == .httpForbidden)
        #expect(pass.pushed == (isReadOnly ? [] : mine.sorted()))
        #expect(pass.pulled == (isReadOnly ? theirs.sorted() : []))
        await remote.listener.stop()
    }

    @Test(arguments: [
        (507, #"{"error":"insufficient_storage","reason":"the disk is full"}"#),
        (500, #"{"error":"unknown_error","reason":"enospc"}"#),
        (500, #"{"error":"badmatch","reason":"{error,enospc}"}"#),
    ])
    func
        `a remote whose disk is full ends the run, is no fault of a document, and is not asked again and again`(
            _ status: Int,
            _ body: String
        ) async throws
    {
        let count = Mutex(0)
        let target = Target()
        let server = try RawServer { request in
            guard request.target.hasPrefix("/db/_bulk_docs") else { return target.answer(request) }
            count.withLock { $0 += 1 }
            return RawServer.json(status, body)
        }
        let active = try ActiveSide()
        for number in 0..<20 { try active.save("d\(number)", ["n": 1]) }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/db"))
        let pass = try await active.replicate(url, .push)
        let error = try #require(pass.status.error)
        #expect(error.code.value == 10_507)
        #expect(error.message.contains("disk is full"))
        #expect(pass.failed.isEmpty)
        #expect(count.withLock { $0 } < 8)
        // With room, everything arrives.
        let whole = try RawServer { target.answer($0) }
        let again = try #require(URL(string: "http://127.0.0.1:\(whole.port)/db"))
        #expect(try await active.replicate(again, .push).failed.isEmpty)
        #expect(target.state.withLock { $0.stored.count } == 20)
    }
}
