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
}
