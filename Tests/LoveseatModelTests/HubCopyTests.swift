import LoveseatModel
import Testing

/// Copies on a hub's line, and what is known of the documents that lie on top of each other there.
@Suite struct HubCopyTests {
    private let first = RevisionID(generation: 1, digest: [0xA1])
    private let deletion = RevisionID(generation: 2, digest: [0xAD])
    private let other = RevisionID(generation: 1, digest: [0x0B])

    /// Puts the current content on top of what the hub has.
    private func copy(_ copy: RevisionID, over parent: RevisionID, in tree: inout RevisionTree) {
        tree.announceCopy(copy)
        tree.adoptCopy(copy, parent: parent, remote: hub)
    }

    private func delete(_ id: RevisionID, _ parent: RevisionID, in tree: inout RevisionTree) {
        tree.insertLocal(id, parent: parent, flags: .deleted, body: .emptyObject)
    }

    /// Simulator, seed 2296 with a hub: two deletions of one revision have the same ID.
    @Test func `a deletion stays one when the hub gets it in place of another document's`() throws {
        let otherDeletion = RevisionID(generation: 2, digest: [0xBD])
        var tree = RevisionTree()
        tree.insertLocal(other, parent: nil, flags: [], body: body(1))
        delete(otherDeletion, other, in: &tree)
        try take([first], 2, from: .hub, in: &tree)
        try take([deletion, first], nil, from: .loveseat, in: &tree)
        #expect(tree.current?.id == otherDeletion)
        copy(deletion, over: first, in: &tree)
        #expect(tree.current?.isDeleted == true)
        #expect(tree.remotes[hub] == deletion)
    }

    /// Hardly any history of the simulator depends on recognition any more, so the fault is planted here.
    @Test(arguments: [RevisionTree.Omissions(), .recognition])
    func `what was deleted does not come back by a copy at the hub, unless copies are not recognised`(
        _ omissions: RevisionTree.Omissions
    ) throws {
        let root = RevisionID(generation: 1, digest: [0xB0])
        let mine = RevisionID(generation: 2, digest: [0xB0])
        let copied = RevisionID(generation: 2, digest: [0xCC])
        let mineDeleted = RevisionID(generation: 3, digest: [0xBD])
        var tree = RevisionTree()
        tree.omissions = omissions
        try take([mine, root], 1, from: .loveseat, in: &tree)
        try take([first], 2, from: .hub, in: &tree)
        try take([copied, first], 1, from: .hub, in: &tree)
        try take([mineDeleted, mine, root], nil, from: .loveseat, in: &tree)
        let isBack = tree.current?.body == body(1)
        #expect(isBack == omissions.contains(.recognition))
        #expect(tree.current?.isDeleted == false)
    }

    /// Simulator, seed 1461 with a hub.
    @Test func `what undid a deletion stands where a copy of the deletion was taken for one and copied`()
        throws
    {
        var tree = RevisionTree()
        tree.insertLocal(first, parent: nil, flags: [], body: body(1))
        delete(deletion, first, in: &tree)
        let again = RevisionID(generation: 3, digest: [0xAE])
        tree.insertLocal(again, parent: deletion, flags: [], body: body(2))
        // Another database has put the deletion on top of an edit at the hub.
        let edit = RevisionID(generation: 2, digest: [0xE1])
        let deletionCopy = RevisionID(generation: 3, digest: [0xC1])
        try take([deletionCopy, edit, first], nil, from: .hub, in: &tree)
        #expect(tree.current?.id == deletionCopy)
        copy(RevisionID(generation: 4, digest: [0xC2]), over: again, in: &tree)
        var told = TreeKnowledge()
        told.copies[deletionCopy] = [.init(original: deletion, origin: first)]
        try tree.merge(told)
        #expect(tree.current?.id == again)
    }

