import LoveseatModel
import LoveseatTesting
import Testing

/// Documents with many leaves, as peers of CouchDB's wire bring them.
@Suite struct ManyBranchesTests {
    /// What must be equal, whether revisions come at once or one after the other.
    private struct State: Equatable {
        var parents: [RevisionID: RevisionID?] = [:]
        var flags: [RevisionID: RevisionTree.Flags] = [:]
        var bodies: [RevisionID: JSONText] = [:]
        var closed: Set<RevisionID> = []
        var current: RevisionID?

        init(_ tree: RevisionTree) {
            for (id, node) in tree.nodes {
                parents[id] = node.parent
                flags[id] = node.flags
                bodies[id] = node.body
            }
            closed = tree.closed
            current = tree.current?.id
        }
    }

    private static func id(_ generation: Int, _ name: Int) -> RevisionID {
        RevisionID(generation: UInt32(generation), digest: [UInt8(name >> 8), UInt8(name & 255)])
    }

    /// Histories that branch off one another, with repetitions, joins, holes and nonsense.
    private static func branches(_ generator: inout SeededGenerator, _ count: Int) -> [RevisionBranch] {
        var lines: [[RevisionID]] = [[id(1, 1)]]
        var branches: [RevisionBranch] = []
        for number in 0..<count {
            var line = generator.pick(lines)
            if generator.chance(0.7) { line = Array(line.dropFirst(generator.pick([0, 1, 1, 2]))) }
            if line.isEmpty { line = [id(1, generator.pick([1, 1, 1, 2]))] }
            for _ in 0..<generator.pick([1, 1, 1, 2, 4]) {
                let next = Int(line[0].generation) + 1
                line.insert(id(next, generator.chance(0.1) ? 7 : number + 100), at: 0)
            }
            lines.append(line)
            var history = line
            if generator.chance(0.1) { history = Array(history.prefix(2)) }
            if generator.chance(0.03) { history.swapAt(0, history.count - 1) }
            let isDeleted = generator.chance(0.2)
            branches.append(
                RevisionBranch(
                    history: history,
                    flags: isDeleted ? .deleted : [],
                    body: isDeleted ? .emptyObject : JSONText(canonical: ["by": .string(history[0].text)])
                )
            )
            if generator.chance(0.1) { branches.append(generator.pick(branches)) }
        }
        return branches
    }

    @Test(arguments: 1...300 as ClosedRange<UInt64>)
    func `revisions that come at once make the same tree as one after the other`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var (atOnce, single) = (RevisionTree(), RevisionTree())
        let policy = TreePolicy(depth: 1_000)
        for _ in 0..<generator.pick([1, 2, 4]) {
            let branches = Self.branches(&generator, generator.pick([1, 3, 10, 40]))
            let results = RevisionBranch.insert(branches, into: &atOnce, by: policy)
            let expected = branches.map { branch -> Result<Bool, RevisionTree.InsertRefusal> in
                // A tree of which a revision was refused is not stored.
                let before = single
                do throws(RevisionTree.InsertRefusal) {
                    return .success(try branch.insert(into: &single, by: policy))
                } catch {
                    single = before
                    return .failure(error)
                }
            }
            #expect(results == expected)
            #expect(State(atOnce) == State(single))
            #expect(atOnce.problems == single.problems)
        }
    }

    @Test func `of more leaves than are kept the first stay, and the others are refused`() {
        var tree = RevisionTree()
        let branches = (0..<RevisionTree.keptLeaves + 50).map { number in
            RevisionBranch(
                history: [Self.id(2, number), Self.id(1, 1)],
                flags: [],
                body: JSONText(canonical: ["n": JSONValue(number)])
            )
        }
        let results = RevisionBranch.insert(branches, into: &tree, by: TreePolicy(depth: 1_000))
        #expect(results.prefix(RevisionTree.keptLeaves).allSatisfy { $0 == .success(true) })
        #expect(results.dropFirst(RevisionTree.keptLeaves).allSatisfy { $0 == .failure(.conflict) })
        #expect(tree.leaves.count == RevisionTree.keptLeaves)
    }

    @Test func `the order of CouchDB is by generation and bytes`() throws {
        let texts = ["2-" + String(repeating: "0a", count: 16), "2-" + String(repeating: "f0", count: 16)]
        let (low, high) = (try #require(RevisionID(texts[0])), try #require(RevisionID(texts[1])))
        let plain = try #require(RevisionID("2-zz"))
        #expect(low.ranksBehind(high))
        #expect(!high.ranksBehind(low))
        #expect(plain.ranksBehind(high) == (plain.rank < high.rank))
        #expect(low.ranksBehind(plain) == (low.rank < plain.rank))
    }
}
