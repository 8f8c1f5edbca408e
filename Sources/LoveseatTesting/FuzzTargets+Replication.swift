import LoveseatBLIPReplication
import LoveseatModel

extension FuzzTargets {
    /// Messages that break no rule of BLIP's, to the passive side of a database: a kind, properties and a body each, cut
    /// out of the bytes.
    public static func passive(_ bytes: [UInt8]) { converse(.passive, bytes) }

    /// The same to the active side, which pushes and pulls; some of the messages answer what it asks.
    public static func active(_ bytes: [UInt8]) { converse(.active, bytes) }

    /// A peer's description of a document's history, and the same bytes as a stored tree. A tree that is accepted has a current revision,
    /// describes itself in the same way again, and is read from the disk as it was written.
    public static func tree(_ bytes: [UInt8]) {
        let body = JSONText(canonical: ["a": 1])
        if let stored = RevisionTreeDecoder.decode(bytes, currentBody: body, closing: { $0 }) {
            examine(stored)
        }
        _ = (RevisionTreeDecoder.mark(of: 1, in: bytes), RevisionTreeDecoder.currentVersion(in: bytes))
        // Most bytes are not a peer's tree.
        guard let received = try? TreeMessage.parse(bytes) else { return }
        let (knowledge, current) = (received.knowledge, received.current)
        let node = RevisionTree.Node(
            id: RevisionID(generation: 1, digest: [0xAA]),
            parent: nil,
            flags: [],
            body: body
        )
        var tree = RevisionTree(nodes: [node], remotes: [:])
        let policy = TreePolicy(depth: 8)
        // A forged tree may have a line that cannot be, or that takes too long to follow.
        guard (try? tree.merge(knowledge, by: policy)) != nil else { return }
        let said = TreeMessage.body(knowledge, current: current, withCurrent: true)
        guard let again = try? TreeMessage.parse(said) else {
            preconditionFailure("a tree's own text is none")
        }
        precondition(again.knowledge.summary == knowledge.summary, "a tree's own text says something else")
        policy.prune(&tree)
        examine(tree)
    }

    static func examine(_ tree: RevisionTree) {
        guard let current = tree.current else { preconditionFailure("nothing is current") }
        _ = (tree.candidates, tree.summary, tree.knowledge)
        // A tree may have no body at all, and a single revision that no remote has is stored without a tree.
        guard let body = current.body, let bytes = RevisionTreeEncoder.encode(tree, current: current) else {
            return
        }
        let read = RevisionTreeDecoder.decode(bytes, currentBody: body, closing: { $0 })
        precondition(read?.current?.id == current.id, "another revision is current after reading")
        precondition(read?.summary == tree.summary, "less is known after reading")
        precondition(read?.vectors == tree.vectors, "the vectors are others after reading")
        precondition(
            RevisionTreeDecoder.currentVersion(in: bytes) == tree.vectors[current.id]?.current,
            "the current version is another one if it is read alone"
        )
        for id in tree.vectors.keys {
            precondition(tree.versions.state(of: id).vector.current != nil, "a vector gives no state")
        }
    }

    /// Has a peer say what the bytes contain. Returns the number of documents in the database at the end.
    @discardableResult
    package static func converse(_ side: HostileConversation.Side, _ bytes: [UInt8]) -> Int {
        // The disk may be full.
        guard let scratch = try? Scratch() else { return 0 }
        // Its folder goes with it, and it may go after its last use.
        defer { withExtendedLifetime(scratch) {} }
        let conversation: HostileConversation
        do {
            conversation = try HostileConversation(side, folder: "\(scratch.path)/blobs")
        } catch { preconditionFailure("a conversation cannot begin: \(error)") }
        for piece in pieces(of: bytes) {
            guard conversation.say(piece) else { break }
        }
        conversation.end()
        return conversation.documentCount
    }
}
