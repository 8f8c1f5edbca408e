import Foundation
import LoveseatModel
import LoveseatStorage
import Testing

/// Single reads share a read transaction that stays open while nobody writes.
struct KeptReadTests {
    private let temporary: TemporaryStore

    init() throws { temporary = try TemporaryStore() }

    private func number(_ id: String) throws -> Int? {
        try temporary.record(id).flatMap { JSONElement($0.body)["n"]?.int }
    }

    @Test func `a read after a save sees it, whoever read before`() throws {
        for n in 1...100 {
            _ = try temporary.save("d", "{\"n\":\(n)}")
            #expect(try number("d") == n)
            #expect(try number("d") == n)
        }
    }

    @Test func `a read never sees less than was saved before it began`() async throws {
        _ = try temporary.save("d", "{\"n\":0}")
        let store = temporary.store
        let collection = temporary.collection
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var last = 0
                    while last < 100, !Task.isCancelled {
                        let body = try store.readRows { try $0.record("d", in: collection) }?.body
                        let now = try #require(body.flatMap { JSONElement($0)["n"]?.int })
                        #expect(now >= last)
                        last = now
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                for n in 1...100 {
                    let body = try JSONText("{\"n\":\(n)}").canonical
                    try store.write { transaction in
                        _ = try transaction.save(
                            "d",
                            in: collection,
                            body: body,
                            isDeleted: false,
                            condition: .lastWriteWins
                        )
                    }
                    let seen = try store.readRows { try $0.record("d", in: collection) }?.body
                    #expect(seen.flatMap { JSONElement($0)["n"]?.int } == n)
                    await Task.yield()
                }
            }
            // The first failure ends the others.
            for try await _ in group {}
        }
    }

    @Test func `what is read between saves does not keep SQLite's log from being emptied`() throws {
        let text = String(repeating: "x", count: 100_000)
        for n in 0..<600 {
            _ = try temporary.save("d\(n % 10)", "{\"n\":\(n),\"text\":\"\(text)\"}")
            #expect(try number("d\(n % 10)") == n)
        }
        let log = try FileManager.default.attributesOfItem(atPath: "\(temporary.folder)/db.sqlite-wal")
        // 60 MB were written; the log is emptied after 16.
        #expect(try #require(log[.size] as? Int) < 32 << 20)
    }

    @Test func `a compaction after a read makes the file smaller`() throws {
        for n in 0..<50 {
            _ = try temporary.save("d\(n)", "{\"text\":\"\(String(repeating: "x", count: 50_000))\"}")
        }
        try temporary.store.write { transaction in
            for n in 0..<50 { _ = try transaction.purge("d\(n)", in: temporary.collection) }
        }
        #expect(try number("d1") == nil)
        #expect(try temporary.store.compact().bytes > 2_000_000)
        let log = try FileManager.default.attributesOfItem(atPath: "\(temporary.folder)/db.sqlite-wal")
        #expect(try #require(log[.size] as? Int) == 0)
    }
}
