import LoveseatModel
import Testing

/// What is known by its name only, because a filter, a right or its blobs kept the content away.
@Suite struct UnseenContentTests {
    private let mine = RevisionID(generation: 2, digest: [0xB0])
    private let theirs = RevisionID(generation: 1, digest: [0xA0])
    private let deletion = RevisionID(generation: 3, digest: [0xBD])

    private func body(_ number: Int) -> JSONText { JSONText(canonical: ["n": JSONValue(number)]) }

    /// A tree with a document of its own, and another one of that name.
    private func tree(_ content: JSONText?) throws -> RevisionTree {
        var tree = RevisionTree()
        tree.insertLocal(mine, parent: nil, flags: [], body: body(1))
        var knowledge = TreeKnowledge()
        knowledge.nodes = [
            RevisionTree.Node(id: mine, parent: nil, flags: [], body: nil),
            RevisionTree.Node(id: theirs, parent: nil, flags: [], body: content),
        ]
        _ = try tree.hear(knowledge, current: mine, remote: 1)
        return tree
    }

    @Test func `a deletion does not decide against content that never arrived`() throws {
        var tree = try tree(nil)
        tree.insertLocal(deletion, parent: mine, flags: .deleted, body: .emptyObject)
        #expect(tree.closed.isEmpty)
        var other = RevisionTree()
        other.insertLocal(theirs, parent: nil, flags: [], body: body(2))
        _ = try other.hear(tree.knowledge, current: theirs, remote: 1)
        #expect(other.current?.id == theirs)
    }

    @Test func `a deletion decides against content that is here`() throws {
        var tree = try tree(body(2))
        tree.insertLocal(deletion, parent: mine, flags: .deleted, body: .emptyObject)
        #expect(tree.closed == [theirs])
        #expect(tree.current?.isDeleted == true)
    }
}
