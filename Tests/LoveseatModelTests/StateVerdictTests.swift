import LoveseatModel
import Testing

/// How states that peers announce and propose are related to a document. Numbers in comments are those of version-vectors.md §18.
@Suite struct StateVerdictTests {
    /// A document by its name here: nothing, revisions of a tree (the current one first), or a vector with revisions behind it.
    private static func tree(_ short: String, _ revisions: String, isDeleted: Bool = false) throws
        -> RevisionTree
    {
        var tree = RevisionTree()
        if !short.isEmpty || !revisions.isEmpty {
            try tree.take(short, revisions, isDeleted ? nil : 1)
        }
        return tree
    }

    // 33 (§11.1): s and o are answered with 0, n with the ancestors; x with the ancestors or, on the passive side, 409.
    @Test(
        arguments: [
            // No document.
            ("", "", "T1@a", "n"), ("", "", "2-bb", "n"),
            // A vector, and an announced version or vector.
            ("T5@a; T3@b", "", "T5@a", "s"), ("T5@a; T3@b", "", "T5@a; T9@c", "s"),
            ("T5@a; T3@b", "", "T3@b", "o"),
            ("T5@a; T3@b", "", "T2@a; T1@b", "o"), ("T5@a; T3@b", "", "T6@b; T5@a", "n"),
            ("T5@a; T3@b", "", "T6@a", "n"),
            // 34: a version alone, which may be that of an edit of this one.
            ("T5@a; T3@b", "", "T6@c", "x"), ("T5@a; T3@b", "", "T4@b", "x"),
            // A revision of a tree, and an announced version.
            ("", "4-bb 3-aa", "T1@a", "n"), ("", "4-bb 3-aa", "4bb00000000@enc", "s"),
            ("", "4-bb 3-aa", "3aa00000000@enc", "o"),
            ("", "4-bb 3-aa", "5cc00000000@enc", "n"), ("", "4-bb 3-aa", "4cc00000000@enc", "n"),
            ("", "4-bb 3-aa", "4aa00000000@enc", "x"),
            // Two revisions of trees.
            ("", "4-bb 3-aa", "4-bb", "s"), ("", "4-bb 3-aa", "4-cc", "x"), ("", "4-bb 3-aa", "5-cc", "n"),
            ("", "4-bb 3-aa", "3-aa", "o"), ("", "4-bb 3-aa", "3-bb", "x"),
            // A vector, and an announced revision of a tree.
            ("T5@a; T3@b", "4-bb 3-aa", "4-bb", "o"), ("T5@a; T3@b", "4-bb 3-aa", "3-aa", "o"),
            ("T5@a; T3@b", "4-bb 3-aa", "5-cc", "x"), ("T5@a; 4bb00000000@enc", "", "4-bb", "o"),
            ("4bb00000000@enc; T3@b", "", "4-bb", "s"), ("4bb00000000@enc; T3@b", "", "5-cc", "n"),
            ("4bb00000000@enc; T3@b", "", "3-aa", "x"), ("4bb00000000@enc; T3@b", "", "T4@c", "n"),
            // Both include each other: the greater version stays.
            ("T5@a; T6@b", "", "T6@b; T5@a", "n"), ("T6@b; T5@a", "", "T5@a; T6@b", "x"),
        ]
    )
    func `an announcement is here, wanted or in conflict`(
        short: String,
        revisions: String,
        announced: String,
        letter: Character
    ) throws {
        let tree = try Self.tree(short, revisions)
        let state = try StateHistory(VersionNotation.spelled(announced))
        #expect(tree.versions.relation(ofAnnounced: state) == StateRelation(letter: letter))
    }

    // 55, 56 (§11.2): s and o are answered with 304, n with 0, x with 409.
    @Test(
        arguments: [
            ("", "", "T1@a", "", "n"), ("", "", "T2@a", "T1@a", "n"), ("T5@a; T3@b", "", "T5@a", "T3@b", "s"),
            ("T5@a; T3@b", "", "T3@b", "", "o"), ("T5@a; T3@b", "", "T2@a", "", "o"),
            // The parent is the current version.
            ("T5@a; T3@b", "", "T6@c", "T5@a", "n"), ("", "4-bb 3-aa", "T6@c", "4-bb", "n"),
            ("", "4-bb 3-aa", "T6@c", "4bb00000000@enc", "n"), ("", "4-bb 3-aa", "5-cc", "4-bb", "n"),
            ("4bb00000000@enc; T3@b", "", "T6@c", "4-bb", "n"),
            // The vector includes it, whatever the parent is.
            ("T5@a; T3@b", "", "T6@c; T5@a", "", "n"), ("T5@a; T3@b", "", "T6@c; T5@a", "T1@z", "n"),
            ("T5@a; T3@b", "", "T6@b; T5@a", "T3@b", "n"),
            // Neither.
            ("T5@a; T3@b", "", "T6@c", "", "x"), ("T5@a; T3@b", "", "T6@c; T4@a", "T3@b", "x"),
            ("", "4-bb 3-aa", "5-cc", "3-aa", "x"), ("", "4-bb 3-aa", "T6@c", "", "x"),
            ("T5@a; T6@b", "", "T6@b; T5@a", "", "n"), ("T6@b; T5@a", "", "T5@a; T6@b", "", "x"),
        ]
    )
    func `a proposal is here, accepted or refused`(
        short: String,
        revisions: String,
        proposed: String,
        parent: String,
        letter: Character
    ) throws {
        let tree = try Self.tree(short, revisions)
        let state = try StateHistory(VersionNotation.spelled(proposed))
        let parent = parent.isEmpty ? nil : try States.name(parent)
        #expect(tree.versions.relation(ofProposed: state, on: parent) == StateRelation(letter: letter))
    }

    @Test func `a document that was created anew over a deletion is accepted, an edit beside it is not`()
        throws
    {
        let tree = try Self.tree("T5@a; T3@b", "4-bb 3-aa", isDeleted: true)
        func relation(_ proposed: String, on parent: String? = nil) throws -> StateRelation {
            tree.versions.relation(
                ofProposed: try StateHistory(VersionNotation.spelled(proposed)),
                on: try parent.map(States.name)
            )
        }
        #expect(try relation("T2@c") == .newer)
        #expect(try relation("1-dd") == .newer)
        #expect(try relation("T4@b") == .conflict)
        #expect(try relation("T2@c", on: "T1@c") == .conflict)
    }

    @Test func `a revision whose content has not come is wanted, and comes`() throws {
        var tree = RevisionTree()
        var knowledge = TreeKnowledge()
        knowledge.nodes = [RevisionTree.Node(id: rev("2-bb"), parent: nil, flags: [], body: nil)]
        knowledge.vectors = [rev("2-bb"): try vector("T5@a")]
        try tree.merge(knowledge)
        #expect(try tree.versions.relation(ofAnnounced: States.state("T5@a")) == .newer)
        #expect(try tree.take("T5@a", "", 7) == .inserted)
        #expect(tree.current?.body == body(7))
        #expect(tree.nodes.count == 1)
        #expect(try tree.versions.relation(ofAnnounced: States.state("T5@a")) == .same)
    }
}
