import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatPlatform
import LoveseatTesting
import Testing

// Group in ./test: sockets
/// Many clients of one listener. By itself in `./test`, since it has thousands of descriptors open (see `SilentSocketTests`).
@Suite(.serialized) struct IdleFeedTests {
    @Test func `a thousand idle feeds hear of a change, and disturb nobody`() async throws {
        let served = try await ServedDatabase()
        let client = served.client
        let sockets = try await offPool {
            try (0..<1_000).map { number in
                let descriptor = try client.connect()
                let since = number % 2 == 0 ? "now" : "0"
                let text =
                    "GET /main/_changes?feed=longpoll&style=all_docs&since=\(since)&heartbeat=30000 HTTP/1.1\r\n"
                    + "Host: localhost\r\nConnection: close\r\n\r\n"
                _ = Array(text.utf8).withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                // The feed has begun.
                #expect(Self.read(descriptor, until: "results").hasPrefix("HTTP/1.1 200"))
                return descriptor
            }
        }
        #expect(served.listener.connectionCount >= 1_000)
        let info = try await served.call("GET", "/main")
        #expect(info.status == 200)
        let clock = ContinuousClock()
        let began = clock.now
        #expect(try await served.call("PUT", "/main/d", ["x": 1]).status == 201)
        let heard = try await offPool {
            sockets.map { descriptor in
                let rest = Self.read(descriptor, until: nil)
                close(descriptor)
                return rest
            }
        }
        #expect(heard.allSatisfy { $0.contains("\"id\":\"d\"") && $0.contains("last_seq") })
        #expect(clock.now - began < .seconds(30))
        await served.listener.stop()
    }

    /// Reads until a word has come, or until the other side closes.
    private static func read(_ descriptor: Int32, until word: String?) -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while word.map({ all.firstRange(of: Array($0.utf8)) == nil }) ?? true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer[..<count]
        }
        return String(decoding: all, as: UTF8.self)
    }

    @Test func `two hundred clients replicate at once`() async throws {
        let served = try await ServedDatabase()
        let docs = (0..<200).map {
            JSONValue(dictionaryLiteral: ("_id", .string("s\($0)")), ("n", JSONValue($0)))
        }
        #expect(try await served.call("POST", "/main/_bulk_docs", ["docs": .array(docs)]).status == 201)
        let client = served.client
        let pulled = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<200 {
                group.addTask { try await offPool { try Self.replicate(client, number) } }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(pulled.count == 200)
        #expect(pulled.allSatisfy { $0 >= 200 })
        #expect(try served.database.defaultCollection().count == 200 + 200 * 5)
        let tasks = try await served.call("GET", "/_active_tasks").json.array ?? []
        #expect(tasks.contains { $0["type"] == "replication" && $0["target"] == "main" })
        await served.listener.stop()
    }

    /// A pull and a push, as replicators do them; returns how many documents came.
    private static func replicate(_ client: RawClient, _ number: Int) throws -> Int {
        let json = [("Content-Type", "application/json"), ("User-Agent", "test \(number % 10)")]
        func post(_ path: String, _ body: JSONValue) throws -> JSONValue {
            try client.send("POST", path, json, body: JSONText(canonical: body).bytes).json
        }
        #expect(try client.send("GET", "/main/").json["db_name"] == "main")
        #expect(try client.send("GET", "/main/_local/c\(number)").status == 404)
        let changes = try client.send("GET", "/main/_changes?style=all_docs&limit=200", json).json
        let rows = changes["results"]?.array ?? []
        let wanted = rows.map {
            ["id": $0["id"] ?? nil, "rev": $0["changes"]?[0]?["rev"] ?? nil] as JSONValue
        }
        let found = try post("/main/_bulk_get?revs=true&latest=true", ["docs": .array(wanted)])
        let count = found["results"]?.array?.count { $0["docs"]?[0]?["ok"] != nil } ?? 0
        let own = (0..<5).map { "c\(number)-\($0)" }
        var asked: JSONValue = [:]
        for id in own { asked[id] = ["1-a"] }
        let difference = try post("/main/_revs_diff", asked)
        #expect(difference.object?.count == 5)
        let docs = own.map { ["_id": .string($0), "_rev": "1-a"] as JSONValue }
        #expect(try post("/main/_bulk_docs", ["new_edits": false, "docs": .array(docs)]) == [])
        #expect(try post("/main/_ensure_full_commit", [:])["ok"] == true)
        let checkpoint = JSONText(canonical: ["last_seq": changes["last_seq"] ?? nil]).bytes
        #expect(try client.send("PUT", "/main/_local/c\(number)", json, body: checkpoint).status == 201)
        return count
    }
}
