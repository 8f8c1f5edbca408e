import LoveseatModel
import Testing

/// Documents that more databases made or edited than a tree keeps candidates.
@Suite struct ManyCandidatesTests {
    private func id(_ generation: UInt32, _ number: Int) -> RevisionID {
        RevisionID(generation: generation, digest: [UInt8(number >> 8), UInt8(number & 255)])
    }

    private func receive(_ history: [RevisionID], deleted: Bool = false, _ tree: inout RevisionTree) throws {
        let body = deleted ? JSONText.emptyObject : JSONText(canonical: ["by": .string(history[0].text)])
        var arrival = RevisionArrival(
            history: history,
            flags: deleted ? .deleted : [],
            body: body,
            sender: .loveseat
        )
        arrival.knowledge = TreeKnowledge()
        _ = try tree.insert(arrival)
    }

    @Test(arguments: [10, 63, 100, 300])
    func `a live document stays, however many others of its name are deleted`(_ count: Int) throws {
        var tree = RevisionTree()
        for number in 1...count {
            try receive([id(2, number), id(1, number)], deleted: true, &tree)
        }
        try receive([id(1, 0)], &tree)
        try receive([id(2, 1000), id(1, 1000)], &tree)
        #expect(tree.current?.id == id(2, 1000))
        // Its author never saw the other live one.
        try receive([id(3, 1000), id(2, 1000), id(1, 1000)], deleted: true, &tree)
        #expect(tree.current?.id == id(1, 0))
    }

    @Test(arguments: [10, 63, 100, 300])
    func `a deletion stands, however many have edited the document meanwhile`(_ count: Int) throws {
        var tree = RevisionTree()
        try receive([id(1, 1000)], &tree)
        try receive([id(2, 1000), id(1, 1)], deleted: true, &tree)
        for number in 2...count + 1 { try receive([id(3, number), id(2, number), id(1, 1)], &tree) }
        #expect(tree.current?.id == id(1, 1000))
    }

    @Test(arguments: [10, 66, 100, 500])
    func `what a deletion gave up stays deleted, however many there were`(_ count: Int) throws {
        var tree = RevisionTree()
        for number in 0..<count { try receive([id(1, number)], &tree) }
        tree.insertLocal(id(2, 2000), parent: tree.current?.id, flags: .deleted, body: .emptyObject)
        for number in 0..<count { try receive([id(1, number)], &tree) }
        #expect(tree.current?.isDeleted == true)
        #expect(tree.problems == [])
    }

    /// A peer may claim such a tree. It took minutes to find out that each deletion is above each edit.
    @Test(.timeLimit(.minutes(1)))
    func `five hundred deletions above five hundred unknown edits are decided at once`()
        throws
    {
        let origin = id(1, 1)
        var claim = TreeKnowledge()
        claim.nodes = [.init(id: origin, parent: nil, flags: [], body: nil)]
        var head = origin
        func add(_ original: RevisionID, _ flags: RevisionTree.Flags) {
            let copy = copyID(original, origin, over: head)
            claim.nodes.append(.init(id: copy, parent: head, flags: flags, body: .emptyObject))
            claim.copies.insert(copy)
            head = copy
        }
        for number in 0..<500 { add(id(5, 1_000 + number), []) }
        for number in 0..<500 {
            let deletion = id(2, 2_000 + number)
            claim.nodes.append(.init(id: deletion, parent: origin, flags: .deleted, body: .emptyObject))
            add(deletion, .deleted)
        }
        var tree = RevisionTree()
        try tree.merge(claim)
        #expect(tree.current?.id == head)
    }
}
