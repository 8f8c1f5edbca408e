import LoveseatModel
import Testing

/// Two databases that disagree about a document, around a hub that takes what is put on top of its line.
@Suite struct HubRestTests {
    /// The hub's line, oldest first.
    private struct Hub {
        var line: [(id: RevisionID, body: JSONText)] = []

        /// Sends a database's current content as a copy, unless the hub has it. Returns whether it did.
        mutating func take(from tree: inout RevisionTree) throws -> Bool {
            guard let top = line.last, let body = tree.current?.body, body != top.body else { return false }
            line.append((try tree.putOnHub(over: top.id), body))
            return true
        }

        func give(to tree: inout RevisionTree) throws {
            guard let top = line.last else { return }
            // A history ends with the first revision that the receiver has.
            let new = line.reversed().map(\.id).prefix { !tree.contains($0) }
            try LoveseatModelTests.take(
                line.reversed().map(\.id).prefix(new.count + 1).map(\.self),
                top.body == .emptyObject ? nil : top.body,
                in: &tree
            )
        }
    }

    @Test
    func `two databases that disagree around a hub do not put their content over each other's for ever`()
        throws
    {
        let (first, second) = (
            RevisionID(generation: 1, digest: [0xDD]), RevisionID(generation: 2, digest: [0xEE])
        )
        var (writer, reader) = (RevisionTree(), RevisionTree())
        writer.insertLocal(first, parent: nil, flags: [], body: body(1))
        writer.insertLocal(second, parent: first, flags: [], body: body(2))
        // The reader has the document from the hub, where it is purged then, and made anew.
        try Hub(line: [(first, body(1)), (second, body(2))]).give(to: &reader)
        var hub = Hub(line: [(RevisionID(generation: 1, digest: [0xBB]), body(3))])
        try hub.give(to: &reader)
        #expect(reader.current?.body == body(3))
        var copies = 0
        for _ in 0..<10 {
            try hub.give(to: &writer)
            if try hub.take(from: &writer) { copies += 1 }
            try hub.give(to: &reader)
            if try hub.take(from: &reader) { copies += 1 }
        }
        #expect(copies <= 2)
        #expect(writer.current?.body == reader.current?.body)
        #expect(reader.current?.body == hub.line.last?.body)
    }

    /// Simulator with a hub, seed 11720: the author of the deletion had seen both documents, and the hub's line does not say so.
    @Test func `a deletion stands against what its author gave up, although another client puts that back`()
        throws
    {
        let (mine, other) = (
            RevisionID(generation: 2, digest: [0xDD]), RevisionID(generation: 1, digest: [0xEE])
        )
        var (author, reader) = (RevisionTree(), RevisionTree())
        var hub = Hub(line: [(other, body(1))])
        try hub.give(to: &reader)
        let first = RevisionID(generation: 1, digest: [0xDD])
        author.insertLocal(first, parent: nil, flags: [], body: body(2))
        author.insertLocal(mine, parent: first, flags: [], body: body(3))
        try hub.give(to: &author)
        #expect(try hub.take(from: &author))
        try hub.give(to: &reader)
        let deletion = RevisionID(generation: 3, digest: [0xDE])
        author.insertLocal(deletion, parent: mine, flags: .deleted, body: .emptyObject)
        var copies = 0
        for _ in 0..<10 {
            try hub.give(to: &author)
            if try hub.take(from: &author) { copies += 1 }
            try hub.give(to: &reader)
            if try hub.take(from: &reader) { copies += 1 }
        }
        #expect(copies <= 6)
        #expect(author.current?.isDeleted == true)
        #expect(reader.current?.isDeleted == true)
        #expect(hub.line.last?.body == .emptyObject)
    }

    @Test func `a hub that went back to what the original was made on gets the original, which is no copy`()
        throws
    {
        let (first, original) = (
            RevisionID(generation: 1, digest: [0xAA]), RevisionID(generation: 2, digest: [0xBB])
        )
        var tree = RevisionTree()
        tree.insertLocal(first, parent: nil, flags: [], body: body(1))
        tree.insertLocal(original, parent: first, flags: [], body: body(2))
        // The hub had another document of this name, and got ours on top of it.
        let hub = Hub(line: [(RevisionID(generation: 1, digest: [0x01]), body(3))])
        try hub.give(to: &tree)
        #expect(try tree.putOnHub(over: hub.line[0].id) != original)
        // A backup of it has the first revision.
        #expect(try tree.putOnHub(over: first) == original)
        #expect(tree.copies[original] == nil)
        #expect(tree.remotes[LoveseatModelTests.hub] == original)
        #expect(tree.original(original) == original)
    }
}
