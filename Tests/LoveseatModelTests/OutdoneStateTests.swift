import LoveseatModel
import Testing

/// States that have lost here, at peers that compare nothing but vectors (docs/decisions/0015).
@Suite struct OutdoneStateTests {
    /// T3@b was made of T1@a, and is the current state.
    private func line() throws -> RevisionTree {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a", body: body(0))
        try tree.insert("2-bb", over: "1-aa", "T3@b; T1@a", body: body(1))
        return tree
    }

    private func announce(_ short: String, in tree: inout RevisionTree) throws {
        var resolution = try States.resolution()
        try StateAnnouncement(States.state(short), remote: 1).record(in: &tree, by: &resolution)
        #expect(tree.problems.isEmpty)
    }

    @Test func `of two states that include each other the current one gets a version that includes both`()
        throws
    {
        var tree = try line()
        try announce("T1@a; T3@b", in: &tree)
        #expect(try tree.currentVector == vector("T6@d; T3@b, T1@a"))
        #expect(tree.current?.body == body(1))
        #expect(tree.current.map { tree.original($0.id) } == rev("2-bb"))
        // Nothing is left to be done.
        let after = tree
        try announce("T1@a; T3@b", in: &tree)
        #expect(tree.nodes == after.nodes)
        #expect(tree.vectors == after.vectors)
    }

    @Test func `the new version is no edit: an edit of the original by somebody else replaces it`() throws {
        var tree = try line()
        try announce("T1@a; T3@b", in: &tree)
        let copy = try #require(tree.current)
        tree.insertLocal(rev("3-cc"), parent: rev("2-bb"), flags: [], body: body(2))
        #expect(tree.current?.id == rev("3-cc"))
        #expect(tree.candidates.count == 1)
        #expect(tree.contains(copy.id))
    }

    @Test func `a peer that has the original takes the new version for newer, and its edit is one here`()
        throws
    {
        var tree = try line()
        try announce("T1@a; T3@b", in: &tree)
        #expect(try tree.versions.relation(ofProposed: States.state("T3@b; T1@a"), on: nil) == .same)
        #expect(try tree.take("T7@c; T3@b", "", 3) == .inserted)
        #expect(tree.current?.body == body(3))
        #expect(tree.pending.isEmpty)
    }

    @Test
    func `of versions that stand for revisions the vector gets the one that the peer has, if it is greater`()
        throws
    {
        var tree = RevisionTree()
        tree.insertLocal(rev("1-ff"), parent: nil, flags: [], body: body(0))
        tree.insertLocal(rev("1-aa"), parent: nil, flags: [], body: body(0))
        try tree.insert("2-aa", over: "1-aa", "T1@b; 1aa00000000@enc", body: body(1))
        #expect(tree.current?.id == rev("2-aa"))
        try announce("1ff00000000@enc", in: &tree)
        #expect(try tree.currentVector == vector("T1@b; 1ff00000000@enc"))
        #expect(tree.current?.id == rev("2-aa"))
    }

    @Test
    func
        `a state that had lost is accepted from a peer that decided for it after it had seen the current one`()
        throws
    {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a", body: body(0))
        try tree.insert("1-bb", over: nil, "T3@b; T1@a", body: body(1))
        #expect(tree.current?.id == rev("1-bb"))
        let state = try States.state("T1@a; T3@b")
        let name = try States.name("T3@b")
        #expect(tree.versions.relation(ofProposed: state, on: nil) == .older)
        #expect(tree.versions.relation(ofProposed: state, on: name) == .newer)
        let outcome = try tree.take("T1@a; T3@b", "", 0) {
            ($0.parent, $0.refusesConflicts) = (name, true)
        }
        #expect(outcome == .inserted)
        #expect(tree.current?.body == body(0))
        // Everybody who has the state that it replaces takes it for newer.
        #expect(try tree.currentVector == vector("T6@d; T3@b, T1@a"))
    }

    @Test func `a peer that decides for a state of which the current one was made undoes nothing`() throws {
        let tree = try line()
        let name = try States.name("T3@b")
        for short in ["T1@a", "T1@a; T3@b"] {
            let state = try States.state(short)
            #expect(tree.versions.relation(ofProposed: state, on: name) == .older)
            #expect(tree.versions.insists(state, on: name))
            #expect(!tree.versions.insists(state, on: nil))
        }
    }

    @Test(arguments: [("T3@b; T1@a", "T1@a; T3@b"), ("2bb00000000@enc; T1@a", "T1@a; 2bb00000000@enc")])
    func `an edit of the original includes the version of the copy`(_ current: String, _ lost: String) throws
    {
        var tree = RevisionTree()
        try tree.insert("1-aa", over: nil, "T1@a", body: body(0))
        try tree.insert("2-bb", over: "1-aa", current, body: body(1))
        try announce(lost, in: &tree)
        let copied = try #require(tree.currentVector)
        #expect(try copied.current == version("T6@d"))
        tree.insertLocal(rev("3-cc"), parent: rev("2-bb"), flags: [], body: body(2))
        let state = tree.versions.state(of: rev("3-cc"))
        #expect(state.vector.current == rev("3-cc").encodedVersion)
        #expect(state.vector.relation(to: copied) == .newer)
    }

    @Test func `a revision that a peer refuses gets one new version of each database`() throws {
        var tree = try line()
        var (one, other) = try (States.resolution(), States.resolution(VersionAuthor(source("c")), wall: 1))
        try one.renew(in: &tree)
        #expect(try tree.currentVector == vector("T6@d; T3@b, T1@a"))
        try other.renew(in: &tree)
        let renewed = tree
        for _ in 0..<3 {
            try one.renew(in: &tree)
            try other.renew(in: &tree)
        }
        #expect(tree.nodes == renewed.nodes)
        #expect(tree.current.map { tree.original($0.id) } == rev("2-bb"))
        #expect(tree.problems.isEmpty)
    }

    @Test func `a revision that came without its version is recognised by its name`() throws {
        var tree = RevisionTree()
        let made = try States.id("T1@a")
        tree.insertLocal(made, parent: nil, flags: [], body: body(0))
        tree.insertLocal(rev("2-bb"), parent: made, flags: [], body: body(1))
        // Its author did not see that the edit was made of it, and keeps it.
        let outcome = try tree.take("T1@a; 2bb00000000@enc", "", 0) {
            ($0.parent, $0.refusesConflicts) = (.revision(rev("2-bb")), true)
        }
        #expect(outcome == .alreadyPresent)
        #expect(tree.current?.body == body(1))
        #expect(try tree.currentVector?.relation(to: vector("T1@a; 2bb00000000@enc")) == .newer)
    }
}
