import LoveseatAssertions
package import LoveseatModel
import LoveseatTesting

/// A CouchDB as a peer of simulated histories.
extension ScriptedCouchDB: ForeignDatabases {
    package func documentIDs(in collection: CollectionName) -> [String] {
        databases[name(of: collection)]?.documents.keys.sorted() ?? []
    }

    package func tree(_ id: String, in collection: CollectionName) -> RevisionTree? {
        guard let document = databases[name(of: collection)]?.documents[id] else { return nil }
        func node(_ id: RevisionID) -> RevisionTree.Node {
            let node = document.nodes[id]
            return RevisionTree.Node(
                id: id,
                parent: node?.parent,
                flags: node?.isDeleted == true ? .deleted : [],
                body: node?.body.map { JSONText(canonical: $0) }
            )
        }
        var leaves = document.ranked
        if leaves.isEmpty { return nil }
        // A tree that keeps its branches before it has several of them closes none.
        var tree = RevisionTree(nodes: document.line(leaves.removeFirst()).map(node), remotes: [:])
        tree.keepBranches()
        for leaf in leaves {
            let newest = node(leaf)
            do {
                let branch = RevisionBranch(
                    history: document.line(leaf),
                    flags: newest.flags,
                    body: newest.body ?? .emptyObject
                )
                _ = try branch.insert(into: &tree, by: .standard)
            } catch { impossible("a line of a CouchDB is not one: \(error)") }
        }
        return tree
    }

    package func winner(_ id: String, in collection: CollectionName) -> RevisionID? {
        databases[name(of: collection)]?.documents[id]?.ranked.first
    }

    package func drainChanges(in collection: CollectionName) -> [String] {
        let name = name(of: collection)
        guard let changed = databases[name]?.changed, !changed.isEmpty else { return [] }
        databases[name]?.changed = []
        return changed.sorted()
    }

    package func edit(
        _ id: String,
        in collection: CollectionName,
        body: JSONText,
        isDeleted: Bool,
        digest: [UInt8]
    ) {
        let name = name(of: collection)
        var database = databases[name] ?? empty()
        let line = database.documents[id].map { document in
            document.ranked.first.map { document.line($0) } ?? []
        }
        let history = line ?? []
        guard
            let revision = RevisionID("\((history.first?.generation ?? 0) + 1)-\(digest.hexadecimalText)")
        else { return impossible("\(digest) makes no revision") }
        let incoming = ScriptedCouchDatabase.Incoming(
            id: id,
            history: [revision] + history,
            isDeleted: isDeleted,
            body: JSONElement(body).value,
            attachments: [:],
            stubs: [:]
        )
        do { try database.merge([incoming]) } catch { impossible("a CouchDB refused its own edit") }
        databases[name] = database
    }

    package func compact() { for name in databases.keys { databases[name]?.compact() } }
}