    /// Simulator, seed 10177 with a hub.
    @Test func `what was closed as an edit stays closed when it turns out to be a copy`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .hub, in: &tree)
        delete(deletion, first, in: &tree)
        // Another database has put a document on top of that one, and has not said so yet.
        let copied = RevisionID(generation: 2, digest: [0xC0])
        try take([copied, first], 2, from: .hub, in: &tree)
        #expect(tree.current?.id == deletion)
        let again = RevisionID(generation: 3, digest: [0xAD])
        delete(again, deletion, in: &tree)
        #expect(tree.closed == [copied])
        var told = TreeKnowledge()
        told.nodes = [.init(id: other, parent: nil, flags: [], body: nil)]
        told.copies[copied] = [.init(original: other, origin: other)]
        try tree.merge(told)
        #expect(tree.current?.id == again)
        #expect(tree.closedOriginals == [other])
    }

    /// Simulator, seeds 20603 and 21413 with a hub: what stood in between could not be shown, and the next best was put on the hub.
    @Test func `what a hub has twice stands, whatever unknown revision lies in between`() throws {
        let mine = RevisionID(generation: 1, digest: [0xC1])
        let lower = RevisionID(generation: 1, digest: [0x01])
        var tree = RevisionTree()
        try take([mine], 1, from: .loveseat, in: &tree)
        try take([lower], 2, from: .loveseat, in: &tree)
        try take([first], 3, from: .hub, in: &tree)
        let line = (UInt32(2)...4).map { RevisionID(generation: $0, digest: [0xC0]) }
        copy(line[0], over: first, in: &tree)
        // Two other databases have put the document `lower` and this one on top of each other.
        try take([line[2], line[1], line[0], first], 1, from: .hub, named: [1: mine], in: &tree)
        #expect(tree.current?.id == line[2])
        var told = TreeKnowledge()
        told.copies[line[1]] = [.init(original: lower, origin: lower)]
        told.copies[line[2]] = [.init(original: mine, origin: mine)]
        try tree.merge(told)
        #expect(tree.current?.id == line[2])
        #expect(tree.original(line[2]) == mine)
    }

    /// Simulator, seeds 960 and 3712 with a hub.
    @Test func `an edit at the hub is not deleted with a document that lay below what was edited`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        let copies = [UInt32(2), 3].map { RevisionID(generation: $0, digest: [0xC0]) }
        copy(copies[0], over: other, in: &tree)
        // Where that document is deleted, the other one takes its place.
        try take([deletion, first], nil, from: .loveseat, in: &tree)
        #expect(tree.current?.id == other)
        copy(copies[1], over: copies[0], in: &tree)
        let edit = RevisionID(generation: 4, digest: [0xE1])
        try take([edit, copies[1], copies[0], other], 3, from: .hub, in: &tree)
        #expect(tree.current?.id == edit)
    }

    @Test func `an edit at the hub is deleted with the document that it edited there`() throws {
        var tree = RevisionTree()
        try take([first], 1, from: .loveseat, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        let copied = RevisionID(generation: 2, digest: [0xC0])
        copy(copied, over: other, in: &tree)
        let edit = RevisionID(generation: 3, digest: [0xE1])
        try take([edit, copied, other], 3, from: .hub, in: &tree)
        try take([deletion, first], nil, from: .loveseat, in: &tree)
        #expect(tree.current?.id == deletion)
    }

    /// Simulator, seed 1981 with a hub.
    @Test func `which document a line continues is known where its beginning is forgotten`() throws {
        var tree = RevisionTree()
        tree.depth = 4
        try take([first], 1, from: .loveseat, in: &tree)
        try take([other], 2, from: .hub, in: &tree)
        var line = [RevisionID(generation: 2, digest: [0xC0]), other]
        copy(line[0], over: other, in: &tree)
        try take([deletion, first], nil, from: .loveseat, in: &tree)
        for generation in UInt32(3)...9 {
            line.insert(RevisionID(generation: generation, digest: [0xE1]), at: 0)
            try take(line, Int(generation), from: .hub, in: &tree)
            #expect(tree.current?.id == deletion)
        }
        var reader = RevisionTree()
        reader.depth = 4
        try reader.merge(tree.knowledge)
        reader.prune(depth: 4)
        #expect(reader.current?.id == deletion)
    }
}
