import LoveseatModel
import Testing

/// Leaves about which nobody has decided, and tombstones that only say that a leaf has lost (docs/decisions/0009).
@Suite struct UndecidedLeafTests {
    private func rev(_ text: String) throws -> RevisionID { try #require(RevisionID(text)) }

    private func node(_ id: String, over parent: String? = nil, deleted: Bool = false, hasBody: Bool = true)
        throws -> RevisionTree.Node
    {
        RevisionTree.Node(
            id: try rev(id),
            parent: try parent.map(rev),
            flags: deleted ? .deleted : [],
            body: !hasBody ? nil : deleted ? .emptyObject : JSONText(canonical: ["rev": .string(id)])
        )
    }

    private func tree(_ nodes: RevisionTree.Node...) throws -> RevisionTree {
        var knowledge = TreeKnowledge()
        knowledge.nodes = nodes
        var tree = RevisionTree()
        try tree.merge(knowledge)
        return tree
    }

    private let policy = TreePolicy()

    private func insert(_ history: [String], deleted: Bool = false, in tree: inout RevisionTree) throws
        -> Bool
    {
        let branch = try RevisionBranch(
            history: history.map(rev),
            flags: deleted ? .deleted : [],
            body: deleted ? .emptyObject : JSONText(canonical: ["rev": .string(history[0])])
        )
        return try branch.insert(into: &tree, by: policy)
    }

    @Test func `a live leaf of another document that has only lost is undecided`() throws {
        var tree = try tree(node("1-bb"), node("1-aa"))
        #expect(tree.rule.undecidedLeaves == [try rev("1-aa")])
        tree.insertLocal(try rev("2-cc"), parent: try rev("1-bb"), flags: [], body: .emptyObject)
        #expect(tree.rule.undecidedLeaves == [])
        #expect(tree.closed == [try rev("1-aa")])
    }

    @Test func `a leaf that waits for its content while a deletion is shown in its place is undecided`()
        throws
    {
        let tree = try tree(
            node("1-bb", hasBody: false),
            node("1-aa", hasBody: false),
            node("2-cc", over: "1-bb", deleted: true)
        )
        #expect(tree.current?.id == (try rev("2-cc")))
        #expect(tree.rule.undecidedLeaves == [try rev("1-aa")])
    }

    @Test func `a live leaf that lost against its own document is undecided, unless a deletion won`() throws {
        let edits = try tree(node("1-aa"), node("2-bb", over: "1-aa"), node("2-cc", over: "1-aa"))
        #expect(edits.rule.undecidedLeaves == [try rev("2-bb")])
        let deletion = try tree(
            node("1-aa"),
            node("2-bb", over: "1-aa"),
            node("2-cc", over: "1-aa", deleted: true)
        )
        #expect(deletion.rule.undecidedLeaves == [])
    }

    @Test func `all leaves are kept when a peer has one that has only lost here`() throws {
        var tree = try tree(node("1-bb"), node("1-aa"))
        #expect(try insert(["1-aa"], in: &tree))
        #expect(tree.keepsBranches)
        #expect(!tree.closed.contains(try rev("1-aa")))
        #expect(try !insert(["1-aa"], in: &tree))
    }

    @Test func `all leaves are kept when a peer has an ancestor of one that has only lost here`() throws {
        var tree = try tree(node("3-bb"), node("2-aa", over: "1-aa"), node("1-aa", hasBody: false))
        #expect(try insert(["1-aa"], in: &tree))
        #expect(tree.keepsBranches)
        #expect(!tree.closed.contains(try rev("2-aa")))
    }

    @Test func `a leaf that has only lost stays open when another one makes that all are kept`() throws {
        var tree = try tree(node("1-bb"), node("1-aa"))
        #expect(try insert(["1-cc"], in: &tree))
        #expect(tree.keepsBranches)
        #expect(!tree.closed.contains(try rev("1-aa")))
    }

    @Test func `a peer's edit on top of the current deletion does not lose against another deletion`() throws
    {
        var tree = try tree(
            node("1-aa"),
            node("2-bb", over: "1-aa", deleted: true),
            node("2-cc", over: "1-aa", deleted: true)
        )
        #expect(tree.current?.id == (try rev("2-cc")))
        #expect(try insert(["3-dd", "2-cc", "1-aa"], in: &tree))
        #expect(tree.keepsBranches)
        #expect(tree.current?.id == (try rev("3-dd")))
        #expect(try insert(["4-ff", "3-ee", "2-cc", "1-aa"], deleted: true, in: &tree))
        #expect(tree.current?.id == (try rev("3-dd")))
        #expect(!tree.closed.contains(try rev("3-dd")))
    }

    @Test
    func `a peer's edit on top of the current deletion keeps no leaves if the other deletion was given up`()
        throws
    {
        var tree = try tree(
            node("1-aa"),
            node("2-bb", over: "1-aa", deleted: true),
            node("2-cc", over: "1-aa", deleted: true)
        )
        tree.closeTombstone(try rev("2-bb"))
        #expect(try insert(["3-dd", "2-cc", "1-aa"], in: &tree))
        #expect(!tree.keepsBranches)
        #expect(tree.current?.id == (try rev("3-dd")))
    }

    @Test func `a tombstone that only closes a leaf deletes no other leaf`() throws {
        var tree = try tree(
            node("1-aa", hasBody: false),
            node("2-bb", over: "1-aa"),
            node("2-cc", over: "1-aa"),
            node("3-dd", over: "2-bb", deleted: true)
        )
        #expect(tree.current?.id == (try rev("3-dd")))
        tree.closeTombstone(try rev("3-dd"))
        #expect(tree.current?.id == (try rev("2-cc")))
    }

    @Test func `the trees of two databases do not agree while a pull can bring the content of a leaf`() throws
    {
        var one = try tree(node("1-bb"))
        var other = try tree(node("1-bb"))
        #expect(try insert(["1-aa"], in: &other))
        let answer = other.knowledge.keepingBody(of: try rev("1-bb"))
        var pulling = one
        #expect(try !pulling.merge(answer, current: try rev("1-bb"), remote: 1, pulls: true, by: policy))
        #expect(pulling == one)
        #expect(try one.merge(answer, current: try rev("1-bb"), remote: 1, by: policy))
        #expect(one.rule.awaitsLeaf)
        let before = one
        try one.merge(other.knowledge, by: policy)
        #expect(!one.rule.awaitsLeaf)
        #expect(one.rule.completes(before))
    }
}
