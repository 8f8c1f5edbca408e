import LoveseatModel
import LoveseatTesting
import Testing

/// The rules R1 to R6 of version-vectors.md §12.1 for vectors alone. Numbers in names are those of §18 (Tests/VERSIONS.md).
@Suite struct VersionRuleTests {
    @Test(arguments: [0, 0.3], [true, false])
    func `73, 79: by the rules for conflicts, all peers end with one state under one name`(
        deletions: Double,
        merges: Bool
    ) throws {
        for hasSkew in [true, false] {
            let plan = RuleMesh.Plan(deletions: deletions, merges: merges, hasSkew: hasSkew)
            var resolutions = 0
            for seed in PropertySeeds.of("RULES", 300) {
                let mesh = try RuleMesh(seed: seed, plan)
                #expect(mesh.problems.isEmpty, "seed \(seed), \(plan)")
                #expect(mesh.rounds != nil, "seed \(seed), \(plan): endless")
                #expect(Set(mesh.states.map(\.vector.current)).count == 1, "seed \(seed), \(plan)")
                resolutions += mesh.resolutions
            }
            #expect(resolutions > 0)
        }
    }

    /// Why a tree adds the vectors of ancestors to that of a revision.
    @Test(arguments: [1_466, 1_707, 1_922, 4_024])
    func `if newer states do not keep what they replace, some peers follow each other in a circle`(
        seed: UInt64
    ) throws {
        var plan = RuleMesh.Plan(deletions: 0.3)
        #expect(try RuleMesh(seed: seed, plan).rounds != nil)
        plan.keepsReplaced = false
        let circle = try RuleMesh(seed: seed, plan)
        #expect(circle.rounds == nil)
        #expect(circle.problems.isEmpty)
    }

    /// Three peers that have the same two states, and merge them with the same or with different results. Then everybody pulls from everybody.
    private struct Merging {
        private(set) var trees: [RevisionTree]
        private var authors: [VersionAuthor]
        private let isSame: Bool
        private(set) var questions = 0
        /// The same moment for all.
        private var wall = VersionNotation.time(6)

        /// All peers have the state T3@b, and pull T4@c.
        init(isSame: Bool) throws {
            self.isSame = isSame
            authors = try ["a", "d", "z"].map { try VersionAuthor(source($0)) }
            var tree = RevisionTree()
            try tree.insert("2-bb", over: nil, "T3@b; T1@a", body: body(1))
            trees = Array(repeating: tree, count: 3)
            var other = RevisionTree()
            try other.insert("2-cc", over: nil, "T4@c; T1@a", body: body(2))
            for index in trees.indices { try pull(at: index, from: other, 9) }
        }

        /// Everybody pulls from everybody.
        mutating func round() throws {
            wall += 1_000_000_000
            for index in trees.indices {
                for other in trees.indices where other != index {
                    try pull(at: index, from: trees[other], other)
                }
            }
        }

        private mutating func pull(at index: Int, from other: RevisionTree, _ remote: Int) throws {
            let node = try #require(other.current)
            let state = other.versions.state(of: node.id)
            try authors[index].see(state.vector, wall: wall)
            var resolution = States.resolution(authors[index], wall: wall)
            if [.same, .older].contains(trees[index].versions.relation(ofAnnounced: state)) {
                let announcement = StateAnnouncement(state, remote: remote)
                try announcement.record(in: &trees[index], by: &resolution)
            } else {
                var arrival = StateArrival(
                    documentID: "x",
                    state: state,
                    flags: [],
                    body: try #require(node.body),
                    sha256: States.sha256
                )
                (arrival.remote, arrival.asksResolver) = (remote, true)
                if try arrival.insert(into: &trees[index], by: &resolution) == .pending {
                    questions += 1
                    let pending = try #require(trees[index].pending.first)
                    let merged = body(isSame ? 100 : 100 * questions)
                    let verdict = ConflictVerdict.merged(body: merged, isDeleted: false, parent: pending.id)
                    try resolution.resolve(pending.id, verdict, in: &trees[index])
                }
            }
            authors[index] = resolution.author
        }

        var names: Set<Version?> {
            Set(trees.map { tree in tree.current.flatMap { tree.versions.version(of: $0.id) } })
        }

        var contents: Set<JSONText?> { Set(trees.map { $0.current?.body }) }
    }

    @Test func `71: three peers that merge a conflict alike at once agree after one round`() throws {
        var peers = try Merging(isSame: true)
        #expect(peers.questions == 3)
        #expect(peers.names.count == 3)
        try peers.round()
        #expect(peers.questions == 3, "nobody is asked again")
        #expect(peers.names.count == 1)
        #expect(peers.contents == [body(100)])
        let trees = peers.trees
        try peers.round()
        #expect(peers.trees.map(\.current) == trees.map(\.current))
    }

    @Test func `71: three peers that merge a conflict differently at once agree after one more round`() throws
    {
        var peers = try Merging(isSame: false)
        for _ in 0..<2 { try peers.round() }
        #expect(peers.names.count == 1)
        #expect(peers.contents.count == 1)
        let questions = peers.questions
        try peers.round()
        #expect(peers.questions == questions)
        #expect(peers.names.count == 1)
    }
}
