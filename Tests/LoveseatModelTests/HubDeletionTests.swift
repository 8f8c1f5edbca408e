import LoveseatModel
import Testing

/// Deletions and old content that come from a hub, and what else stands there.
@Suite struct HubDeletionTests {
    private let old = RevisionID(generation: 1, digest: [0xDD])
    private let deletion = RevisionID(generation: 2, digest: [0xDE])
    private let anew = RevisionID(generation: 1, digest: [0xAA])

    /// A gateway announces the deletion with which a document left a channel, also where the document was made anew since.
    @Test func `a late deletion of another document does not take the place of what the hub took`() throws {
        var tree = RevisionTree()
        tree.insertLocal(anew, parent: nil, flags: [], body: body(1))
        tree.recordMark(of: hub, at: anew)
        try take([deletion, old], in: &tree)
        #expect(tree.current?.id == anew)
    }

    @Test func `a copy of what was deleted here gives way to what it was put on`() throws {
        var tree = RevisionTree()
        try take([old], 1, in: &tree)
        try take([deletion, old], in: &tree)
        try take([anew], 2, in: &tree)
        try take([copyID(old, old, over: anew), anew], 1, in: &tree)
        #expect(tree.current?.id == anew)
    }

    @Test func `what says the same as a deleted revision, on top of something else, is an edit and stands`()
        throws
    {
        var tree = RevisionTree()
        try take([old], 1, in: &tree)
        try take([deletion, old], in: &tree)
        let edit = RevisionID(generation: 2, digest: [0xCC])
        try take([edit, anew], 1, in: &tree)
        #expect(tree.current?.id == edit)
    }

    @Test func `old content that is put back on top of an edit stands`() throws {
        let edit = RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        try take([anew], 1, in: &tree)
        try take([edit, anew], 2, in: &tree)
        let again = RevisionID(generation: 3, digest: [0xAF])
        try take([again, edit], 1, in: &tree)
        #expect(tree.current?.id == again)
    }

    /// Gateway, seed 7504: what only gave way was not given up by the deletion's author.
    @Test func `a hub's deletion gives way to what had given way to its document`() throws {
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        tree.recordMark(of: hub, at: old)
        try take([anew], 2, in: &tree)
        let gone = RevisionID(generation: 2, digest: [0xAD])
        try take([gone, anew], in: &tree)
        #expect(tree.closed == [old])
        #expect(tree.current?.id == gone)
        let back = copyID(old, old, over: gone)
        try take([back, gone], 1, in: &tree)
        #expect(tree.current?.id == back)
    }

    /// A gateway purged a document, and it was made anew and deleted. Then a client brought an older revision of the first one
    /// back.
    @Test func `what a hub made anew and deleted does not delete what is there again`() throws {
        let edit = RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        try take([old], 1, in: &tree)
        tree.insertLocal(edit, parent: old, flags: [], body: body(2))
        tree.recordMark(of: hub, at: edit)
        try take([anew], 3, in: &tree)
        #expect(tree.current?.id == anew)
        let gone = RevisionID(generation: 2, digest: [0xDF])
        try take([gone, anew], in: &tree)
        #expect(tree.current?.id == gone)
        tree.follow(hub, to: old)
        #expect(tree.current?.id == edit)
        #expect(tree.remotes[hub] == old)
    }
}
