import Foundation
import LoveseatModel
import LoveseatTesting
import Testing

/// Pairs of trees from the model of docs/decisions/0001, with what is current in each and in both together.
@Suite struct RevisionTreeVectorTests {
    @Test func `each of 2,000 pairs of trees has the current revision of the model, alone and merged`() throws
    {
        let pairs = try lines("trees.jsonl")
        #expect(pairs.count == 2_000)
        // The model counted a copy among the document that it lies on. Where that changes what is current, this is what the
        // model says with the rule of docs/decisions/0001.
        var corrected: [String: String] = [:]
        for line in try lines("trees-where-copies-lie-on-others.jsonl") {
            let (seed, tree) = (try #require(line["seed"]?.int), try #require(line["tree"]?.string))
            corrected["\(seed) \(tree)"] = line["current"]?.string
        }
        #expect(corrected.count == 38)
        for pair in pairs {
            let names = ["one", "other", "both"]
            let parts = try names.map { try #require(pair[$0]) }
            let trees = try parts.map { try tree($0) }
            for (tree, (name, part)) in zip(trees, zip(names, parts)) {
                let key = "\(pair["seed"]?.int ?? 0) \(name)"
                #expect(tree.current?.id.text == corrected[key] ?? part["current"]?.string, "seed \(key)")
            }
            for (first, second) in [(0, 1), (1, 0)] {
                var both = trees[first]
                try both.merge(trees[second].everything)
                #expect(both == trees[2], "seed \(pair["seed"]?.int ?? 0)")
            }
        }
    }

    private func lines(_ name: String) throws -> [JSONElement] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../Fixtures/conflicts"
        )
        let lines = try Data(contentsOf: folder.appending(path: name)).split(separator: UInt8(ascii: "\n"))
        return try lines.map { try JSONElement(parsing: Array($0)) }
    }

    private func tree(_ json: JSONElement) throws -> RevisionTree {
        var knowledge = TreeKnowledge()
        for entry in try #require(json["revisions"]).items {
            knowledge.nodes.append(
                RevisionTree.Node(
                    id: try id(entry["id"]),
                    parent: try entry["parent"].flatMap { $0.isNull ? nil : try id($0) },
                    flags: entry["deleted"]?.bool == true ? .deleted : [],
                    body: JSONText(canonical: ["content": .string(entry["content"]?.string ?? "")])
                )
            )
        }
        for entry in try #require(json["closed"]).items { knowledge.closed.insert(try id(entry)) }
        for (copy, sources) in try #require(json["copies"]).members {
            for source in sources.items {
                knowledge.copies[try #require(RevisionID(copy)), default: []].insert(
                    RevisionTree.Source(original: try id(source[0]), origin: try id(source[1]))
                )
            }
        }
        var tree = RevisionTree()
        try tree.merge(knowledge)
        return tree
    }

    private func id(_ json: JSONElement?) throws -> RevisionID {
        try #require(json?.string.flatMap { RevisionID($0) })
    }
}

extension RevisionTree {
    /// All that is known, with every body.
    var everything: TreeKnowledge {
        var knowledge = TreeKnowledge()
        knowledge.nodes = Array(nodes.values)
        (knowledge.closed, knowledge.copies) = (closed, copies)
        return knowledge
    }
}
