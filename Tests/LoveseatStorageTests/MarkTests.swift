import GRDB
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What remotes are known to have.
@Suite struct MarkTests {
    private let temporary: TemporaryStore
    private var collection: CollectionHandle { temporary.collection }

    init() throws { temporary = try TemporaryStore() }

    private func rows(_ sql: String) throws -> [[Int]] {
        let queue = try DatabaseQueue(path: "\(temporary.folder)/db.sqlite")
        defer { try? queue.close() }
        return try queue.read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { Int.fromDatabaseValue($0) ?? -1 }
            }
        }
    }

    @discardableResult
    private func mark(_ sequences: [UInt64], at remote: Int = 1) throws -> Set<UInt64> {
        try temporary.store.write { try $0.markTable.markSynced(sequences, remote: remote, in: collection) }
    }

    private func save(_ ids: some Sequence<String>, _ json: String = "{}") throws {
        for id in ids { _ = try temporary.save(id, json) }
    }

    private func mark(of id: String, at remote: Int = 1) throws -> RevisionID? {
        try temporary.record(id)?.remoteAncestor(remote)
    }

    @Test func `thousands of marks are one range, and change no document's row`() throws {
        try save((1...3_000).map { "d\($0)" })
        for start in stride(from: UInt64(1), to: 3_000, by: 200) {
            #expect(try mark(Array(start..<start + 200)) == [])
        }
        #expect(try rows("SELECT remote, collection, first, last FROM mark_ranges") == [[1, 1, 1, 3_000]])
        #expect(try rows("SELECT count(*) FROM \"_default._default\" WHERE synced <> 0") == [[0]])
        #expect(try mark(of: "d1500") == temporary.record("d1500")?.revision)
        #expect(try mark(of: "d1500", at: 2) == nil)
    }

    @Test func `a range passes over sequences without rows, and ends before rows that are not marked`() throws
    {
        try save(["a", "b", "c", "d", "e"])
        try save(["b"], #"{"n":2}"#)
        // b is at 6 now, and 2 is vacant.
        try mark([1, 3, 5])
        #expect(try rows("SELECT first, last FROM mark_ranges ORDER BY first") == [[1, 3], [5, 5]])
        #expect(try mark(of: "d") == nil)
        try mark([4])
        #expect(try rows("SELECT first, last FROM mark_ranges ORDER BY first") == [[1, 5]])
        #expect(try mark(of: "b") == nil)
    }

    @Test func `a document that changed since is not marked`() throws {
        try save(["a", "b"])
        try save(["a"], #"{"n":2}"#)
        #expect(try mark([1, 2]) == [1])
        #expect(try mark(of: "a") == nil)
        #expect(try mark(of: "b") != nil)
    }

    @Test func `an edit keeps the revision that the remote has`() throws {
        try save(["a"])
        let first = try #require(try temporary.record("a")?.revision)
        try mark([1])
        try mark([1], at: 2)
        try save(["a"], #"{"n":2}"#)
        try save(["a"], #"{"n":3}"#)
        #expect(try mark(of: "a") == first)
        #expect(try mark(of: "a", at: 2) == first)
        #expect(try temporary.store.check() == [])
    }

    @Test func `a feed leaves out what is marked, however much that is`() throws {
        try save((1...2_000).map { "d\($0)" })
        try mark(Array(2...1_999))
        var seen: [String] = []
        try temporary.store.read {
            try $0.changes(in: collection, since: 0, notSyncedWith: 1) {
                seen.append($0.id)
                return true
            }
        }
        #expect(seen == ["d1", "d2000"])
    }

    @Test func `marks end with their collection`() throws {
        let name = try #require(CollectionName(scope: "s", name: "c"))
        let other = try temporary.store.write { try $0.createCollection(name) }
        try temporary.store.write {
            _ = try $0.save(
                "a",
                in: other,
                body: JSONText(canonical: [:]),
                isDeleted: false,
                condition: .lastWriteWins
            )
            _ = try $0.markTable.markSynced([1], remote: 1, in: other)
        }
        #expect(try rows("SELECT count(*) FROM mark_ranges") == [[1]])
        try temporary.store.write { try $0.deleteCollection(name) }
        #expect(try rows("SELECT count(*) FROM mark_ranges") == [[0]])
    }

    /// Marks by sequence and by revision, edits, withdrawn marks and purges in any order, against a dictionary.
    @Test(arguments: 1...20) func `every remote's mark is the last one that was made`(_ seed: UInt64) throws {
        var dice = SeededGenerator(seed: seed)
        var expected: [String: [Int: RevisionID]] = [:]
        var store = temporary.store
        for step in 0..<400 {
            let (id, remote) = ("d\(dice.int(0...30))", dice.int(1...3))
            let record = try store.readRows { try $0.record(id, in: collection) }
            switch dice.int(0...9) {
            case 0...3:
                let body = JSONText(canonical: ["step": JSONValue(step)])
                _ = try store.write { try temporary.save(id, body, $0) }
            case 4...5:
                // Several at once, of which some may have changed.
                let sequences = Set((0..<8).map { _ in UInt64(dice.int(1...max(1, step))) }).sorted()
                let gone = try store.write {
                    try $0.markTable.markSynced(sequences, remote: remote, in: collection)
                }
                try store.read {
                    try $0.changes(in: collection, since: 0) {
                        #expect(!gone.contains($0.sequence))
                        if sequences.contains($0.sequence) {
                            expected[$0.id, default: [:]][remote] = $0.revision
                        }
                        return true
                    }
                }
            case 6...7:
                guard let record else { continue }
                try store.write {
                    try $0.markSynced(id, revision: record.revision, remote: remote, in: collection)
                }
                expected[id, default: [:]][remote] = record.revision
            case 8:
                try store.write { try $0.forgetMark(id, remote: remote, in: collection) }
                expected[id]?[remote] = nil
            default:
                if dice.chance(0.2) {
                    try store.close()
                    store = try DocumentStore.open(folder: temporary.folder)
                } else {
                    _ = try store.write { try $0.purge(id, in: collection) }
                    expected[id] = nil
                }
            }
        }
        for number in 0...30 {
            for remote in 1...3 {
                let mark = try store.readRows {
                    try $0.record("d\(number)", in: collection)?.remoteAncestor(remote)
                }
                #expect(mark == expected["d\(number)"]?[remote])
            }
        }
        #expect(try store.check() == [])
        try store.close()
    }
}
