import LoveseatModel
import LoveseatTesting
import Testing

/// Rules that hold for every tree, tried on random ones.
@Suite struct RevisionTreePropertyTests {
    /// Random edits, hub copies, verdicts and merges of a document at several peers; what each of them knows.
    private static func trees(_ generator: inout SeededGenerator, prunes: Bool = false) throws
        -> [RevisionTree]
    {
        var trees = (0..<generator.int(2...4)).map { _ in RevisionTree() }
        var number: UInt32 = 0
        for _ in 0..<generator.int(4...40) {
            let index = generator.int(0...trees.count - 1)
            number += 1
            let current = trees[index].current
            switch generator.int(0...9) {
            case 0...4:
                let parent = generator.chance(0.1) && trees[index].isEmpty ? nil : current?.id
                trees[index].insertLocal(
                    revision((parent?.generation ?? 0) + 1, number),
                    parent: parent,
                    flags: parent != nil && generator.chance(0.3) ? .deleted : [],
                    body: JSONText(canonical: ["n": JSONValue(Int(number))])
                )
            case 5:
                // Somebody else's line, of which a part came.
                let depth = UInt32(generator.int(1...6))
                var arrival = RevisionArrival(
                    history: (0..<depth).map { revision(depth - $0, 1_000 + number) },
                    flags: generator.chance(0.3) ? .deleted : [],
                    body: JSONText(canonical: ["n": JSONValue(Int(number))]),
                    sender: .loveseat
                )
                arrival.asksResolver = false
                _ = try trees[index].insert(arrival)
            case 6:
                guard let current,
                    let other = trees[index].candidates.first(where: { $0.node.id != current.id })
                else { continue }
                try trees[index].putOnHub(over: other.node.id)
            default:
                let other = generator.int(0...trees.count - 1)
                try trees[index].merge(trees[other].everything)
            }
            if prunes { TreePolicy(depth: 6).prune(&trees[index]) }
        }
        return trees
    }

