import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// `rev` (replication.md §9).
package struct RevisionMessage: Sendable {
    let documentID: String
    let sequence: RemoteSequence?
    let isDeleted: Bool
    /// The revision that the body is a delta to; nil for a whole body.
    let deltaSource: RevisionName?
    /// A newer revision comes in place of the announced one, perhaps with another sequence.
    let isReplacement: Bool
    /// Whether a received revision replaces one whose name is not valid.
    private let hasInvalidReplaced: Bool
    private let properties: MessageProperties
    /// The descent of a received revision, or the error in it; nil for a message to be sent.
    private let received: Result<IncomingRevision.History, ReplyError>?
    /// The document or a delta, and the tree if there is one.
    private let body: [UInt8]

    // MARK: Received

    init(_ message: Message, _ names: RevisionNaming) {
        (properties, body) = (message.properties, message.body)
        documentID = properties["id"] ?? ""
        sequence = properties["sequence"].flatMap { RemoteSequence(json: $0) }
        let deleted = properties["deleted"] ?? "0"
        isDeleted = deleted != "0" && deleted.lowercased() != "false"
        deltaSource = properties["deltaSrc"].flatMap(names.base)
        let replaced = properties["replacedRev"]
        isReplacement = replaced != nil
        hasInvalidReplaced = names == .versions && replaced.map { names.announced($0) == nil } ?? false
        received = names.history(properties["rev"], properties["history"])
    }

    /// The revision with its descent; an empty line for a message that does not pass its check.
    var history: IncomingRevision.History { (try? received?.get()) ?? .line([]) }

    /// The name of the revision; nil if it is not valid.
    var name: RevisionName? {
        switch history {
        case .line(let line): line.first.map { .revision($0) }
        case .state(let state): state.name
        }
    }

    /// The generation of a revision of a tree; nil for a version.
    var generation: UInt32? { name?.treeID?.generation }

    /// The first revision of the line, where the history does not reach it.
    var origin: RevisionID? { properties[ProtocolExtensions.origin].flatMap { RevisionID(received: $0) } }

    /// Throws if the message is not valid (replication.md §9.4, steps 1 to 4).
    func check(needsSequence: Bool) throws(ReplyError) {
        guard properties["error"] == nil else {
            throw ReplyError("HTTP", 502, "Peer failed to send revision")
        }
        guard DocumentID.isValidOnWire(documentID) else {
            throw ReplyError("HTTP", 400, "received invalid docID '\(documentID)'")
        }
        _ = try received?.get()
        guard sequence != nil || !needsSequence else {
            throw ReplyError("HTTP", 400, "received 'rev' message with missing 'sequence'")
        }
        guard deltaSource != nil || properties["deltaSrc"] == nil else {
            throw ReplyError("HTTP", 400, "received invalid deltaSrc")
        }
        guard !hasInvalidReplaced else { throw ReplyError("HTTP", 400, "received invalid replacedRev") }
    }

    /// Whether the revision is a leaf of a document that was sent before, with content that did not fit (docs/extensions.md, "Trees").
    var isRest: Bool { properties[LeafRequest.rest] != nil }

    /// The body, without the tree that the message may bring at its end (docs/extensions.md).
    func parts(from peer: RevisionTree.PeerKind) throws(ReplyError) -> (body: [UInt8], tree: ReceivedTree?) {
        guard let text = properties[TreeMessage.property] else {
            guard !isRest else {
                throw ReplyError("HTTP", 400, "invalid tree: the rest of a document has none")
            }
            return (body, nil)
        }
        guard peer == .loveseat, let count = Int(text), count > 0, count <= body.count else {
            throw ReplyError(
                "HTTP",
                400,
                "invalid tree: nobody announced it, or it is longer than the body"
            )
        }
        return (Array(body.dropLast(count)), try TreeMessage.parse(body.suffix(count)))
    }

    // MARK: Sent

    /// `addsAttachments`: for a peer that does not look for blobs in bodies.
    init(
        _ portion: DocumentPortion,
        of change: LocalChange,
        collection: Int?,
        isProposal: Bool,
        addsAttachments: Bool
    ) {
        let content = portion.content
        var properties = Message(.revision, collection: collection).properties
        properties.reserveCapacity(10)
        properties["id"] = change.documentID
        properties["rev"] = content.name.text
        isReplacement = content.revision != change.revision && !isProposal && !portion.isRest
        if isReplacement { properties["replacedRev"] = AnnouncedChange(change).revisionText }
        sequence = RemoteSequence(change.sequence)
        properties["sequence"] = sequence?.text
        if isProposal { properties["noconflicts"] = "true" }
        if content.isDeleted { properties["deleted"] = "1" }
        if let state = content.state {
            properties["history"] = state.history
        } else if !content.history.isEmpty {
            properties["history"] = content.history.map(\.text).joined(separator: ",")
        }
        properties[ProtocolExtensions.origin] = content.origin?.text
        var body =
            addsAttachments
            ? Attachments.adding(to: content.body, generation: content.generation).bytes
            : content.body.bytes
        let delta = content.deltaBase.flatMap { Self.delta($0, body, addsAttachments: addsAttachments) }
        deltaSource = delta == nil ? nil : content.deltaBase?.revision
        if let delta {
            properties["deltaSrc"] = deltaSource?.text
            body = delta
        }
        if let tree = portion.tree {
            properties[TreeMessage.property] = String(tree.count)
            body += tree
        }
        if portion.isRest { properties[LeafRequest.rest] = "true" }
        documentID = change.documentID
        isDeleted = content.isDeleted
        received = nil
        hasInvalidReplaced = false
        (self.properties, self.body) = (properties, body)
    }

    var message: Message { Message(properties, body: body) }

    /// The difference from the body that the peer has; nil if it is not shorter than the new body.
    private static func delta(
        _ base: SendableRevision.DeltaBase,
        _ body: [UInt8],
        addsAttachments: Bool
    ) -> [UInt8]? {
        guard body.count >= ReplicationTuning.shortestForDelta, base.body != .emptyObject else { return nil }
        // Both in the form that the peer sees.
        let old =
            addsAttachments
            ? Attachments.adding(to: base.body, generation: base.revision.treeID?.generation) : base.body
        let delta = JSONDelta.create(
            from: JSONElement(old).value,
            to: JSONElement(JSONText(trusted: body)).value
        )
        let bytes = JSONText(canonical: delta).bytes
        return bytes.count < body.count ? bytes : nil
    }

    /// The body that results from a received delta; nil if the delta is not valid, or belongs to another document.
    static func expand(_ delta: [UInt8], base: JSONText) -> [UInt8]? {
        guard let delta = try? JSONElement(parsing: delta) else { return nil }
        // A delta that mentions attachments was made against a body that had them (replication.md §11.5).
        let old = delta["_attachments"] == nil ? base : Attachments.adding(to: base, generation: 1)
        guard let body = try? JSONDelta.apply(delta.value, to: JSONElement(old).value), case .object = body
        else { return nil }
        return JSONText(canonical: body).bytes
    }

    /// The peer's answer to a revision that it took.
    enum Answer {
        /// `isNew`: it was not there before.
        case taken(isNew: Bool)
        /// It knows a reason why another one is current (docs/extensions.md).
        case outranked(tree: [UInt8])

        var isNew: Bool { if case .taken(isNew: false) = self { false } else { true } }

        init(_ message: Message) {
            self =
                message.properties[TreeMessage.property] == nil
                ? .taken(isNew: message.properties["noop"] == nil) : .outranked(tree: message.body)
        }

        func message(isUrgent: Bool) -> Message {
            switch self {
            case .taken(isNew: true): Message(isUrgent: isUrgent)
            case .taken(isNew: false): Message(["noop": "true"], isUrgent: isUrgent)
            case .outranked(let tree):
                Message([TreeMessage.property: "true"], body: tree, isUrgent: isUrgent)
            }
        }
    }
}
