import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatPlatform
import LoveseatTesting
import NIOCore
import Synchronization
import Testing

// Group in ./test: alone
/// Large requests cost a bounded amount of memory, and small ones beside them do not wait.
@Suite(.serialized) struct BoundedWorkTests {
    private static let headers = [("Content-Type", "application/json")]

    private static func post(_ served: ServedDatabase, _ path: String, _ body: String) async throws
        -> RawClient.Answer
    {
        let client = served.client
        return try await offPool { try client.send("POST", path, headers, body: Array(body.utf8)) }
    }

    private static func list(_ count: Int, _ item: (Int) -> String) -> String {
        (0..<count).map(item).joined(separator: ",")
    }

    // MARK: Counts

    private static let tooMany: [(path: String, body: String)] = [
        ("_revs_diff", "{\(list(100_001) { #""\#($0)":["1-a"]"# })}"),
        ("_revs_diff", #"{"x":[\#(list(100_001) { "\"1-\($0)\"" })]}"#),
        ("_missing_revs", "{\(list(100_001) { #""\#($0)":[]"# })}"),
        ("_all_docs", #"{"keys":[\#(list(100_001) { _ in "\"d\"" })]}"#),
        ("_all_docs/queries", #"{"queries":[{"keys":[\#(list(100_001) { _ in "0" })]}]}"#),
        ("_bulk_docs", #"{"docs":[\#(list(100_001) { _ in "{}" })]}"#),
        ("_bulk_get", #"{"docs":[\#(list(100_001) { _ in "{}" })]}"#),
        ("_changes?filter=_doc_ids", #"{"doc_ids":[\#(list(1_000_001) { _ in "0" })]}"#),
    ]

    @Test(arguments: tooMany.indices)
    func `a request that names too many things is refused, with what to do`(_ index: Int) async throws {
        let served = try await ServedDatabase()
        let (path, body) = Self.tooMany[index]
        let answer = try await Self.post(served, "/main/\(path)", body)
        #expect(answer.status == 413, "\(path)")
        #expect(answer.json["error"] == "too_large", "\(path)")
        #expect(answer.json["reason"]?.string?.contains("send it in parts") == true, "\(answer.text)")
        #expect(try await served.call("GET", "/main").json["doc_count"] == 0)
        await served.listener.stop()
    }

    @Test func `large requests do not shut small ones out, and give back what they took`() throws {
        let budget = BodyBudget(limit: 10 << 20)
        let small = RequestMemory(budget)
        do {
            let large = RequestMemory(budget)
            try large.reserve(10 << 20)
            #expect(throws: (any Error).self) { try RequestMemory(budget).reserve(1 << 20) }
            try small.reserve(100 << 10)
            #expect(throws: (any Error).self) { try small.reserve(1 << 20) }
            large.add(1 << 20)
        }
        try RequestMemory(budget).reserve(9 << 20)
    }

    // MARK: Parts

    @Test func `the rows of a large batch are in the order of its documents`() async throws {
        let served = try await ServedDatabase()
        let ids = (0..<1_700).map { $0 % 7 == 3 ? "_local/d\($0)" : "d\($0)" }
        let docs = ids.map { #"{"_id":"\#($0)","n":1}"# }.joined(separator: ",")
        let answer = try await Self.post(served, "/main/_bulk_docs", #"{"docs":[\#(docs)]}"#)
        #expect(answer.status == 201)
        let rows = answer.json.array ?? []
        #expect(rows.compactMap { $0["id"]?.string } == ids)
        #expect(rows.allSatisfy { $0["ok"] == true })
        let again = try await Self.post(served, "/main/_bulk_docs", #"{"docs":[\#(docs)]}"#).json.array ?? []
        #expect(again.compactMap { $0["id"]?.string } == ids)
        #expect(again.count { $0["error"] == "conflict" } == ids.count { !$0.hasPrefix("_local/") })
        await served.listener.stop()
    }

    @Test(arguments: [
        #"{"_id":5}"#, #"{"_foo":1}"#, #"{"_attachments":{"a":{"data":"%%"}}}"#, #"{"_rev":"junk"}"#,
    ])
    func `of a batch that is refused as a whole nothing is stored, in whichever part the reason is`(
        _ last: String
    ) async throws {
        let served = try await ServedDatabase()
        let docs = Self.list(1_700) { #"{"_id":"d\#($0)"}"# }
        let answer = try await Self.post(served, "/main/_bulk_docs", #"{"docs":[\#(docs),\#(last)]}"#)
        #expect(answer.status == 400)
        #expect(try await served.call("GET", "/main").json["doc_count"] == 0)
        await served.listener.stop()
    }

    @Test(arguments: [false, true])
    func `what is missing of many documents is what is missing of each`(_ isOld: Bool) async throws {
        let served = try await ServedDatabase()
        let docs = Self.list(900) {
            #"{"_id":"d\#($0)","_rev":"2-a","_revisions":{"start":2,"ids":["a","b"]}}"#
        }
        _ = try await Self.post(served, "/main/_bulk_docs", #"{"new_edits":false,"docs":[\#(docs)]}"#)
        func wanted(_ number: Int) -> String {
            #""d\#(number)":["\#(["2-a", "1-b", "2-c", "3-x"][number % 4])","1-b","4-q"]"#
        }
        let path = "/main/\(isOld ? "_missing_revs" : "_revs_diff")"
        let all = try await Self.post(served, path, "{\(Self.list(1_000, wanted))}")
        #expect(all.status == 200)
        let found = isOld ? all.json["missing_revs"] ?? [:] : all.json
        #expect(found.object?.count == 1_000)
        for number in stride(from: 0, to: 1_000, by: 97) {
            let one = try await Self.post(served, path, "{\(wanted(number))}").json
            let single = isOld ? one["missing_revs"] ?? [:] : one
            #expect(found["d\(number)"] == single["d\(number)"], "d\(number)")
        }
        await served.listener.stop()
    }

    @Test(arguments: [
        "", "&descending=true", "&skip=150&limit=700", "&skip=999&descending=true", "&skip=1001",
    ])
    func `the rows of many keys are those of each key, in order`(_ parameters: String) async throws {
        let served = try await ServedDatabase()
        let docs = Self.list(600) { #"{"_id":"d\#($0)","t":"\#(String(repeating: "x", count: $0))"}"# }
        _ = try await Self.post(served, "/main/_bulk_docs", #"{"docs":[\#(docs)]}"#)
        let keys = (0..<1_000).map { "d\(($0 * 7) % 800)" }
        let body = #"{"keys":[\#(keys.map { "\"\($0)\"" }.joined(separator: ","))]}"#
        let answer = try await Self.post(served, "/main/_all_docs?include_docs=true\(parameters)", body)
        var expected = parameters.contains("descending") ? keys.reversed() : keys
        if let skip = parameters.split(separator: "&").first(where: { $0.hasPrefix("skip=") }) {
            expected = Array(expected.dropFirst(Int(skip.dropFirst(5)) ?? 0))
        }
        if parameters.contains("limit=700") { expected = Array(expected.prefix(700)) }
        let rows = answer.json["rows"]?.array ?? []
        #expect(rows.map { $0["key"]?.string ?? "" } == expected)
        for (row, key) in zip(rows, expected) {
            let isThere = Int(key.dropFirst()) ?? 0 < 600
            #expect((row["doc"]?["_id"]?.string == key) == isThere)
            #expect((row["error"] == "not_found") == !isThere)
        }
        await served.listener.stop()
    }

    // MARK: Beside large requests

    /// How many requests are not answered.
    private final class Remaining: Sendable {
        let count: Mutex<Int>

        init(_ count: Int) { self.count = Mutex(count) }
    }

    /// The longest time that a small write and read took beside requests.
    private func longest(beside count: Int, of request: @escaping @Sendable (RawClient) throws -> Int)
        async throws -> Duration
    {
        let served = try await ServedDatabase()
        _ = try await served.call("PUT", "/main/d", ["n": 1])
        let client = served.client
        let left = Remaining(count)
        return try await withThrowingTaskGroup(of: Int?.self, returning: Duration.self) { group in
            for _ in 0..<count {
                group.addTask {
                    defer { left.count.withLock { $0 -= 1 } }
                    return try await offPool { try request(client) }
                }
            }
            var (longest, number) = (Duration.zero, 0)
            repeat {
                number += 1
                let start = ContinuousClock.now
                #expect(try await served.call("PUT", "/main/small\(number)", ["n": 1]).status == 201)
                #expect(try await served.call("GET", "/main/d").status == 200)
                longest = max(longest, .now - start)
            } while left.count.withLock { $0 > 0 }
            for try await status in group { #expect([200, 201].contains(status)) }
            await served.listener.stop()
            return longest
        }
    }

    @Test(.timeLimit(.minutes(3))) func `a small write waits for a part of large batches at most`()
        async throws
    {
        let body = Array(#"{"docs":[\#(Self.list(30_000) { "{\"n\":\($0)}" })]}"#.utf8)
        let time = try await longest(beside: 6) {
            try $0.send("POST", "/main/_bulk_docs", Self.headers, body: body).status
        }
        #expect(time < .seconds(1), "a small write and a read took \(time)")
    }

    @Test(.timeLimit(.minutes(3))) func `bodies in chunks of one byte hold up nobody`() async throws {
        let text = #"{"docs":[{"t":"\#(String(repeating: "x", count: 300_000))"}]}"#
        let chunks = text.utf8.map { [$0] }
        let time = try await longest(beside: 8) {
            try $0.send("POST", "/main/_bulk_docs", Self.headers, chunks: chunks).status
        }
        #expect(time < .seconds(1), "a small write and a read took \(time)")
    }

    @Test(.timeLimit(.minutes(3))) func `asking what is missing of many documents holds up nobody`()
        async throws
    {
        let body = Array("{\(Self.list(90_000) { #""\#($0)":["1-a"]"# })}".utf8)
        let time = try await longest(beside: 10) {
            try $0.send("POST", "/main/_revs_diff", Self.headers, body: body).status
        }
        #expect(time < .seconds(1), "a small write and a read took \(time)")
    }

    @Test func `as much is read at a time as takes two milliseconds, and never next to nothing`() {
        let usual = ReadPace.usualSize
        // One that is fast is read in larger pieces.
        #expect(ReadPace.size(after: usual, of: usual, in: .microseconds(10)) == 2 * usual)
        #expect(ReadPace.size(after: 256 << 10, of: 256 << 10, in: .microseconds(100)) == 256 << 10)
        // One that is slow is read in smaller ones, in proportion.
        #expect(ReadPace.size(after: usual, of: usual, in: .milliseconds(8)) == usual / 4)
        #expect(ReadPace.size(after: usual, of: usual, in: .seconds(1)) == 1 << 10)
        // Little that takes long says nothing about the size.
        #expect(ReadPace.size(after: 1 << 10, of: 1 << 10, in: .microseconds(1_500)) == 1 << 10)
        // Small pieces return to the usual size.
        #expect(ReadPace.size(after: 4 * usual, of: 100, in: .microseconds(10)) == 2 * usual)
        #expect(ReadPace.size(after: usual, of: 100, in: .microseconds(10)) == usual)
    }
}