    private static func revision(_ generation: UInt32, _ number: UInt32) -> RevisionID {
        RevisionID(
            generation: generation,
            digest: (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        )
    }

    private static func merged(_ trees: [RevisionTree]) throws -> RevisionTree {
        var all = RevisionTree()
        for tree in trees { try all.merge(tree.everything) }
        return all
    }

    private static func forgettingMarks(_ tree: RevisionTree) -> RevisionTree {
        var tree = tree
        tree.forgetRemote(1)
        return tree
    }

    @Test func `merging is commutative, associative and idempotent`() throws {
        for seed in UInt64(1)...400 {
            var generator = SeededGenerator(seed: seed)
            let trees = try Self.trees(&generator).map(Self.forgettingMarks)
            let once = try Self.merged(trees)
            #expect(try Self.merged(trees.reversed()) == once)
            #expect(try Self.merged(trees + trees) == once)
            let (first, rest) = (trees[0], Array(trees.dropFirst()))
            #expect(try Self.merged([Self.merged(rest), first]) == once)
            #expect(try Self.merged(trees.reversed()).current == once.current)
        }
    }

    @Test func `trees that were pruned differently merge to the same, in any order`() throws {
        for seed in UInt64(1)...400 {
            var generator = SeededGenerator(seed: seed)
            let trees = try Self.trees(&generator, prunes: true).map(Self.forgettingMarks)
            let once = try Self.merged(trees)
            #expect(try Self.merged(trees.reversed()) == once)
            #expect(try Self.merged([once] + trees) == once)
        }
    }

    @Test func `pruning changes no current revision`() throws {
        for seed in UInt64(1)...400 {
            var generator = SeededGenerator(seed: seed)
            for tree in try Self.trees(&generator) {
                for depth in 4...12 {
                    var pruned = tree
                    TreePolicy(depth: depth).prune(&pruned)
                    #expect(pruned.current == tree.current, "depth \(depth)")
                    var twice = pruned
                    TreePolicy(depth: depth).prune(&twice)
                    #expect(twice == pruned, "depth \(depth)")
                }
            }
        }
    }

    @Test func `revisions that are put back add no leaf, and take no revision off a line`() throws {
        for seed in PropertySeeds.of("ASIDE", 400) {
            var generator = SeededGenerator(seed: seed)
            for var tree in try Self.trees(&generator) where !tree.isEmpty {
                var policy = TreePolicy(depth: 4)
                policy.depthWithAside = 1_000
                policy.prune(&tree)
                let ids = tree.nodes.keys.sorted()
                var rows = tree.putAside
                // Rows of lines that have gone another way since, and of revisions that are elsewhere by now.
                for number in 0..<UInt32(generator.int(0...6)) {
                    let child = generator.pick(ids)
                    let other = Self.revision(
                        UInt32(generator.int(1...Int(child.generation))),
                        9_000 + number
                    )
                    let id = generator.chance(0.5) ? generator.pick(ids) : other
                    rows.append(RevisionTree.AsideRevision(id: id, child: child, flags: []))
                }
                rows.sort { $0.id > $1.id }
                var whole = tree
                whole.putBack(rows)
                #expect(whole.problems == tree.problems, "seed \(seed)")
                let leaves = Set(tree.leaves.map(\.id))
                #expect(leaves.isSuperset(of: whole.leaves.map(\.id)), "seed \(seed)")
                let keepsLines = ids.allSatisfy { Set(whole.line($0)).isSuperset(of: tree.line($0)) }
                #expect(keepsLines, "seed \(seed)")
            }
        }
    }

    @Test func `a tree survives being stored`() throws {
        for seed in UInt64(1)...200 {
            var generator = SeededGenerator(seed: seed)
            for var tree in try Self.trees(&generator) {
                guard let current = tree.current, let body = current.body else { continue }
                tree.recordMark(of: 3, at: current.id)
                guard let bytes = RevisionTreeEncoder.encode(tree) else { continue }
                let again = RevisionTreeDecoder.decode(bytes, currentBody: body) { $0 }
                #expect(again == tree)
            }
        }
    }

    @Test func `a mark is added to a stored tree as it is to the tree`() throws {
        for seed in UInt64(1)...200 {
            var generator = SeededGenerator(seed: seed)
            for var tree in try Self.trees(&generator) {
                guard let current = tree.current, current.body != nil else { continue }
                for remote in [4, 2, 300, 4] {
                    guard let bytes = RevisionTreeEncoder.encode(tree) else { break }
                    let marked = RevisionTreeEncoder.markCurrent(at: remote, in: bytes)
                    guard tree.remotes[remote] == nil else {
                        #expect(marked == nil)
                        continue
                    }
                    tree.recordMark(of: remote, at: current.id)
                    #expect(marked == RevisionTreeEncoder.encode(tree))
                }
            }
        }
    }

    @Test func `a mark is read from a stored tree without the rest of it`() throws {
        for seed in UInt64(1)...200 {
            var generator = SeededGenerator(seed: seed)
            for var tree in try Self.trees(&generator) where tree.current != nil {
                for remote in 1...3 {
                    tree.recordMark(
                        of: remote,
                        at: tree.nodes.keys.sorted()[generator.int(0...tree.nodes.count - 1)]
                    )
                }
                guard let bytes = RevisionTreeEncoder.encode(tree) else { continue }
                for remote in 1...4 {
                    let mark = try #require(RevisionTreeDecoder.mark(of: remote, in: bytes))
                    #expect(mark == tree.remotes[remote])
                }
            }
        }
    }

    @Test func `bytes that are no tree are refused, not trusted`() throws {
        for seed in UInt64(1)...100 {
            var generator = SeededGenerator(seed: seed)
            for tree in try Self.trees(&generator) {
                guard var bytes = RevisionTreeEncoder.encode(tree) else { continue }
                for _ in 0..<20 {
                    bytes[generator.int(0...bytes.count - 1)] = UInt8(generator.int(0...255))
                    _ = RevisionTreeDecoder.mark(of: 1, in: bytes)
                    // Whatever it reads is a tree whose walks end.
                    guard
                        let read = RevisionTreeDecoder.decode(
                            bytes,
                            currentBody: .emptyObject,
                            closing: { $0 }
                        )
                    else { continue }
                    #expect(read.current != nil)
                }
            }
        }
    }
}
