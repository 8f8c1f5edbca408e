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
        var left = 0
        for pair in pairs {
            let names = ["one", "other", "both"]
            let parts = try names.map { try #require(pair[$0]) }
            guard parts.allSatisfy(hasOnlyNamedCopies) else {
                left += 1
                continue
            }
            let copies = try copyNames(parts[2])
            let trees = try parts.map { try tree($0, copies) }
            for (tree, (name, part)) in zip(trees, zip(names, parts)) {
                let key = "\(pair["seed"]?.int ?? 0) \(name)"
                let current = try #require(RevisionID(corrected[key] ?? part["current"]?.string ?? ""))
                // Which of the copies stands for the content depends on their names.
                let original = tree.current.map { tree.original($0.id) }
                #expect(original == tree.original(copies[current] ?? current), "seed \(key)")
            }
            for (first, second) in [(0, 1), (1, 0)] {
                var both = trees[first]
                try both.merge(trees[second].everything)
                #expect(both == trees[2], "seed \(pair["seed"]?.int ?? 0)")
            }
        }
        #expect(left == 184)
    }

    /// In the model of that time a copy could have several originals, and be known before a hub had accepted it.
    private func hasOnlyNamedCopies(_ tree: JSONElement) -> Bool {
        let revisions = Set(tree["revisions"]?.items.compactMap { $0["id"]?.string } ?? [])
        return tree["copies"]?.members.allSatisfy { $0.value.count == 1 && revisions.contains($0.key) }
            == true
    }

    /// The names that say what the model's copies are copies of, by their names in the model.
    private func copyNames(_ json: JSONElement) throws -> [RevisionID: RevisionID] {
        let parents = try json["revisions"]?.items.map { (try id($0["id"]), $0["parent"]) } ?? []
        var names: [RevisionID: RevisionID] = [:]
        for (copy, parent) in parents.sorted(by: { $0.0 < $1.0 }) {
            guard let source = json["copies"]?[copy.text]?.items.first(where: { _ in true }) else { continue }
            let below = try id(parent)
            names[copy] = copyID(try id(source[0]), try id(source[1]), over: names[below] ?? below)
        }
        return names
    }

    private func lines(_ name: String) throws -> [JSONElement] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../Fixtures/conflicts"
        )
        let lines = try Data(contentsOf: folder.appending(path: name)).split(separator: UInt8(ascii: "\n"))
        return try lines.map { try JSONElement(parsing: Array($0)) }
    }

    private func tree(_ json: JSONElement, _ copies: [RevisionID: RevisionID]) throws -> RevisionTree {
        func name(_ json: JSONElement?) throws -> RevisionID {
            let id = try id(json)
            return copies[id] ?? id
        }
        var knowledge = TreeKnowledge()
        for entry in try #require(json["revisions"]).items {
            knowledge.nodes.append(
                RevisionTree.Node(
                    id: try name(entry["id"]),
                    parent: try entry["parent"].flatMap { $0.isNull ? nil : try name($0) },
                    flags: entry["deleted"]?.bool == true ? .deleted : [],
                    body: JSONText(canonical: ["content": .string(entry["content"]?.string ?? "")])
                )
            )
        }
        for entry in try #require(json["closed"]).items { knowledge.closed.insert(try name(entry)) }
        for (copy, _) in try #require(json["copies"]).members {
            let id = try #require(RevisionID(copy))
            knowledge.copies.insert(try #require(copies[id]))
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
        (knowledge.closed, knowledge.copies) = (closed, Set(copies.keys))
        knowledge.vectors = vectors
        return knowledge
    }
}
