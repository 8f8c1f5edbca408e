import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: alone
/// What long streams and many starts leave in the process. These tests measure the memory of the process, so no others run beside them.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct BoundedMemoryTests {
    private let scratch: Scratch
    private let database: Database
    private let sights: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.createCollection(name: "sights", scope: "travel")
    }

    private func residentKilobytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS") })
        return try #require(Int(line.split(separator: " ").dropFirst().first ?? ""))
    }

    private func saveMany(_ properties: @Sendable (Int) -> JSONObject) async throws {
        for start in stride(from: 0, to: 100_000, by: 5_000) {
            try await database.write { transaction in
                for number in start..<start + 5_000 {
                    try transaction.save(Document(id: "doc-\(number)", properties(number)), in: sights)
                }
            }
        }
    }

    @Test func `100,000 documents are streamed, and SQLite's log is free meanwhile`() async throws {
        let padding = String(repeating: "x", count: 1_000)
        try await saveMany { ["n": JSONValue($0), "padding": .string(padding)] }
        let before = try residentKilobytes()
        var (count, sum, highest) = (0, 0, 0)
        for try await document in sights.documentStream() {
            count += 1
            sum += document["n"]?.int ?? 0
            if count.isMultiple(of: 1_000) { highest = max(highest, try residentKilobytes() - before) }
            if count == 50_000 {
                // Nothing is held between two parts: the log can be emptied.
                try sights.save(Document(id: "a new one"))
                try await Task.detached { [database] in try database.performMaintenance(type: .compact) }
                    .value
                let wal = try FileManager.default.attributesOfItem(
                    atPath: "\(database.path ?? "")/db.sqlite-wal"
                )
                #expect(wal[.size] as? Int == 0)
            }
        }
        #expect(count == 100_000)
        #expect(sum == 100_000 * 99_999 / 2)
        #expect(highest < 48 << 10, "\(highest) kB")
        #expect(try await sights.documentIDs().count == 100_001)
        #expect(sights.count == 100_001)
    }

    @Test func `200,000 rows of a query are streamed, whatever the consumer's speed`() async throws {
        let text = String(repeating: "x", count: 200)
        try await saveMany { ["n": JSONValue($0), "text": .string(text), "two": [1, 2]] }
        let before = try residentKilobytes()
        var (count, sum, highest) = (0, 0, 0)
        let query = try database.createQuery(
            "SELECT s.n, s.text, t FROM travel.sights AS s UNNEST s.two AS t"
        )
        for try await row in query.rows() {
            count += 1
            sum += row["n"]?.int ?? 0
            #expect(row["text"]?.string?.utf8.count == 200)
            if count.isMultiple(of: 1_000) { highest = max(highest, try residentKilobytes() - before) }
            // The first rows take their time, so that the others are kept in the file.
            if count < 20 { try await Task.sleep(for: .milliseconds(20)) }
        }
        #expect(count == 200_000)
        #expect(sum == 100_000 * 99_999)
        #expect(highest < 48 << 10, "\(highest) kB")
    }

    @Test func `starting and stopping a replicator ten thousand times leaves nothing behind`() async throws {
        let far = try scratch.database("far")
        let there = try far.createCollection(name: "sights", scope: "travel")
        try sights.save(Document(id: "d"))
        let configuration = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: sights)],
            target: DatabaseEndpoint(database: far)
        )
        let replicator = Replicator(configuration)
        func files() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        }
        func cycle(_ count: Int) async {
            for number in 0..<count {
                replicator.start()
                // Now at once, now after a moment, now when it is done.
                if number % 3 == 0 { await Task.yield() }
                if number % 3 != 1 { replicator.stop() }
                await replicator.waitUntilStopped()
            }
        }
        await cycle(500)
        let (filesBefore, memoryBefore) = (try files(), try residentKilobytes())
        await cycle(9_500)
        #expect(replicator.status.error == nil)
        #expect(there.count == 1)
        #expect(try files() < filesBefore + 8)
        #expect(try residentKilobytes() < memoryBefore + (16 << 10))
    }
}
