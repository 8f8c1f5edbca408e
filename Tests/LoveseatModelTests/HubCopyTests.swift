import LoveseatModel
import Testing

/// Copies on a hub's line, and what is known of the documents that lie on top of each other there.
@Suite struct HubCopyTests {
    private let first = RevisionID(generation: 1, digest: [0xA1])
    private let deletion = RevisionID(generation: 2, digest: [0xAD])
    private let other = RevisionID(generation: 1, digest: [0x0B])
    private let edit = RevisionID(generation: 2, digest: [0xE1])

    private func delete(_ id: RevisionID, _ parent: RevisionID, in tree: inout RevisionTree) {
        tree.insertLocal(id, parent: parent, flags: .deleted, body: .emptyObject)
    }

    /// No history of the simulator that was tried depends on recognition, so the fault is planted here.
    @Test(arguments: [true, false])
    func `what was deleted does not come back by a copy at the hub, unless copies are not recognised`(
        _ recognizesCopies: Bool
    ) throws {
        let root = RevisionID(generation: 1, digest: [0xB0])
        let mine = RevisionID(generation: 2, digest: [0xB0])
        let mineDeleted = RevisionID(generation: 3, digest: [0xBD])
        var tree = RevisionTree()
        try take([mine, root], 1, from: .loveseat, in: &tree)
        try take([first], 2, from: .hub, in: &tree)
        try take(
            [copyID(mine, root, over: first), first],
            1,
            from: .hub,
            in: &tree,
            recognizesCopies: recognizesCopies
        )
        try take([mineDeleted, mine, root], from: .loveseat, in: &tree)
        let isBack = tree.current?.body == body(1)
        #expect(isBack == !recognizesCopies)
        #expect(tree.current?.isDeleted == false)
    }

    @Test func `a copy counts as its original, and not by its own revision`() throws {
        let root = RevisionID(generation: 1, digest: [0xB0])
        let low = RevisionID(generation: 2, digest: [0xB1])
        let high = RevisionID(generation: 3, digest: [0x00])
        let top = RevisionID(generation: 2, digest: [0x0C])
        let copy = copyID(low, root, over: top)
        #expect(copy > high)
        var tree = RevisionTree()
        try take([low, root], 1, from: .loveseat, in: &tree)
        try take([top, other], 2, from: .hub, in: &tree)
        try take([copy, top, other], 1, from: .hub, in: &tree)
        try take([high, RevisionID(generation: 2, digest: [0x01]), root], 3, from: .loveseat, in: &tree)
        #expect(tree.current?.id == high)
    }

    /// Story of issue 44: a checkbox is set back to what it was.
    @Test func `an edit that says what an older revision here said is an edit`() throws {
        var tree = RevisionTree()
        try take([first], 0, from: .hub, in: &tree)
        for number in 1...3 {
            let parent = try #require(tree.current?.id)
            tree.insertLocal(
                RevisionID(generation: parent.generation + 1, digest: [0xC0, UInt8(number)]),
                parent: parent,
                flags: [],
                body: body(number)
            )
        }
        try take([edit, first], 9, from: .hub, in: &tree)
        let copy = try tree.putOnHub(over: edit)
        let back = RevisionID(generation: 4, digest: [0xE1])
        try take([back, copy, edit, first], 1, from: .hub, in: &tree)
        #expect(tree.current?.id == back)
        #expect(tree.copies[back] == nil)
    }

    @Test func `a copy of a deletion is recognised, and deletes nothing else`() throws {
        var (maker, reader) = (RevisionTree(), RevisionTree())
        try take([first], 1, from: .loveseat, in: &maker)
        delete(deletion, first, in: &maker)
        try take([edit, first], 2, from: .hub, in: &maker)
        #expect(maker.current?.id == deletion)
        let copy = try maker.putOnHub(over: edit)
        try take([other], 3, from: .loveseat, in: &reader)
        try take([copy, edit, first], from: .hub, in: &reader)
        #expect(reader.current?.id == other)
        #expect(reader.original(copy) == RevisionID(generation: 2, digest: [0xAD, 0, 0, 0, 0]))
    }

