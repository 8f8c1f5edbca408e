import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

extension FuzzTargets {
    /// Messages that break no rule of BLIP's, to the passive side of a database: a kind, properties and a body each, cut
    /// out of the bytes.
    public static func passive(_ bytes: [UInt8]) {
        var plan = PassivePlan(collections: [.default])
        plan.usesDeltas = true
        converse(remote: nil, bytes) { ReplicationSession(passive: plan, replicas: $0) }
    }

    /// The same to the active side, which pushes and pulls; some of the messages answer what it asks.
    public static func active(_ bytes: [UInt8]) {
        var plan = ActivePlan(
            collections: [.init(name: .default, checkpointID: "cp-x")],
            pushes: true,
            pulls: true,
            isContinuous: true
        )
        plan.usesDeltas = true
        converse(remote: 1, bytes) { ReplicationSession(active: plan, replicas: $0) }
    }

    /// A peer's description of a document's history, and the same bytes as a stored tree. A tree that is accepted has a current revision,
    /// describes itself in the same way again, and is read from the disk as it was written.
    public static func tree(_ bytes: [UInt8]) {
        let body = JSONText(canonical: ["a": 1])
        if let stored = RevisionTreeDecoder.decode(bytes, currentBody: body, closing: { $0 }) {
            examine(stored)
        }
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

    private static func examine(_ tree: RevisionTree) {
        guard let current = tree.current else { preconditionFailure("nothing is current") }
        _ = (tree.candidates, tree.summary, tree.knowledge)
        // A tree may have no body at all, and a single revision that no remote has is stored without a tree.
        guard let body = current.body, let bytes = RevisionTreeEncoder.encode(tree, current: current) else {
            return
        }
        let read = RevisionTreeDecoder.decode(bytes, currentBody: body, closing: { $0 })
        precondition(read?.current?.id == current.id, "another revision is current after reading")
        precondition(read?.summary == tree.summary, "less is known after reading")
    }

    private static func converse(
        remote: Int?,
        _ bytes: [UInt8],
        session: (any ReplicaSource) -> ReplicationSession
    ) {
        // The disk may be full.
        guard let scratch = try? Scratch() else { return }
        // Its folder goes with it, and it may go after its last use.
        defer { withExtendedLifetime(scratch) {} }
        let conversation: HostileConversation
        do {
            conversation = try HostileConversation(
                remote: remote,
                folder: "\(scratch.path)/blobs",
                session: session
            )
        } catch { preconditionFailure("a conversation cannot begin: \(error)") }
        for piece in pieces(of: bytes) {
            guard conversation.say(piece) else { break }
        }
        conversation.end()
    }
}

/// A session, on a database with two documents, and the peer that says what a fuzzer makes up.
private final class HostileConversation {
    private static let profiles = [
        "getCollections", "getCheckpoint", "setCheckpoint", "subChanges", "changes", "proposeChanges", "rev",
        "norev", "getAttachment", "proveAttachment", "unsubChanges", "x",
    ]

    private let store: DocumentStore
    private let line: PuppetLine
    /// The session's requests that have no answer yet.
    private var questions: [UInt64] = []

    /// `remote`: the number of the remote database; nil for the passive side.
    init(remote: Int?, folder: String, session: (any ReplicaSource) -> ReplicationSession) throws {
        let store = try DocumentStore.inMemory(blobFolder: folder)
        let collection = try Self.fill(store)
        self.store = store
        let replicas =
            remote.map {
                DatabaseReplicas(
                    store: store,
                    collections: [collection],
                    checkpointIDs: ["cp-x"],
                    remote: $0,
                    nowMilliseconds: { 0 }
                )
            } ?? DatabaseReplicas(store: store, nowMilliseconds: { 0 })
        line = PuppetLine(session, replicas)
        line.onEvent = { [unowned self] event in
            if case .request(let number, let message) = event, !message.noReply { questions.append(number) }
        }
        try line.connect(.mobile3)
    }

    private static func fill(_ store: DocumentStore) throws -> CollectionHandle {
        try store.write { transaction in
            let collection = try transaction.createCollection(.default)
            for id in ["d", "e"] {
                _ = try transaction.save(
                    id,
                    in: collection,
                    body: JSONText(canonical: ["a": 1]),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            return collection
        }
    }

    /// Sends one message; false when the conversation is over. The first byte says whether it asks (below 128) or answers,
    /// and what.
    func say(_ piece: [UInt8]) -> Bool {
        guard !line.isClosed, piece.count >= 2 else { return !line.isClosed }
        let (properties, body) = Self.content(piece[1...])
        do throws(BLIPError) {
            if piece[0] < 128 {
                let profile = Self.profiles[Int(piece[0]) % Self.profiles.count]
                var request = properties
                request["Profile"] = profile
                try line.puppet.send(Message(request, body: body), tag: 1)
            } else if let question = questions.first {
                questions.removeFirst()
                if piece[0] < 240 {
                    try line.puppet.reply(Message(properties, body: body), to: question)
                } else {
                    let code = Int(piece[0] % 2 == 0 ? 404 : 409)
                    try line.puppet.reply(ReplyError("HTTP", code, "no"), to: question)
                }
            }
        } catch {
            // The fuzzer's properties may be too long for any message: that one is not sent.
            guard case .tooLarge = error else { preconditionFailure("a message cannot be sent: \(error)") }
            return true
        }
        attempt { try line.runUntilQuiet() }
        return true
    }

    /// Runs a step of the conversation. The fuzzer's peer can read the driver's answers, whatever the fuzzer says.
    private func attempt(_ answers: () throws -> Void) {
        do { try answers() } catch { preconditionFailure("the driver says what no peer can read: \(error)") }
    }

    func end() {
        attempt { try line.cut() }
        precondition((try? store.check()) == [], "the database is damaged")
    }

    /// The first byte says how many lines of `name=value` follow; the rest is the body.
    private static func content(_ bytes: ArraySlice<UInt8>) -> (MessageProperties, [UInt8]) {
        var properties: MessageProperties = [:]
        var rest = bytes.dropFirst()
        for _ in 0..<Int((bytes.first ?? 0) % 8) {
            let line = rest.prefix { $0 != 0x0A }
            rest = rest.dropFirst(line.count + 1)
            let parts = line.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard parts.count == 2 else { continue }
            let (name, value) = (
                String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)
            )
            guard !name.utf8.contains(0), !value.utf8.contains(0) else { continue }
            properties[name] = value
        }
        return (properties, Array(rest))
    }
}
