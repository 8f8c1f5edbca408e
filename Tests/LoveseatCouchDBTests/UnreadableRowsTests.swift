import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Remotes of whose `_changes` rows cannot be read: each is reported, and read once it can be.
struct UnreadableRowsTests {
    /// A database with one row for each document, some of which are damaged.
    private final class Source: Sendable {
        struct State {
            /// Documents whose rows cannot be read.
            var damaged: Set<String> = []
            /// Documents that are listed no more.
            var gone: Set<String> = []
            /// Documents that are listed and not there.
            var missing: Set<String> = []
            /// Which request for changes of a run is refused, and which is answered by half.
            var refused: Int?
            var cut: Int?
            var requests = 0
            var checkpoints: [String: String] = [:]
        }

        let state = Mutex(State())
        let names: [String]

        init(_ count: Int) { names = (0..<count).map { "d\($0)" } }

        /// Begins a run.
        func begin(refusing refused: Int? = nil, cutting cut: Int? = nil) {
            state.withLock { ($0.refused, $0.cut, $0.requests) = (refused, cut, 0) }
        }

        private func changes(_ request: RawServer.Request) -> RawServer.Reply? {
            let state = state.withLock { state in
                state.requests += 1
                return state
            }
            if state.requests == state.refused {
                return RawServer.json(403, #"{"error":"forbidden","reason":"not now"}"#)
            }
            let query = URLComponents(string: request.target)?.queryItems ?? []
            func number(_ name: String) -> Int? {
                query.first { $0.name == name }?.value.flatMap { Int($0.prefix { $0 != "-" }) }
            }
            let since = number("since") ?? 0
            let asked = (try? JSONElement(parsing: request.body))?["doc_ids"]?.items.compactMap(\.string)
            let listed = names.enumerated().filter { index, name in
                index >= since && !state.gone.contains(name) && asked?.contains(name) ?? true
            }.prefix(number("limit") ?? .max)
            let rows = listed.map { index, name in
                let changes = state.damaged.contains(name) ? "" : #","changes":[{"rev":"1-aa"}]"#
                return #"{"seq":"\#(index + 1)-x","id":"\#(name)"\#(changes)}"#
            }
            let last = listed.last.map { "\($0.offset + 1)" } ?? "\(since)"
            guard state.requests == state.cut else {
                return RawServer.json(
                    200,
                    #"{"results":[\#(rows.joined(separator: ","))],"last_seq":"\#(last)-x"}"#
                )
            }
            let half = rows.prefix(rows.count / 2).joined(separator: ",")
            return .last(Array("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"results\":[\(half)".utf8))
        }

        func answer(_ request: RawServer.Request) -> RawServer.Reply? {
            let path = String(request.target.prefix { $0 != "?" })
            let missing = RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
            switch path {
            case "/": return RawServer.json(200, #"{"couchdb":"Welcome"}"#)
            case "/db/": return RawServer.json(200, #"{"db_name":"db"}"#)
            case "/db/_changes": return changes(request)
            case "/db/_bulk_get":
                let lacking = state.withLock { $0.missing }
                let asked = (try? JSONElement(parsing: request.body))?["docs"]?.items.compactMap {
                    $0["id"]?.string
                }
                let items = (asked ?? []).map { name in
                    lacking.contains(name)
                        ? #"{"id":"\#(name)","docs":[{"error":{"error":"not_found"}}]}"#
                        : #"{"id":"\#(name)","docs":[{"ok":{"_id":"\#(name)","_rev":"1-aa"}}]}"#
                }
                return RawServer.json(200, #"{"results":[\#(items.joined(separator: ","))]}"#)
            case _ where path.hasPrefix("/db/_local/") && request.method == "PUT":
                state.withLock { $0.checkpoints[path] = String(decoding: request.body, as: UTF8.self) }
                return RawServer.json(201, #"{"ok":true,"rev":"0-1"}"#)
            case _ where path.hasPrefix("/db/_local/"):
                return state.withLock { $0.checkpoints[path] }.map { RawServer.json(200, $0) } ?? missing
            default: return missing
            }
        }
    }

    /// A source, and a database that pulls from it.
    private struct Pair {
        let source: Source
        let server: RawServer
        let active: ActiveSide

        init(_ count: Int) throws {
            let source = Source(count)
            self.source = source
            server = try RawServer { source.answer($0) }
            active = try ActiveSide()
        }

        func pull() async throws -> ActiveSide.Pass {
            try await active.replicate(
                try #require(URL(string: "http://127.0.0.1:\(server.port)/db")),
                .pull
            )
        }

        /// The documents that are not here.
        func lacking() throws -> Set<String> {
            let collection = try active.collection
            return Set(try source.names.filter { try collection.document(id: $0) == nil })
        }
    }

    @Test func `rows that could not be read are read again after a run that ended among them`() async throws {
        let pair = try Pair(1_200)
        pair.source.state.withLock { $0.damaged = ["d2", "d600", "d601", "d1150"] }
        let first = try await pair.pull()
        #expect(first.status.error == nil)
        #expect(Set(first.failed.keys) == ["d2", "d600", "d601", "d1150"])
        pair.source.state.withLock { $0.damaged = ["d601"] }
        // The second place is not read.
        pair.source.begin(refusing: 2)
        #expect(try await pair.pull().status.error?.code == .httpForbidden)
        #expect(try pair.lacking() == ["d600", "d601", "d1150"])
        pair.source.begin()
        let third = try await pair.pull()
        #expect(third.status.error == nil)
        #expect(Set(third.failed.keys) == ["d601"])
        #expect(try pair.lacking() == ["d601"])
        pair.source.state.withLock { $0.damaged = [] }
        #expect(try await pair.pull().failed.isEmpty)
        #expect(try pair.lacking().isEmpty)
    }

    @Test(arguments: [1, 2])
    func `hundreds of rows that cannot be read are all reported, and read once they can be`(_ distance: Int)
        async throws
    {
        let pair = try Pair(700)
        let damaged = Set(stride(from: 0, to: 600, by: distance).map { "d\($0)" })
        pair.source.state.withLock { $0.damaged = damaged }
        for _ in 0..<2 {
            let pass = try await pair.pull()
            #expect(pass.status.error == nil)
            #expect(Set(pass.failed.keys) == damaged)
            #expect(try pair.lacking() == damaged)
        }
        pair.source.state.withLock { $0.damaged = [] }
        let last = try await pair.pull()
        #expect(last.failed.isEmpty)
        #expect(try pair.lacking().isEmpty)
    }

    @Test func `no row is passed over, however many are damaged, and whatever request fails`() async throws {
        for seed in PropertySeeds.of("UNREADABLE", 6) {
            var random = SeededGenerator(seed: seed)
            let pair = try Pair(600)
            let share = random.pick([0.02, 0.1, 0.5])
            var reported: Set<String> = []
            pair.source.state.withLock {
                for name in pair.source.names where random.chance(share) { $0.damaged.insert(name) }
            }
            for run in 0..<5 {
                let refused = random.chance(0.4) ? random.int(1...20) : nil
                let cut = random.chance(0.4) ? random.int(1...20) : nil
                pair.source.begin(refusing: refused, cutting: cut)
                let (damaged, gone) = pair.source.state.withLock { ($0.damaged, $0.gone) }
                let pass = try await pair.pull()
                reported.formUnion(pass.failed.keys)
                let lacking = try pair.lacking()
                #expect(lacking.isSuperset(of: damaged), "seed \(seed), run \(run)")
                // What was cut off is read in the next run.
                if pass.status.error == nil, cut == nil {
                    #expect(damaged.isSuperset(of: pass.failed.keys), "seed \(seed), run \(run)")
                    #expect(reported.isSuperset(of: damaged.subtracting(gone)), "seed \(seed), run \(run)")
                    #expect(lacking == damaged, "seed \(seed), run \(run)")
                }
                pair.source.state.withLock {
                    for name in damaged.sorted() where !gone.contains(name) && random.chance(0.4) {
                        if random.chance(0.2) { $0.gone.insert(name) } else { $0.damaged.remove(name) }
                    }
                }
            }
            let gone = pair.source.state.withLock { state in
                state.damaged = state.gone
                return state.gone
            }
            pair.source.begin()
            let pass = try await pair.pull()
            #expect(pass.status.error == nil, "seed \(seed)")
            #expect(pass.failed.isEmpty, "seed \(seed)")
            #expect(try pair.lacking() == gone, "seed \(seed)")
        }
    }

    @Test(arguments: [false, true])
    func `a document that is to be asked for again is not forgotten where the list cannot be read`(
        _ isCut: Bool
    ) async throws {
        let pair = try Pair(6)
        pair.source.state.withLock { $0.missing = ["d3", "d5"] }
        #expect(Set(try await pair.pull().failed.keys) == ["d3", "d5"])
        pair.source.state.withLock { $0.missing = isCut ? [] : ["d3"] }
        if isCut {
            pair.source.begin(cutting: 1)
        } else {
            pair.source.state.withLock { $0.damaged = ["d3"] }
        }
        let second = try await pair.pull()
        #expect(second.status.error == nil)
        #expect(try pair.lacking() == (isCut ? [] : ["d3"]))
        #expect(Set(second.failed.keys) == (isCut ? [] : ["d3"]))
        pair.source.state.withLock { ($0.missing, $0.damaged) = ([], []) }
        pair.source.begin()
        #expect(try await pair.pull().failed.isEmpty)
        #expect(try pair.lacking().isEmpty)
    }
}
