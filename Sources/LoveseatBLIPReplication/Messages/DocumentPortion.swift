import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A peer's request for the content of leaves that the message with their document left out, in its answer to that (docs/extensions.md,
/// "Trees").
enum LeafRequest {
    /// Of the answer to `rev`: the leaves, separated by commas.
    private static let property = "loveseat_lacks"
    /// Of `rev`: it answers such a request.
    static let rest = "loveseat_rest"

    /// The leaves that the peer asks for. A peer that does not ask, such as an older Loveseat, gets no more.
    static func leaves(in answer: Message) -> Set<RevisionID> {
        let names = answer.properties[property]?.split(separator: ",") ?? []
        return Set(names.compactMap { RevisionID(received: String($0)) })
    }

    /// Asks for leaves. Further ones are asked for in the answer to the message that brings these.
    static func add(_ leaves: [RevisionID], to answer: inout Message) {
        answer.properties[property] = leaves.map(\.text).joined(separator: ",")
    }
}

/// The rest of a document that the peer was sent: content of leaves that did not fit.
struct RestOfDocument {
    /// The revision that was sent with the tree.
    let head: NamedRevision
    /// It was new to the peer.
    let isNew: Bool
    /// The leaves that the peer asks for.
    var wanted: Set<RevisionID>
    /// Those that it was sent.
    var sent: Set<RevisionID>
}

/// The part of a document that one message brings: the current revision, with other leaves' content as far as there is room for it; or
/// else the content of leaves that the peer asks for then. So no message, and nothing that waits for the socket, is longer than the longest content
/// of one revision and the room together.
struct DocumentPortion {
    let content: SendableRevision
    /// The tree as the message has it.
    private(set) var tree: [UInt8]?
    /// The leaves whose content comes with the message.
    private(set) var brought: Set<RevisionID> = []
    /// Those of which there is content here that comes with no message so far.
    private(set) var left: Set<RevisionID> = []
    let isRest: Bool

    /// The current revision.
    ///
    /// `takesBlobs`: the peer asks for the blobs of other leaves.
    init(_ content: SendableRevision, takesBlobs: Bool, _ tuning: ReplicationTuning) {
        self.content = content
        isRest = false
        // Most documents have a single line.
        guard let knowledge = content.knowledge else { return }
        let current = content.revision
        guard takesBlobs, knowledge.keepsBranches else {
            tree = TreeMessage.body(knowledge, current: current)
            return
        }
        let free = ReplicationTuning.fullMessage - content.body.bytes.count
        let room = min(tuning.keptTreeBodies, max(0, free))
        let bodies = TreeBodies(of: knowledge, room: room) { $0.id != current }
        add(bodies, of: knowledge, current: current)
    }

    /// Content of leaves that the peer asks for: one of them, which may be longer than the room, and others. Nil if there is none here, or the
    /// peer may not have it any more.
    init?(_ content: SendableRevision, _ rest: RestOfDocument, _ tuning: ReplicationTuning) {
        guard let knowledge = content.knowledge else { return nil }
        func isOpen(_ node: RevisionTree.Node) -> Bool {
            node.id != content.revision && !rest.sent.contains(node.id)
        }
        let wanted = knowledge.nodes.filter {
            $0.body != nil && rest.wanted.contains($0.id) && isOpen($0)
        }
        guard let leaf = wanted.max(by: { $0.id < $1.id }), let body = leaf.body else { return nil }
        self.content = SendableRevision(
            revision: leaf.id,
            history: [],
            isDeleted: leaf.isDeleted,
            body: body
        )
        isRest = true
        let room = max(0, tuning.keptTreeBodies - body.bytes.count)
        let others = TreeBodies(of: knowledge, room: room, wanted: rest.wanted) {
            $0.id != leaf.id && isOpen($0)
        }
        add(others, of: knowledge, current: content.revision)
        brought.insert(leaf.id)
    }

    private mutating func add(_ bodies: TreeBodies, of knowledge: TreeKnowledge, current: RevisionID) {
        tree = TreeMessage.body(knowledge, current: current, bodies)
        brought.formUnion(bodies.brought.map(\.id))
        left = Set(bodies.left)
    }
}
