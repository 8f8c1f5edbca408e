import LoveseatModel

/// The content that one message brings of a tree, and the rest of it.
struct TreeBodies {
    /// In the order in which they are written.
    private(set) var brought: [(id: RevisionID, body: JSONText)] = []
    /// The leaves that are left out because there is no room for them, or nobody has asked for them yet.
    private(set) var left: [RevisionID] = []

    /// Chooses among the revisions that have content.
    ///
    /// `room`: the maximum of bytes. `first`: the revision that gets room before all others. The highest of these come first. `wanted`: the only
    /// ones that are brought; nil for all.
    init(
        of knowledge: TreeKnowledge,
        first: RevisionID? = nil,
        room: Int,
        wanted: Set<RevisionID>? = nil,
        where isMeant: (RevisionTree.Node) -> Bool
    ) {
        var room = room
        let nodes = knowledge.nodes.filter { $0.body != nil && isMeant($0) }
        for node in nodes.sorted(by: { ($0.id == first ? 1 : 0, $0.id) > ($1.id == first ? 1 : 0, $1.id) }) {
            guard let body = node.body else { continue }
            if body.bytes.count <= room, wanted?.contains(node.id) ?? true {
                room -= body.bytes.count
                brought.append((node.id, body))
            } else {
                left.append(node.id)
            }
        }
    }

    /// The content that goes along with the current revision, to a peer that asks for nothing else.
    init(of knowledge: TreeKnowledge, current: RevisionID, withCurrent: Bool) {
        self.init(of: knowledge, first: current, room: ReplicationTuning.treeBodies) { node in
            (withCurrent || node.id != current) && !node.flags.contains(.hasBlobs)
        }
        left = []
    }
}
