import LoveseatModel
import LoveseatTesting
import Testing

/// A document at several peers that edit it with and without versions, and send each other their trees.
struct VersionedTrees {
    private(set) var trees: [RevisionTree]
    /// Peers that have no versions have no author.
    private(set) var authors: [VersionAuthor?]
    private var generator: SeededGenerator
    private let policy: TreePolicy
    private var time: UInt64 = 0x18E9_F1F2_E876_1234
    private var number = 0

    /// Runs a history of a document at two to four peers, of which every third has no versions.
    init(seed: UInt64, depth: Int = RevisionTree.maximumDepth) throws {
        generator = SeededGenerator(seed: seed)
        policy = TreePolicy(depth: depth)
        let count = generator.int(2...4)
        trees = Array(repeating: RevisionTree(), count: count)
        authors = []
        for number in 1...count {
            let source = SourceID(high: generator.next(), low: UInt64(number))
            authors.append(generator.chance(0.3) ? nil : try VersionAuthor(source))
        }
        for _ in 0..<generator.int(4...30) { try step() }
    }

    private mutating func step() throws {
        time += 70_000
        let index = generator.int(0...trees.count - 1)
        if generator.chance(0.6) {
            try edit(index)
        } else {
            try trees[index].merge(trees[generator.int(0...trees.count - 1)].everything)
            policy.prune(&trees[index])
        }
    }

    private mutating func edit(_ index: Int) throws {
        let parent = trees[index].current
        // Some edits are made by two peers alike.
        number += generator.chance(0.3) ? 0 : 1
        let isDeleted = parent != nil && generator.chance(0.2)
        let id = Self.revision(over: parent?.id, number, isDeleted)
        guard !trees[index].contains(id) else { return }
        let vector = try authors[index]?.edit(trees[index].versions.vectorToEdit(parent?.id), wall: time)
        RevisionEdit(
            id: id,
            parent: parent?.id,
            flags: isDeleted ? .deleted : [],
            body: JSONText(canonical: ["n": JSONValue(number)]),
            vector: vector
        ).insert(into: &trees[index], by: policy)
    }

    /// The ID of an edit, which its content and its parent decide.
    private static func revision(over parent: RevisionID?, _ number: Int, _ isDeleted: Bool) -> RevisionID {
        let seed = "\(parent?.text ?? "") \(number) \(isDeleted)".utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64)
        {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
        var generator = SeededGenerator(seed: seed)
        return RevisionID(generation: (parent?.generation ?? 0) + 1, digest: generator.bytes(8))
    }
}
