import GRDB
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Long histories, which peers of CouchDB's wire want and edits do not need.
@Suite struct AncestorTests {
    private let temporary: TemporaryStore
    private var store: DocumentStore { temporary.store }
    private var collection: CollectionHandle { temporary.collection }

    init() throws {
        temporary = try TemporaryStore()
        try store.write { try $0.setRevisionLimit(1_000) }
    }

    private func edit(_ count: Int) throws -> [RevisionID] {
        var revisions: [RevisionID] = []
        for number in 0..<count {
            let revision = try temporary.save("x", #"{"n":\#(number)}"#)
            revisions.insert(try #require(revision), at: 0)
        }
        return revisions
    }

    private func whole() throws -> DocumentRecord {
        try store.whole(try #require(try temporary.record("x")), in: collection)
    }

    private func line() throws -> [RevisionID] {
        let record = try whole()
        return try record.tree().line(record.revision)
    }

    @Test func `an edit reads and writes a short row, and the whole history is there when it is asked for`()
        throws
    {
        let revisions = try edit(300)
        let record = try #require(try temporary.record("x"))
        #expect(record.encodedTree?.count ?? 0 < 4_000)
        #expect(try record.tree().nodes.count <= RevisionTree.maximumDepth + 1)
        #expect(try line() == revisions)
        #expect(try whole().tree().problems == [])
    }

    @Test func `a line is read only if a revision is named that the row does not hold`() throws {
        let revisions = try edit(300)
        let record = try #require(try temporary.record("x"))
        try store.read { view in
            let row = Set(try record.tree().nodes.keys)
            #expect(try view.whole(record, ifNamedIn: [], in: collection) === record)
            let newer = try #require(RevisionID("301-a"))
            #expect(try view.whole(record, ifNamedIn: [revisions[0], newer], in: collection) === record)
            let stranger = try #require(RevisionID("150-a"))
            #expect(try view.whole(record, ifNamedIn: [stranger], in: collection) === record)
            for revision in revisions where !row.contains(revision) {
                let whole = try view.whole(record, ifNamedIn: [newer, revision], in: collection)
                #expect(try whole.tree().line(record.revision) == revisions)
            }
            #expect(try view.whole(record, ifNamedIn: revisions, in: collection) !== record)
        }
    }

    @Test func `of a longer history than the limit the oldest revisions go`() throws {
        let revisions = try edit(1_300)
        let line = try line()
        #expect(line.count >= 1_000)
        #expect(line.count <= 1_100)
        #expect(Array(line.dropLast()) == Array(revisions.prefix(line.count - 1)))
        #expect(line.last == revisions.last)
    }

    @Test
    func `a revision that a peer has from long ago is known, and what it was edited to there is a branch`()
        throws
    {
        let revisions = try edit(400)
        let body = JSONText(canonical: ["of": "peer"])
        let old = Array(revisions.dropFirst(300))
        let own = JSONText(canonical: ["n": 99])
        #expect(
            try store.write {
                try $0.insertBranch(old, of: "x", in: collection, body: own, isDeleted: false)
            } == false
        )
        #expect(try line() == revisions)
        let theirs = RevisionID(generation: old[0].generation + 1, digest: [1, 2, 3, 4])
        #expect(
            try store.write {
                try $0.insertBranch([theirs] + old, of: "x", in: collection, body: body, isDeleted: false)
            }
        )
        let branches = try DocumentBranches(of: whole())
        #expect(branches.leaves.map(\.id) == [revisions[0], theirs])
        #expect(branches.winner.history == revisions)
        #expect(branches.leaves[1].history == [theirs] + old)
        _ = try temporary.save("x", #"{"after":true}"#)
        #expect(try line().dropFirst().elementsEqual(revisions))
        #expect(try store.check() == [])
    }

    @Test func `a check names ancestors whose IDs are damaged`() throws {
        let revisions = try edit(100)
        #expect(try store.check() == [])
        let queue = try DatabaseQueue(path: "\(temporary.folder)/db.sqlite")
        let (damaged, child) = (revisions[80], revisions[60])
        try queue.write { db in
            try db.execute(
                sql: "UPDATE ancestors SET revision = 'x' || revision WHERE revision = ?",
                arguments: [damaged.text]
            )
            try db.execute(
                sql: "UPDATE ancestors SET child = replace(child, '-', '+') WHERE revision = ?",
                arguments: [child.text]
            )
        }
        try queue.close()
        let problems = try store.check()
        #expect(problems.count == 2)
        #expect(problems.contains { $0.contains("/x: ancestor x\(damaged)") })
        #expect(problems.contains { $0.contains("/x: ancestor \(child) of revision") })
    }

    @Test func `a long history that comes at once is kept whole, and purging leaves nothing of it`() throws {
        let history = (1...990).reversed().map {
            RevisionID(generation: UInt32($0), digest: [UInt8($0 >> 8), UInt8($0 & 255)])
        }
        try store.write {
            _ = try $0.insertBranch(history, of: "x", in: collection, body: .emptyObject, isDeleted: false)
        }
        #expect(try line() == history)
        let next = try temporary.save("x", "{}")
        #expect(try line() == [try #require(next)] + history)
        _ = try store.write { try $0.purge("x", in: collection) }
        _ = try temporary.save("x", #"{"new":true}"#)
        #expect(try line().count == 1)
        _ = try edit(200)
        #expect(try line().allSatisfy { !history.contains($0) })
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `the whole history is that of a database that keeps all of it in its row`(_ seed: UInt64) throws {
        var options = DocumentStore.Options()
        options.revisionDepth = 1_000
        let plain = try TemporaryStore(options: options)
        var generator = SeededGenerator(seed: seed)
        var known: [RevisionID] = []
        for number in 0..<250 {
            if known.count > 3, generator.chance(0.03) {
                let start = generator.int(0...known.count - 1)
                let theirs = RevisionID(generation: known[start].generation + 1, digest: [9, UInt8(number)])
                let history = [theirs] + known[start...]
                for side in [temporary, plain] {
                    _ = try side.store.write {
                        try $0.insertBranch(
                            history,
                            of: "x",
                            in: side.collection,
                            body: .emptyObject,
                            isDeleted: false
                        )
                    }
                }
            } else {
                for side in [temporary, plain] { _ = try side.save("x", #"{"n":\#(number)}"#) }
            }
            let record = try #require(try plain.record("x"))
            known = try record.tree().line(record.revision)
            #expect(try temporary.record("x")?.revision == record.revision)
        }
        let expected = try DocumentBranches(of: try #require(try plain.record("x")))
        let found = try DocumentBranches(of: whole())
        #expect(found.leaves.map(\.id) == expected.leaves.map(\.id))
        #expect(found.leaves.map(\.history) == expected.leaves.map(\.history))
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `of each line as many revisions are kept as the limit says, however far another one has gone on`(
        _ seed: UInt64
    ) throws {
        var generator = SeededGenerator(seed: seed)
        let limit = generator.pick([60, 90, 150])
        try store.write { try $0.setRevisionLimit(limit) }
        // Histories by their leaves, whole.
        var lines: [[RevisionID]] = []
        func insert(_ history: [RevisionID]) throws {
            _ = try store.write {
                try $0.insertBranch(
                    Array(history.prefix(limit)),
                    of: "x",
                    in: collection,
                    body: .emptyObject,
                    isDeleted: false
                )
            }
        }
        func grow(_ line: [RevisionID], by count: Int, _ mark: UInt8) throws -> [RevisionID] {
            var line = line
            for _ in 0..<count {
                let generation = (line.first?.generation ?? 0) + 1
                line.insert(
                    RevisionID(
                        generation: generation,
                        digest: [mark, UInt8(generation >> 8), UInt8(generation & 255)]
                    ),
                    at: 0
                )
                if generator.chance(0.5) { try insert(line) }
            }
            try insert(line)
            return line
        }
        for branch in 0..<UInt8(3) {
            let parent = lines.isEmpty ? [] : generator.pick(lines)
            let start = Array(parent.suffix(generator.int(0...min(parent.count, 40))))
            lines.append(try grow(start, by: generator.int(1...limit + 40), branch * 2 + 1))
        }
        let last = generator.int(0...lines.count - 1)
        lines[last] = try grow(lines[last], by: 3 * limit, UInt8(last) * 2 + 1)
        let record = try whole()
        #expect(try record.tree().problems == [])
        let tree = try record.tree()
        for line in lines {
            guard let leaf = line.first, tree.isLeaf(leaf) else { continue }
            let found = tree.line(leaf)
            let kept = min(line.count, limit)
            #expect(Array(found.prefix(kept)) == Array(line.prefix(kept)), "\(leaf)")
        }
        // What is beyond the limit is removed from time to time.
        try store.write { try $0.setRevisionLimit(100_000) }
        #expect(try whole().tree().nodes.count <= lines.count * (limit + 70))
        #expect(try store.check() == [])
    }
}
