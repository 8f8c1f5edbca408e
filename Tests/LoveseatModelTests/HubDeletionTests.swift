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

    @Test func `what does not give way after all leaves nothing behind`() throws {
        let edit = RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        tree.insertLocal(edit, parent: old, flags: [], body: body(2))
        tree.recordMark(of: hub, at: edit)
        try take([anew], 3, in: &tree)
        #expect(tree.closed == [edit])
        #expect(tree.node(edit)?.flags.contains(.yielded) == true)
        try take([deletion, old], from: .loveseat, in: &tree)
        #expect(tree.current?.id == anew)
        // Only the deletion would be left, which is of another document.
        try take([copyID(edit, old, over: anew), anew], 2, in: &tree)
        #expect(tree.current?.id == anew)
        #expect(tree.closed == [edit])
        #expect(tree.node(edit)?.flags.contains(.yielded) == true)
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

    /// Simulator with a hub, seeds 6270, 6792, 8240, 8338; with two, 2417.
    @Test func `a deletion does not give way to what its author gave up and another client put beside it`()
        throws
    {
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        try take([anew], 2, from: .loveseat, in: &tree)
        tree.insertLocal(deletion, parent: old, flags: .deleted, body: .emptyObject)
        #expect(tree.closed == [anew])
        tree.recordMark(of: hub, at: deletion)
        tree.follow(hub, to: anew)
        #expect(tree.current?.id == deletion)
        #expect(tree.remotes[hub] == anew)
        // The hub's next answer is its line with the copy.
        try tree.putOnHub(over: anew)
        #expect(tree.current?.isDeleted == true)
        #expect(tree.hasCurrent(hub))
    }

    /// Simulator with a hub, seed 14183: the hub took a client's first revision for a document that was made anew, and its line says nothing
    /// of the deletion any more.
    @Test func `a deletion does not give way to what its author gave up where the hub's line began anew`()
        throws
    {
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        try take([anew], 2, from: .loveseat, in: &tree)
        tree.insertLocal(deletion, parent: old, flags: .deleted, body: .emptyObject)
        tree.recordMark(of: hub, at: deletion)
        try take([copyID(anew, anew, over: old), old], 2, in: &tree)
        #expect(tree.current?.id == deletion)
        #expect(tree.closed == [anew])
    }

    /// Simulator with a hub, seed 14546: the deletion had been put on the line four times, against another revision.
    @Test(arguments: [(1, true), (3, true), (4, false)])
    func `a deletion gives way to what its author gave up only when that is put back a fourth time`(
        _ times: Int,
        _ stands: Bool
    ) throws {
        let edit = RevisionID(generation: 2, digest: [0xCC])
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        try take([anew], 2, from: .loveseat, in: &tree)
        tree.insertLocal(deletion, parent: old, flags: .deleted, body: .emptyObject)
        #expect(tree.closed == [anew])
        var line = quarrel(4, on: [old], about: (deletion, old), with: (edit, old))
        for _ in 1..<times { line = quarrel(1, on: line, about: (deletion, old)) }
        try take(line, in: &tree)
        #expect(tree.current?.id == line[0])
        try take([copyID(anew, anew, over: line[0])] + line, 2, in: &tree)
        #expect(tree.current?.isDeleted == stands)
        #expect(tree.closed == (stands ? [anew] : [deletion]))
    }

    /// Simulator with two hubs, seeds 1696, 3380: each of many clients put it there once more.
    @Test(arguments: [(2, false), (3, true)])
    func `what others put on a hub three times in spite of a deletion gives way here, too`(
        _ times: Int,
        _ givesWay: Bool
    ) throws {
        var tree = RevisionTree()
        tree.insertLocal(anew, parent: nil, flags: [], body: body(1))
        let line = quarrel(times, on: [deletion, old], about: (deletion, old))
        try take(line, in: &tree)
        #expect(tree.current?.isDeleted == givesWay)
        #expect(tree.closed == (givesWay ? [anew] : []))
    }

    /// Simulator with a hub, seed 4002561.
    @Test func `what others put on a hub's line three times is counted if the line was pruned in between`()
        throws
    {
        let policy = TreePolicy(depth: 2)
        var tree = RevisionTree()
        tree.insertLocal(anew, parent: nil, flags: [], body: body(1))
        let line = quarrel(2, on: [deletion, old], about: (deletion, old))
        try take(line, in: &tree, by: policy)
        #expect(tree.current?.isDeleted == false)
        let next = quarrel(1, on: line, about: (deletion, old))
        try take(Array(next.prefix(3)), in: &tree, by: policy)
        #expect(tree.current?.id == next[0])
        #expect(tree.closed == [anew])
    }

    @Test func `pruning forgets a copy that has the content, and not the content`() throws {
        let policy = TreePolicy(depth: 2)
        var tree = RevisionTree()
        tree.insertLocal(anew, parent: nil, flags: [], body: body(1))
        let line = quarrel(1, on: [deletion, old], about: (deletion, old))
        try take(line, in: &tree, by: policy)
        // The content has moved from the original to the copy.
        #expect(tree.current?.body == body(1))
        let next = quarrel(6, on: line, about: (deletion, old))
        try take(Array(next.prefix(13)), in: &tree, by: policy)
        #expect(!tree.contains(line[1]))
        #expect(tree.candidates.contains { $0.original == anew && $0.node.body == body(1) })
    }

    /// Simulator with a hub, seed 4001000: a client that knows only the hub's line does not know which revisions in it are deletions.
    @Test(arguments: [true, false])
    func `what replaced a revision does not give way to a copy of that revision`(_ isDeleted: Bool) throws {
        let mine = isDeleted ? deletion : RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        try take([anew], 2, from: .loveseat, in: &tree)
        tree.insertLocal(
            mine,
            parent: old,
            flags: isDeleted ? .deleted : [],
            body: isDeleted ? .emptyObject : body(3)
        )
        tree.recordMark(of: hub, at: mine)
        try take([copyID(old, old, over: mine), mine], 1, in: &tree)
        #expect(tree.current?.id == mine)
        #expect(tree.closed == [anew])
        #expect(!tree.hasCurrent(hub))
    }

    /// Gateway with backups, seeds 14295 and 14297: two clients put their revisions there in turns, and neither gave way.
    @Test func `a revision gives way to a copy of what something else replaced`() throws {
        let edit = RevisionID(generation: 2, digest: [0xEE])
        var tree = RevisionTree()
        tree.insertLocal(old, parent: nil, flags: [], body: body(1))
        tree.insertLocal(edit, parent: old, flags: [], body: body(2))
        tree.giveUp(edit)
        tree.insertLocal(anew, parent: nil, flags: [], body: body(3))
        tree.recordMark(of: hub, at: anew)
        try take([copyID(old, old, over: anew), anew], 1, in: &tree)
        #expect(tree.closed == [edit, anew])
        // Of the document that the hub has, this is the newest revision that is known.
        #expect(tree.current?.id == edit)
    }

    /// Gateway with backups, seed 15698: what a line has between two copies is unknown, and everything else was given up.
    @Test(arguments: [(3, false), (4, true)])
    func `a deletion that a hub gets again and again stands in for an unknown content`(
        _ times: Int,
        _ standsIn: Bool
    ) throws {
        var tree = RevisionTree()
        try take([anew], 1, from: .loveseat, in: &tree)
        let gone = RevisionID(generation: 2, digest: [0xAD])
        let line = quarrel(times, on: [deletion, old], about: (gone, anew))
        try take(line, in: &tree)
        tree.giveUp(anew)
        tree.giveUp(line[0])
        #expect(tree.rule.lacksCurrentBody)
        #expect(tree.current?.isDeleted == standsIn)
    }

    /// A hub's line, newest first, on which copies of a live revision and of a deletion were put in turn.
    private func quarrel(
        _ times: Int,
        on below: [RevisionID],
        about gone: (deletion: RevisionID, origin: RevisionID),
        with live: (id: RevisionID, origin: RevisionID)? = nil
    ) -> [RevisionID] {
        var line = below
        let live = live ?? (anew, anew)
        for _ in 0..<times {
            line.insert(copyID(live.id, live.origin, over: line[0]), at: 0)
            line.insert(copyID(gone.deletion, gone.origin, over: line[0]), at: 0)
        }
        return line
    }
}
