import LoveseatModel
import Testing

/// The names of revisions that verdicts on conflicts created, and what they say about peers that do not agree.
@Suite struct VerdictNameTests {
    private static func sha1(_ bytes: [UInt8]) -> [UInt8] { Array(States.sha256(bytes).prefix(20)) }

    /// The name of a verdict for a revision and against another one.
    private func verdict(over parent: RevisionID, against other: RevisionID, _ number: UInt8 = 1)
        -> RevisionID
    {
        VerdictName.id(
            ofEdit: RevisionID(generation: parent.generation + 1, digest: [number]),
            over: parent,
            givingUp: [other],
            sha1: Self.sha1
        )
    }

    private func isVerdict(_ id: RevisionID, over parent: RevisionID) -> Bool {
        VerdictName.isVerdict(id, over: parent, sha1: Self.sha1)
    }

    @Test func `a verdict is recognised on top of its parent, and on no other revision`() {
        let (mine, theirs) = (rev("2-bb"), rev("2-cc"))
        let id = verdict(over: mine, against: theirs)
        #expect(id.generation == 3)
        #expect(isVerdict(id, over: mine))
        #expect(!isVerdict(id, over: theirs))
        #expect(!isVerdict(id, over: rev("1-aa")))
        // Of another generation it is another revision.
        for generation in [2, 4] { #expect(!isVerdict(rev("\(generation)-\(id.digest)"), over: mine)) }
        #expect(!isVerdict(rev("3-01"), over: mine))
        #expect(!isVerdict(rev("4294967295-01"), over: rev("4294967295-02")))
    }

    @Test func `rounds of contradicting verdicts are counted, and each needs both sides`() throws {
        var tree = RevisionTree()
        var leaves = [rev("2-bb"), rev("2-cc")]
        for leaf in leaves { try take([leaf, rev("1-aa")], 1, from: .loveseat, in: &tree) }
        func rounds() -> Int {
            VerdictName.disagreements(about: leaves[0], and: leaves[1], in: tree, sha1: Self.sha1)
        }
        #expect(rounds() == 0)
        for round in 1...3 {
            let before = leaves
            for (side, other) in [(0, 1), (1, 0)] {
                leaves[side] = verdict(over: before[side], against: before[other])
                var knowledge = TreeKnowledge()
                knowledge.nodes = [.init(id: leaves[side], parent: before[side], flags: [], body: body(side))]
                knowledge.nodes.append(.init(id: before[side], parent: nil, flags: [], body: nil))
                knowledge.closed = [before[other]]
                try tree.merge(knowledge)
                // Nobody contradicts the first of two.
                if side == 0 { #expect(rounds() == 0) }
            }
            #expect(rounds() == round)
        }
        // An edit of one of them is no verdict.
        try take([rev("6-ee"), leaves[0]], 1, from: .loveseat, in: &tree)
        leaves[0] = rev("6-ee")
        #expect(rounds() == 0)
    }
}
