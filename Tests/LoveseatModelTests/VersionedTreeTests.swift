import LoveseatModel
import LoveseatTesting
import Testing

/// Trees whose revisions have version vectors.
@Suite struct VersionedTreeTests {
    private static func merged(_ trees: [RevisionTree]) throws -> RevisionTree {
        var all = RevisionTree()
        for tree in trees { try all.merge(tree.everything) }
        return all
    }

    @Test func `merging trees with vectors is commutative, associative and idempotent`() throws {
        for seed in PropertySeeds.of("VERSIONED", 600) {
            let trees = try VersionedTrees(seed: seed).trees
            let once = try Self.merged(trees)
            #expect(try Self.merged(trees.reversed()) == once, "seed \(seed)")
            #expect(try Self.merged(trees + trees) == once, "seed \(seed)")
            #expect(
                try Self.merged([Self.merged(Array(trees.dropFirst())), trees[0]]) == once,
                "seed \(seed)"
            )
            #expect(once.problems.isEmpty, "seed \(seed)")
        }
    }

    @Test func `pruning forgets the vectors of what it forgets, and changes no current revision`() throws {
        for seed in PropertySeeds.of("VERSIONED", 400) {
            for tree in try VersionedTrees(seed: seed).trees {
                for depth in [1, 4, 12] {
                    var pruned = tree
                    TreePolicy(depth: depth).prune(&pruned)
                    #expect(pruned.vectors == tree.vectors.filter { pruned.contains($0.key) }, "seed \(seed)")
                    #expect(pruned.current?.id == tree.current?.id, "seed \(seed), depth \(depth)")
                    var twice = pruned
                    TreePolicy(depth: depth).prune(&twice)
                    #expect(twice == pruned, "seed \(seed), depth \(depth)")
                }
            }
        }
    }

    @Test func `trees with vectors that were pruned differently merge to the same, in any order`() throws {
        for seed in PropertySeeds.of("VERSIONED", 400) {
            let trees = try VersionedTrees(seed: seed, depth: 4).trees
            let once = try Self.merged(trees)
            #expect(try Self.merged(trees.reversed()) == once, "seed \(seed)")
            #expect(try Self.merged([once] + trees) == once, "seed \(seed)")
        }
    }

    @Test func `a tree with vectors survives being stored, and its marks are read and added as in any other`()
        throws
    {
        for seed in PropertySeeds.of("VERSIONED", 300) {
            for var tree in try VersionedTrees(seed: seed).trees {
                guard let current = tree.current, let body = current.body else { continue }
                let ids = tree.nodes.keys.sorted()
                tree.recordMark(of: 3, at: ids[Int(seed) % ids.count])
                let bytes = try #require(RevisionTreeEncoder.encode(tree))
                #expect(bytes[0] == (tree.vectors.isEmpty ? 2 : 5))
                #expect(RevisionTreeDecoder.decode(bytes, currentBody: body) { $0 } == tree, "seed \(seed)")
                #expect(RevisionTreeDecoder.mark(of: 3, in: bytes) == .some(tree.remotes[3]))
                let marked = try #require(RevisionTreeEncoder.markCurrent(at: 2, in: bytes))
                tree.recordMark(of: 2, at: current.id)
                #expect(marked == RevisionTreeEncoder.encode(tree))
            }
        }
    }

    @Test func `bytes that are not a tree with vectors are refused, not trusted`() throws {
        for seed in PropertySeeds.of("VERSIONED", 60) {
            var generator = SeededGenerator(seed: seed)
            for tree in try VersionedTrees(seed: seed).trees where !tree.vectors.isEmpty {
                let bytes = try #require(RevisionTreeEncoder.encode(tree))
                for _ in 0..<60 {
                    var other = bytes
                    if generator.chance(0.3) { other.removeLast(generator.int(1...bytes.count)) }
                    for _ in 0..<generator.int(1...3) where !other.isEmpty {
                        other[generator.int(0...other.count - 1)] = UInt8(generator.int(0...255))
                    }
                    let read = RevisionTreeDecoder.decode(other, currentBody: .emptyObject) { $0 }
                    guard let read else { continue }
                    #expect(read.current != nil)
                    #expect(read.vectors.allSatisfy { read.contains($0.key) && !$0.value.isEmpty })
                    for id in read.nodes.keys { _ = read.versions.state(of: id) }
                }
                #expect(RevisionTreeDecoder.decode(bytes.dropLast(), currentBody: .emptyObject) { $0 } == nil)
            }
        }
    }

    @Test func `a tree that never met a vector is stored as before, and has no vector anywhere`() throws {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: .emptyObject)
        #expect(RevisionTreeEncoder.encode(tree) == nil)
        #expect(tree.knowledge.vectors.isEmpty)
        tree.insertLocal(rev("2-bb"), parent: rev("1-aa"), flags: [], body: .emptyObject)
        #expect(RevisionTreeEncoder.encode(tree)?.first == 2)
        #expect(tree.vectors.isEmpty)
    }

    @Test func `a single revision with a vector is stored with it`() throws {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a")
        let bytes = try #require(RevisionTreeEncoder.encode(tree))
        let read = RevisionTreeDecoder.decode(bytes, currentBody: .emptyObject) { $0 }
        #expect(try read?.vectors == [rev("1-aa"): vector("T1@a")])
    }

    @Test func `what another database says of a revision is united with what is known of it`() throws {
        var (one, other) = (RevisionTree(), RevisionTree())
        try one.insert("1-aa", over: nil, "T5@b; T1@a")
        try other.insert("1-aa", over: nil, "T5@b; T4@c")
        try one.merge(other.knowledge)
        #expect(try one.vectors[rev("1-aa")] == vector("T5@b; T4@c, T1@a"))
        // The same edit, made by two people.
        try other.insert("2-bb", over: "1-aa", "T6@a; T5@b, T4@c")
        try one.insert("2-bb", over: "1-aa", "T7@d; T5@b, T1@a")
        try one.merge(other.knowledge)
        #expect(try one.vectors[rev("2-bb")] == vector("T7@d; T6@a, T5@b, T4@c"))
        // A revision without a vector gets that of the other database.
        var plain = RevisionTree()
        plain.insertLocal(rev("1-aa"), parent: nil, flags: [], body: .emptyObject)
        try plain.merge(one.knowledge)
        #expect(plain.vectors == one.vectors)
    }

    @Test func `vectors of pending revisions are not sent`() throws {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a")
        var arrival = RevisionArrival(history: [rev("1-bb")], flags: [], body: body(2), sender: .loveseat)
        arrival.asksResolver = true
        arrival.knowledge = TreeKnowledge()
        arrival.knowledge?.vectors = [rev("1-bb"): try vector("T2@b")]
        #expect(try tree.insert(arrival) == .pending)
        #expect(tree.vectors.count == 2)
        #expect(try tree.knowledge.vectors == [rev("1-aa"): vector("T1@a")])
    }

    @Test func `a vector whose times nobody may have is refused with the tree that has it`() throws {
        var knowledge = TreeKnowledge()
        knowledge.nodes = [RevisionTree.Node(id: rev("1-aa"), parent: nil, flags: [], body: nil)]
        for time in ["ffffffffff", "8000000000000000"] {
            knowledge.vectors = [rev("1-aa"): try vector("\(time)@a")]
            var tree = RevisionTree()
            #expect(throws: RevisionTree.InsertRefusal.badHistory) { try tree.merge(knowledge) }
        }
    }

    // MARK: Successors on other lines

    @Test func `a revision whose version is part of a deletion's or an edit's does not count beside it`()
        throws
    {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a")
        // The same document as another peer with versions named it, and its edit there.
        try tree.receive("3-dd", "T1@a", isDeleted: true)
        #expect(tree.current?.id == rev("3-dd"))
        try tree.receive("2-bb", "T2@b; T1@a")
        #expect(tree.current?.id == rev("2-bb"))
        #expect(tree.candidates.map(\.node.id) == [rev("2-bb")])
        TreePolicy.standard.prune(&tree)
        #expect(tree.closed == [rev("1-aa"), rev("3-dd")])
        #expect(tree.current?.id == rev("2-bb"))
    }

    @Test func `of two revisions that include each other's version the greater version stays`() throws {
        var tree = RevisionTree()
        try tree.receive("1-ff", "T2@a; T3@b")
        try tree.receive("1-aa", "T3@b; T2@a")
        #expect(tree.current?.id == rev("1-aa"))
    }

    @Test func `an edit by a peer with trees replaces what the version below it includes`() throws {
        var tree = RevisionTree()
        try tree.receive("3-dd", "T1@a", isDeleted: true)
        try tree.receive("1-cc", "T2@b; T1@a")
        tree.insertLocal(rev("2-ee"), parent: rev("1-cc"), flags: [], body: .emptyObject)
        #expect(tree.current?.id == rev("2-ee"))
        #expect(tree.candidates.count == 1)
    }

    @Test func `a document that keeps its branches keeps them whatever their versions are`() throws {
        var tree = RevisionTree()
        try tree.receive("2-bb", "T1@a")
        tree.keepBranches()
        try tree.receive("1-cc", "T2@b; T1@a")
        #expect(tree.current?.id == rev("2-bb"))
        #expect(tree.leaves.count == 2)
    }
}

extension RevisionTree {
    /// Adds an edit with a vector in short notation.
    mutating func insert(
        _ id: String,
        over parent: String?,
        _ short: String,
        flags: Flags = [],
        body: JSONText = .emptyObject
    ) throws {
        RevisionEdit(
            id: rev(id),
            parent: parent.map(rev),
            flags: flags,
            body: body,
            vector: try vector(short)
        )
        .insert(into: &self, by: .standard)
    }

    /// Adds a revision from another database, on a line of its own.
    mutating func receive(_ id: String, _ short: String, isDeleted: Bool = false) throws {
        var knowledge = TreeKnowledge()
        knowledge.nodes = [
            Node(id: rev(id), parent: nil, flags: isDeleted ? .deleted : [], body: .emptyObject)
        ]
        knowledge.vectors = [rev(id): try vector(short)]
        try merge(knowledge)
    }
}
