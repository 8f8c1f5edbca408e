import LoveseatModel
import LoveseatTesting
import Testing

/// Histories of a document at peers that exchange states and trees. Numbers in comments are those of version-vectors.md §18.
@Suite struct StateMeshTests {
    // 70, 72, 76 to 78
    @Test(arguments: [(false, false), (false, true), (true, false), (true, true)])
    func `all peers end with the same state, and no version has two contents`(trees: Bool, resolves: Bool)
        throws
    {
        for seed in PropertySeeds.of("MESH", 200) {
            let mesh = try StateMesh(seed: seed, trees: trees, resolves: resolves)
            #expect(mesh.problems.isEmpty, "seed \(seed)")
            #expect(mesh.rounds != nil, "seed \(seed)")
            let currents = mesh.trees.compactMap(\.current)
            guard let first = currents.first else { continue }
            let isSame = currents.allSatisfy { $0.saysTheSame(as: first) }
            #expect(isSame, "seed \(seed):\n\(mesh.trees.map(\.description).joined(separator: "\n\n"))")
            let names = Set(
                zip(mesh.trees, currents).map { tree, node in tree.versions.version(of: node.id) }
            )
            #expect(names.count == 1, "seed \(seed)")
            for (tree, current) in zip(mesh.trees, currents) {
                let sources = Set(tree.versions.state(of: current.id).vector.versions.map(\.source))
                #expect(
                    sources.subtracting([.revisionTree]).count <= mesh.trees.count,
                    "seed \(seed): a vector has versions of databases that did not write"
                )
            }
        }
    }
}
