import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// How old tombstones are, and which are removed for that.
@Suite struct TombstoneAgeTests {
    private final class Clock: Sendable {
        let seconds = Mutex<Int64>(1_000_000)
        func advance(_ by: Int64) { seconds.withLock { $0 += by } }
    }

    private let clock = Clock()
    private let temporary: TemporaryStore
    private var store: DocumentStore { temporary.store }

    init() throws {
        var options = DocumentStore.Options()
        let clock = clock
        options.time = { clock.seconds.withLock { $0 } }
        temporary = try TemporaryStore(options: options)
    }

    private func delete(_ ids: String...) throws {
        try store.write { transaction in
            for id in ids {
                _ = try transaction.save(
                    id,
                    in: temporary.collection,
                    body: .emptyObject,
                    isDeleted: true,
                    condition: .lastWriteWins
                )
            }
        }
    }

    private func tombstones() throws -> [String] {
        var ids: [String] = []
        try store.read { view in
            try view.changes(in: temporary.collection, since: 0) { record in
                if record.isDeleted { ids.append(record.id) }
                return true
            }
        }
        return ids
    }

    @Test func `a tombstone is removed when it is old enough, and not before`() throws {
        for id in ["a", "b", "c", "kept"] { _ = try temporary.save(id, "{}") }
        try delete("a")
        clock.advance(100)
        try delete("b")
        clock.advance(100)
        #expect(try store.removeTombstones(olderThan: 201) == 0)
        #expect(try store.removeTombstones(olderThan: 150) == 1)
        #expect(try tombstones() == ["b"])
        clock.advance(51)
        #expect(try store.removeTombstones(olderThan: 150) == 1)
        #expect(try tombstones() == [])
        #expect(try temporary.record("kept") != nil)
        // Sequences are not used again.
        let last = store.lastSequence(temporary.collection)
        _ = try temporary.save("new", "{}")
        #expect(last == 6)
        #expect(try temporary.record("new")?.sequence == 7)
    }

    @Test func `in a copy, tombstones begin to age anew: the clock of the other device may be wrong`() throws
    {
        _ = try temporary.save("a", "{}")
        try delete("a")
        clock.advance(365 * 24 * 3_600)
        try store.renewIdentity()
        #expect(try store.removeTombstones(olderThan: 150) == 0)
        clock.advance(151)
        #expect(try store.removeTombstones(olderThan: 150) == 1)
    }

    @Test func `an age of zero removes all tombstones`() throws {
        _ = try temporary.save("a", "{}")
        try delete("a")
        #expect(try store.removeTombstones(olderThan: 0) == 1)
        #expect(try tombstones() == [])
    }

    @Test func `a document that was deleted again is as young as its last deletion`() throws {
        _ = try temporary.save("a", "{}")
        try delete("a")
        clock.advance(1_000)
        _ = try temporary.save("a", "{}")
        try delete("a")
        clock.advance(10)
        #expect(try store.removeTombstones(olderThan: 500) == 0)
    }

    @Test
    func `a clock that is set back makes no tombstone old, and one that was ahead does not keep it for ever`()
        throws
    {
        for id in ["a", "b"] { _ = try temporary.save(id, "{}") }
        try delete("a")
        clock.advance(-900_000)
        try delete("b")
        clock.advance(900_010)
        #expect(try store.removeTombstones(olderThan: 100) == 0)
        clock.advance(1_000_000)
        _ = try temporary.save("c", "{}")
        try delete("c")
        clock.advance(-1_000_000)
        _ = try store.compact()
        clock.advance(200)
        #expect(try store.removeTombstones(olderThan: 100) == 3)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `however deletions and hours follow each other, exactly the old ones go`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var deleted: [String: Int64] = [:]
        for number in 0..<60 {
            let id = "d\(number)"
            _ = try temporary.save(id, "{}")
            if generator.chance(0.6) {
                try delete(id)
                deleted[id] = clock.seconds.withLock { $0 }
            }
            clock.advance(generator.pick([0, 1, 30, 600, 4_000]))
        }
        let now = clock.seconds.withLock { $0 }
        let age = generator.pick([1, 60, 3_600, 20_000] as [Int64])
        _ = try store.removeTombstones(olderThan: age)
        let left = Set(try tombstones())
        for (id, time) in deleted {
            if time + 1 > now - age { #expect(left.contains(id), "\(id) is too young") }
            // Of the hours before the last one the end counts.
            if time + 3_601 <= now - age { #expect(!left.contains(id), "\(id) is old") }
        }
    }
}
