import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Documents whose branches peers of CouchDB's wire keep (docs/decisions/0009).
struct BranchTests {
    private let scratch: Scratch
    private let databases: [Database]

    init() throws {
        let scratch = try Scratch()
        self.scratch = scratch
        databases = try ["a", "b", "c"].map { try scratch.database($0) }
    }

    private func revision(_ text: String) throws -> RevisionID { try #require(RevisionID(text)) }

    private func insert(_ index: Int, _ history: [String], deleted: Bool = false, id: String = "x") throws {
        let collection = try databases[index].defaultCollection()
        let history = try history.map(revision)
        let body = deleted ? JSONText.emptyObject : JSONText(canonical: ["rev": .string(history[0].text)])
        try collection.openStore().write {
            _ = try $0.insertBranch(history, of: id, in: collection.handle, body: body, isDeleted: deleted)
        }
    }

    private func branches(_ index: Int, id: String = "x") throws -> DocumentBranches {
        let collection = try databases[index].defaultCollection()
        let record = try collection.openStore().readRows { try $0.record(id, in: collection.handle) }
        let whole = try collection.openStore().whole(try #require(record), in: collection.handle)
        return try DocumentBranches(of: whole)
    }

    private func leaves(_ index: Int, id: String = "x") throws -> [String] {
        try branches(index, id: id).leaves.map { $0.id.text + ($0.isDeleted ? " deleted" : "") }
    }

    private func sync(_ active: Int, _ passive: Int) async throws {
        var configuration = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: try databases[active].defaultCollection())],
            target: DatabaseEndpoint(database: databases[passive])
        )
        configuration.replicatorType = .pushAndPull
        let replicator = Replicator(configuration)
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
    }

    @Test func `a copy of the current revision beside it is shown as it is, without a tombstone`() throws {
        let collection = try databases[0].defaultCollection()
        let (original, theirs) = (try revision("2-bb"), try revision("1-cc"))
        let copy = CopyName(original: original, origin: try revision("1-aa")).id(
            over: theirs,
            of: "x",
            sha1: Hashing.sha1
        )
        try collection.openStore().write {
            var incoming = IncomingRecord(
                documentID: "x",
                history: [original, try revision("1-aa")],
                isDeleted: false,
                body: JSONText(canonical: ["n": 1]),
                sender: .loveseat
            )
            var knowledge = TreeKnowledge()
            knowledge.nodes = [
                RevisionTree.Node(id: original, parent: nil, flags: [], body: nil),
                RevisionTree.Node(id: theirs, parent: nil, flags: [], body: nil),
                RevisionTree.Node(id: copy, parent: theirs, flags: [], body: JSONText(canonical: ["n": 1])),
            ]
            knowledge.copies = [copy]
            incoming.knowledge = knowledge
            _ = try $0.insert(incoming, in: collection.handle)
        }
        #expect(try Set(leaves(0)) == [original.text, copy.text])
        #expect(try branches(0).winner.id == original)
    }

    @Test func `a deletion whose ID is known only as an ancestor is taken, and changes nothing`() throws {
        try insert(0, ["3-c", "2-b", "1-a"])
        try insert(0, ["2-b", "1-a"], deleted: true)
        #expect(try leaves(0) == ["3-c"])
        #expect(throws: OtherContent.self) {
            try insert(0, ["3-c", "2-b", "1-a"], deleted: true)
        }
        #expect(try leaves(0) == ["3-c"])
    }

    @Test func `all leaves are kept, and the live one with the highest revision wins`() throws {
        try insert(0, ["2-b", "1-a"])
        try insert(0, ["3-d", "2-c", "1-a"], deleted: true)
        try insert(0, ["2-e", "1-a"])
        #expect(try leaves(0) == ["2-e", "2-b", "3-d deleted"])
        try insert(0, ["3-f", "2-e", "1-a"], deleted: true)
        #expect(try leaves(0) == ["2-b", "3-f deleted", "3-d deleted"])
        #expect(try databases[0].defaultCollection().document(id: "x")?["rev"]?.string == "2-b")
    }

    @Test func `digests of 32 hexadecimal digits rank by their bytes`() throws {
        let high = String(repeating: "f", count: 32)
        let low = String(repeating: "a", count: 32)
        for digest in [low, "zzz", high] { try insert(0, ["1-\(digest)"]) }
        #expect(try leaves(0) == ["1-\(high)", "1-\(low)", "1-zzz"])
    }

    @Test func `lines that a later one joins are joined in any order`() throws {
        let lines = [["5-c", "4-x", "3-b"], ["2-q", "1-a"], ["3-b", "2-q", "1-a"]]
        for (number, order) in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]].enumerated()
        {
            for line in order { try insert(0, lines[line], id: "doc\(number)") }
            #expect(try leaves(0, id: "doc\(number)") == ["5-c"], "\(order)")
        }
    }

    @Test func `leaves in any order are the same leaves`() throws {
        let lines: [([String], Bool)] = [
            (["2-b", "1-a"], false), (["3-d", "2-c", "1-a"], true), (["2-e", "1-a"], false), (["1-q"], false),
            (["4-g", "3-f", "2-b", "1-a"], true),
        ]
        var found: Set<[String]> = []
        for order in 0..<24 {
            var generator = SeededGenerator(seed: UInt64(order))
            for (history, isDeleted) in lines.shuffled(using: &generator) {
                try insert(0, history, deleted: isDeleted, id: "doc\(order)")
            }
            found.insert(try leaves(0, id: "doc\(order)"))
        }
        #expect(found.count == 1)
    }

    @Test func `databases with different leaves have all of them after a session of the other wire`()
        async throws
    {
        try insert(0, ["2-bb", "1-aa"])
        try insert(0, ["2-cc", "1-aa"])
        try insert(1, ["3-dd", "2-ab", "1-aa"], deleted: true)
        try insert(1, ["2-ee", "1-aa"])
        for _ in 0..<2 {
            try await sync(0, 1)
            try await sync(2, 1)
        }
        let expected = ["2-ee", "2-cc", "2-bb", "3-dd deleted"]
        for index in 0..<3 { #expect(try leaves(index) == expected, "database \(index)") }
        try insert(2, ["3-ef", "2-ee", "1-aa"], deleted: true)
        try await sync(2, 1)
        try await sync(0, 1)
        for index in 0..<3 { #expect(try branches(index).winner.id.text == "2-cc", "database \(index)") }
    }

    private func save(_ index: Int, _ by: String) throws {
        let collection = try databases[index].defaultCollection()
        var document = try collection.document(id: "x") ?? Document(id: "x")
        document["by"] = .string(by)
        try collection.save(&document)
    }

    /// Both databases edit a document, and sync.
    private func editBoth() async throws {
        try save(0, "first")
        try await sync(0, 1)
        for index in 0..<2 { try save(index, "\(index)") }
        try await sync(0, 1)
    }

    @Test func `an edit that has only lost between Loveseats is not shown`() async throws {
        try await editBoth()
        for index in 0..<2 {
            let shown = try branches(index)
            #expect(shown.leaves.count == 1)
            #expect(shown.winner.id == (try databases[0].defaultCollection().document(id: "x")?.revisionID))
        }
        #expect(try leaves(0) == leaves(1))
    }

    @Test
    func `an edit that lost between Loveseats is shown with a tombstone on top when somebody gives it up`()
        async throws
    {
        try await editBoth()
        try save(0, "again")
        try await sync(0, 1)
        for index in 0..<2 {
            let shown = try branches(index)
            try #require(shown.leaves.count == 2)
            #expect(shown.conflicts.isEmpty)
            #expect(shown.winner.id == (try databases[0].defaultCollection().document(id: "x")?.revisionID))
            #expect(shown.leaves[1].isDeleted)
            #expect(shown.leaves.allSatisfy { shown.revision($0.id) != nil })
            #expect(shown.leaves.allSatisfy { shown.contains($0.id) })
        }
        #expect(try leaves(0) == leaves(1))
    }

    @Test func `an edit that lost between Loveseats against a deletion is shown with a tombstone on top`()
        async throws
    {
        try save(0, "first")
        try await sync(0, 1)
        try save(0, "0")
        try databases[1].defaultCollection().delete(id: "x")
        try await sync(0, 1)
        for index in 0..<2 {
            let shown = try branches(index)
            #expect(shown.leaves.count == 2)
            #expect(shown.leaves.allSatisfy { $0.isDeleted })
            // A peer may know more of the one that lost: that somebody gave it up.
            #expect(shown.leaves.filter { !shown.contains($0.id) }.count == 1)
        }
        #expect(try leaves(0) == leaves(1))
    }

    @Test
    func
        `another document that has only lost between Loveseats is not shown, and comes back when the first is deleted`()
        async throws
    {
        for index in 0..<2 { try save(index, "\(index)") }
        let all = try (0..<2).map { try leaves($0)[0] }
        try await sync(0, 1)
        for index in 0..<2 { #expect(try leaves(index) == [all.max() ?? ""]) }
        // Somebody who does not know the other one deletes what is shown.
        let won = all.max() ?? ""
        let tombstone = "2-dd"
        for index in 0..<2 { try insert(index, [tombstone, won], deleted: true) }
        for index in 0..<2 { #expect(try leaves(index) == [all.min() ?? "", "\(tombstone) deleted"]) }
    }

    @Test func `a local edit resolves no conflict that peers keep, and the app can see it`() throws {
        try insert(0, ["2-b", "1-a"])
        try insert(0, ["2-e", "1-a"])
        let collection = try databases[0].defaultCollection()
        var document = try #require(try collection.document(id: "x"))
        document["more"] = true
        try collection.save(&document)
        let all = try branches(0)
        #expect(all.winner.history.dropFirst().map(\.text) == ["2-e", "1-a"])
        #expect(all.conflicts.map(\.id.text) == ["2-b"])
    }

    @Test func `a document takes a thousand branches and refuses more`() throws {
        try insert(0, ["1-a"])
        for number in 0..<1_000 { try insert(0, ["2-\(number)", "1-a"]) }
        #expect(throws: RevisionTree.InsertRefusal.conflict) { try insert(0, ["2-x", "1-a"]) }
        #expect(try branches(0).leaves.count == 1_000)
    }
}
