import LoveseatModel
import Testing

/// States of peers with versions in documents whose branches are kept for peers of CouchDB's wire (docs/decisions/0009).
@Suite struct KeptStateTests {
    /// A document with two live leaves, of which one has a version here.
    private func tree(_ named: String, _ short: String) throws -> RevisionTree {
        var tree = RevisionTree()
        var knowledge = TreeKnowledge()
        knowledge.nodes = [
            RevisionTree.Node(id: rev("1-aa"), parent: nil, flags: [], body: body(1)),
            RevisionTree.Node(id: rev("1-bb"), parent: nil, flags: [], body: body(2)),
        ]
        knowledge.vectors = [rev(named): try vector(short)]
        try tree.merge(knowledge)
        tree.keepBranches()
        return tree
    }

    private func announce(_ short: String, in tree: inout RevisionTree) throws {
        var resolution = try States.resolution()
        try StateAnnouncement(States.state(short), remote: 1).record(in: &tree, by: &resolution)
        #expect(tree.problems.isEmpty)
    }

    /// CouchDB's wire does not tell versions. So one state has two revisions here, and databases disagree about which of them has the version.
    @Test func `announcements at two databases give up no leaf, and do not delete the document`() throws {
        var one = try tree("1-aa", "T1@a")
        var other = try tree("1-bb", "T1@a")
        try announce("T1@a", in: &one)
        try announce("1aa00000000@enc", in: &other)
        for tree in [one, other] {
            #expect(tree.current?.id == rev("1-bb"))
            #expect(tree.leaves.count == 2)
        }
        // The peers take the current revision for newer than their states.
        #expect(try one.currentVector?.covers(version("T1@a")) == true)
        #expect(try other.currentVector?.covers(version("1aa00000000@enc")) == true)
        try one.merge(other.everything)
        #expect(one.current?.id == rev("1-bb"))
        #expect(one.leaves.allSatisfy { !$0.isDeleted })
    }

    @Test func `a state that arrives in a conflict gives up no leaf`() throws {
        var tree = try tree("1-bb", "T2@b")
        #expect(try tree.take("T3@c", "", 3) == .inserted)
        #expect(tree.leaves.count == 3)
        #expect(tree.leaves.allSatisfy { !$0.isDeleted })
        let current = try #require(tree.currentVector)
        #expect(try current.covers(version("T2@b")) && current.covers(version("T3@c")))
    }

    @Test func `two opposite verdicts of resolvers leave the document alive`() throws {
        var trees: [RevisionTree] = []
        for verdict in [ConflictVerdict.local, .remote] {
            var tree = try tree("1-bb", "T2@b")
            let outcome = try tree.take("T3@c", "", 3) { $0.asksResolver = true }
            #expect(outcome == .pending)
            let pending = try #require(tree.pending.first)
            let kept = verdict == .local ? body(2) : body(3)
            var resolution = try States.resolution()
            try resolution.resolve(pending.id, verdict, in: &tree)
            #expect(tree.current?.body == kept)
            #expect(tree.current?.id.generation == 2)
            let current = try #require(tree.currentVector)
            #expect(try current.current == version(verdict == .local ? "T2@b" : "T3@c"))
            #expect(try current.covers(version("T2@b")) && current.covers(version("T3@c")))
            trees.append(tree)
        }
        try trees[0].merge(trees[1].everything)
        #expect(trees[0].current?.isDeleted == false)
        #expect(trees[0].current?.id.generation == 2)
    }
}
