import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Revisions of one document that a peer of CouchDB's wire sends together.
@Suite struct BranchBatchTests {
    private typealias Branch = ReceivedBranch

    private static func branches(
        _ generator: inout SeededGenerator,
        _ lines: inout [[RevisionID]],
        _ batch: Int
    ) -> [Branch] {
        (0..<generator.pick([1, 3, 12])).map { number in
            var line = generator.pick(lines)
            if line.count > 1, generator.chance(0.4) { line.removeFirst() }
            if generator.chance(0.7) {
                let digest = [UInt8(batch), UInt8(number), generator.pick([1, 2])]
                line.insert(RevisionID(generation: line[0].generation + 1, digest: digest), at: 0)
                lines.append(line)
            }
            // What a revision says follows from its ID, but for one that a faulty peer sends.
            let isDeleted = (line[0].digest.utf8.last ?? 0) % 4 == 1
            let isOther = generator.chance(0.15)
            let text = isOther ? "other" : line[0].text
            return Branch(
                history: line,
                body: isDeleted ? .emptyObject : JSONText(canonical: ["by": .string(text)]),
                isDeleted: isDeleted != (isOther && generator.chance(0.3))
            )
        }
    }

    private static func state(_ temporary: TemporaryStore) throws -> [String] {
        guard let record = try temporary.record("x") else { return [] }
        let tree = try temporary.store.whole(record, in: temporary.collection).tree()
        let nodes = tree.nodes.values.map { node in
            "\(node.id) on \(node.parent?.text ?? "nothing"): \(node.isDeleted) \(node.body?.description ?? "")"
        }
        return ["\(record.revision) \(record.body)"] + nodes.sorted()
    }

    @Test(arguments: PropertySeeds.of("BATCHES", 60))
    func `revisions that come together are stored and refused as one after the other`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let (together, single) = (try TemporaryStore(), try TemporaryStore())
        for side in [together, single] { try side.store.write { try $0.setRevisionLimit(1_000) } }
        var lines = [[RevisionID(generation: 1, digest: [1])]]
        for batch in 0..<4 {
            let branches = Self.branches(&generator, &lines, batch)
            let results = try together.store.write {
                try $0.insertBranches(branches, of: "x", in: together.collection)
            }
            let expected = branches.map { branch in
                Result {
                    try single.store.write {
                        try $0.insertBranches([branch], of: "x", in: single.collection)[0].get()
                    }
                }
            }
            for (result, expected) in zip(results, expected) {
                // One after the other, an earlier one may take the place of what this one is compared with.
                if case .success(false) = expected, case .failure(let error) = result,
                    error is OtherContent
                {
                    continue
                }
                #expect("\(result)" == "\(expected)")
            }
            #expect(results.count == expected.count)
            #expect(try Self.state(together) == Self.state(single))
        }
        #expect(try together.store.check() == [])
    }

    @Test func `the size of a row is known without reading it, in bytes`() throws {
        let temporary = try TemporaryStore()
        func size() throws -> StoredSize? {
            try temporary.store.readRows { try $0.size(of: "x", in: temporary.collection) }
        }
        #expect(try size() == nil)
        for number in 1...3 {
            // An ä has two bytes.
            let body = JSONText(canonical: ["t": .string(String(repeating: "ä", count: 1_000 * number))])
            let line = [RevisionID(generation: 1, digest: [UInt8(number)])]
            try temporary.store.write { transaction in
                for result in try transaction.insertBranches(
                    [Branch(history: line, body: body, isDeleted: false)],
                    of: "x",
                    in: temporary.collection
                ) { _ = try result.get() }
            }
            let (record, size) = (try #require(try temporary.record("x")), try #require(try size()))
            #expect(size.tree == record.encodedTree?.count ?? 0)
            #expect(size.body == record.body.bytes.count)
            #expect(number == 1 || size.tree > 0)
            #expect(size.decoded == size.all + size.tree)
        }
    }
}