    @Test func `an original that arrives late and its copy are one`() throws {
        var tree = RevisionTree()
        try take([other], 1, from: .hub, in: &tree)
        let copy = copyID(edit, first, over: other)
        try take([copy, other], 2, from: .hub, in: &tree)
        #expect(tree.current?.id == copy)
        try take([edit, first], 2, from: .loveseat, in: &tree)
        #expect(tree.original(copy) == edit)
        #expect(tree.candidates.count { $0.original == edit } == 1)
        // An edit of the original supersedes the copy.
        let next = RevisionID(generation: 3, digest: [0xE2])
        try take([next, edit, first], 3, from: .loveseat, in: &tree)
        #expect(tree.current?.id == next)
    }

    @Test func `what was closed by its abbreviated name stays closed when it arrives`() throws {
        var tree = RevisionTree()
        try take([other], 1, from: .hub, in: &tree)
        let copy = copyID(edit, first, over: other)
        try take([copy, other], 2, from: .hub, in: &tree)
        tree.giveUp(copy)
        try take([edit, first], 2, from: .loveseat, in: &tree)
        #expect(tree.closed == [edit])
        #expect(tree.current?.id == other)
    }

    /// Simulator, seed 10177 with a hub.
    @Test func `what was closed as an edit stays closed when it turns out to be a copy`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .hub, in: &tree)
        delete(deletion, first, in: &tree)
        let copy = copyID(other, other, over: first)
        try take([copy, first], 2, from: .hub, in: &tree, recognizesCopies: false)
        let again = RevisionID(generation: 3, digest: [0xAD])
        delete(again, deletion, in: &tree)
        #expect(tree.closed == [copy])
        var told = TreeKnowledge()
        told.nodes = [.init(id: other, parent: nil, flags: [], body: nil)]
        told.copies = [copy]
        try tree.merge(told)
        #expect(tree.current?.id == again)
        #expect(tree.closed == [other])
    }

    /// Simulator with a hub, seed 8713: two clients gave way to each other.
    @Test func `where everything was given up, a deletion deletes its own document and no other`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        try take([deletion, first], from: .loveseat, in: &tree)
        try take([other], 2, from: .loveseat, in: &tree)
        tree.giveUp(deletion)
        tree.giveUp(other)
        #expect(tree.current?.id == other)
    }

    /// Gateway, seed 7572: two clients put what both had given up over each other's for ever.
    @Test func `what was given up does not stand in for an unknown content over what the hub has`() throws {
        var tree = RevisionTree()
        tree.insertLocal(first, parent: nil, flags: [], body: body(1))
        tree.insertLocal(edit, parent: first, flags: [], body: body(2))
        tree.recordMark(of: hub, at: edit)
        let unknown = copyID(RevisionID(generation: 5, digest: [0x55]), deletion, over: other)
        let back = copyID(first, first, over: unknown)
        try take([back, unknown, other], 1, from: .hub, in: &tree)
        tree.giveUp(edit)
        #expect(tree.rule.lacksCurrentBody)
        #expect(tree.current?.id == back)
    }

    /// Gateway, seed 1018: the copy is of what was made again on top of the deletion, which is not known here.
    @Test func `a copy of an unknown later edit is not deleted by an earlier deletion of its document`()
        throws
    {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        delete(deletion, first, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        let again = RevisionID(generation: 3, digest: [0xAE])
        let copy = copyID(again, first, over: other)
        try take([copy, other], 3, from: .hub, in: &tree)
        #expect(tree.current?.id == copy)
    }

    /// Simulator with a hub, seed 14546: who knew the original put the deletion above its copy, and who did not put the copy back.
    @Test func `a copy of an unknown later edit is deleted by a deletion that a hub's line has above it`()
        throws
    {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        delete(deletion, first, in: &tree)
        try take([edit, first], 2, from: .hub, in: &tree)
        #expect(tree.current?.id == deletion)
        let copy = copyID(RevisionID(generation: 4, digest: [0xE4]), first, over: edit)
        try take([copy, edit], 3, from: .hub, in: &tree)
        #expect(tree.current?.id == copy)
        let above = copyID(deletion, first, over: copy)
        try take([above, copy], from: .hub, in: &tree)
        #expect(tree.current?.id == above)
        #expect(tree.closed.isEmpty)
    }

    @Test func `a copy of an unknown edit beside a deletion is deleted with its document`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        delete(deletion, first, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        try take([copyID(edit, first, over: other), other], 3, from: .hub, in: &tree)
        #expect(tree.current?.id == other)
    }

    /// Simulator, seed 495 with two hubs: a copy that came as a part of a history was held to be alive.
    @Test func `a copy of a deletion is deleted also where it came as a part of a history`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        delete(deletion, first, in: &tree)
        let copy = copyID(deletion, first, over: other)
        let second = copyID(deletion, first, over: copy)
        try take([second, copy, other], from: .hub, in: &tree)
        #expect(tree.current?.isDeleted == true)
    }

    /// Simulator, seeds 960 and 3712 with a hub.
    @Test func `an edit at the hub is not deleted with a document that lay below what was edited`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        let copy = try tree.putOnHub(over: other)
        // Where that document is deleted, the other one takes its place.
        try take([deletion, first], from: .loveseat, in: &tree)
        #expect(tree.current?.id == other)
        let second = try tree.putOnHub(over: copy)
        let edit = RevisionID(generation: 4, digest: [0xE1])
        try take([edit, second, copy, other], 3, from: .hub, in: &tree)
        #expect(tree.current?.id == edit)
    }

    @Test func `an edit at the hub is deleted with the document that it edited there`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        let copy = try tree.putOnHub(over: other)
        let edit = RevisionID(generation: 3, digest: [0xE1])
        try take([edit, copy, other], 3, from: .hub, in: &tree)
        try take([deletion, first], from: .loveseat, in: &tree)
        #expect(tree.current?.id == deletion)
    }

    /// Simulator, seed 1981 with a hub.
    @Test func `which document a line continues is known where its beginning is forgotten`() throws {
        var tree = RevisionTree()
        let policy = TreePolicy(depth: 4)
        try take([first], 1, from: .loveseat, in: &tree, by: policy)
        try take([other], 2, from: .hub, in: &tree, by: policy)
        var line = [try tree.putOnHub(over: other, by: policy), other]
        try take([deletion, first], from: .loveseat, in: &tree, by: policy)
        for generation in UInt32(3)...9 {
            line.insert(RevisionID(generation: generation, digest: [0xE1]), at: 0)
            try take(line, Int(generation), from: .hub, in: &tree, by: policy)
            #expect(tree.current?.id == deletion)
        }
        var reader = RevisionTree()
        try reader.merge(tree.knowledge, by: policy)
        policy.prune(&reader)
        #expect(reader.current?.id == deletion)
    }

    /// Gateway, seeds 1767 and 8213.
    @Test func `a hub that goes back to what lay below a copy has fallen back, with a body that was missing`()
        throws
    {
        var tree = RevisionTree()
        let copy = copyID(edit, first, over: other)
        try take([copy, other], 2, from: .hub, in: &tree)
        #expect(tree.rule.awaitsBody(of: other))
        var old = RevisionArrival(history: [other], flags: [], body: body(1), sender: .hub)
        old.remote = hub
        for (mayBeOld, mark) in [(true, copy), (false, other)] {
            var tree = tree
            old.mayBeOld = mayBeOld
            _ = try tree.insert(old)
            #expect(tree.remotes[hub] == mark)
            #expect(tree.current?.id == copy)
            #expect(tree.hasCurrent(hub) == mayBeOld)
        }
    }

    /// Gateway, seed 3842.
    @Test func `a deletion that was given up does not stand in for what is alive`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        delete(deletion, first, in: &tree)
        tree.giveUp(deletion)
        let below = copyID(RevisionID(generation: 7, digest: [0xE7]), other, over: other)
        let top = copyID(RevisionID(generation: 3, digest: [0xE3]), other, over: below)
        try take([top, below, other], 3, from: .hub, in: &tree)
        tree.giveUp(top)
        #expect(tree.rule.lacksCurrentBody)
        #expect(tree.current?.id == top)
    }
}
