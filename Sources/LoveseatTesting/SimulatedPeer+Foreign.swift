import LoveseatModel
import LoveseatStorage

/// A peer that is not a Loveseat, as the simulator sees the others.
extension SimulatedPeer {
    private func name(_ collection: Int) -> CollectionName { collections[collection].name }

    private func foreignDocuments(in collection: Int) -> [(id: String, tree: RevisionTree)] {
        guard let foreign else { return [] }
        return foreign.documentIDs(in: name(collection)).compactMap { id in
            foreign.tree(id, in: name(collection)).map { (id, $0) }
        }
    }

    func foreignLeaves(_ id: String, in collection: Int) -> [String] {
        guard let tree = foreign?.tree(id, in: name(collection)) else { return [] }
        let parents = Set(tree.nodes.values.compactMap(\.parent))
        let leaves = tree.nodes.values.filter { node in
            !parents.contains(node.id)
                && node.id != node.parent.map { BodyDigest.closingTombstone(over: $0) }
        }
        return leaves.map { $0.id.text + ($0.isDeleted ? " deleted" : "") }
    }

    func foreignContents(in collection: Int) -> [String: JSONText] {
        var contents: [String: JSONText] = [:]
        for (id, tree) in foreignDocuments(in: collection) {
            for node in tree.nodes.values {
                if let body = node.body { contents["\(id) \(node.id)"] = body.canonical }
            }
        }
        return contents
    }

    func foreignState(of collection: Int) -> [String: DocumentState] {
        var state: [String: DocumentState] = [:]
        for (id, tree) in foreignDocuments(in: collection) {
            guard let current = foreign?.winner(id, in: name(collection)).flatMap({ tree.node($0) }) else {
                continue
            }
            state[id] = DocumentState(
                revision: current.id,
                isDeleted: current.isDeleted,
                body: current.body ?? .emptyObject,
                hasConflict: false,
                knowledge: foreignLeaves(id, in: collection).sorted().joined(separator: " ")
            )
        }
        return state
    }
}
