package import LoveseatModel

/// A received revision as a filter sees it.
package struct FilterCandidate: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionName
    package let isDeleted: Bool
    package let body: JSONText

    package init(documentID: String, revision: RevisionName, isDeleted: Bool, body: JSONText) {
        self.documentID = documentID
        self.revision = revision
        self.isDeleted = isDeleted
        self.body = body
    }
}

/// A received revision.
package struct IncomingRevision: Hashable, Sendable {
    /// The descent of a received revision.
    package enum History: Hashable, Sendable {
        /// A revision of a tree and its ancestors, newest first.
        case line([RevisionID])
        /// A state, from a peer with version vectors.
        case state(StateHistory)
    }

    package let documentID: String
    package let history: History
    package let isDeleted: Bool
    package private(set) var body: JSONText
    /// See ``SendableRevision/origin``.
    package var origin: RevisionID?
    /// See ``SendableRevision/knowledge``.
    package var knowledge: TreeKnowledge?
    package let sender: RevisionTree.PeerKind
    /// The version that is known to its author as the current one here, of a state that was proposed over it.
    package var parent: RevisionName?
    /// The sender has taken a newer revision from here since it announced this one.
    package var isOutdated = false
    /// The announcement may have been about an older state, and not about the sender's current one.
    package var mayBeOld = false
    /// Set if this is only the content of leaves of a document that is here: the sender's current revision.
    package var restOf: RevisionID?
    /// The sender has left out content of other leaves, which may follow.
    package var isIncomplete = false

    package init(
        documentID: String,
        history: History,
        isDeleted: Bool,
        body: JSONText,
        sender: RevisionTree.PeerKind
    ) {
        self.documentID = documentID
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
        self.sender = sender
    }

    /// Creates a revision of a tree. `history`: newest first, the revision itself included.
    package init(
        documentID: String,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText,
        sender: RevisionTree.PeerKind
    ) {
        self.init(
            documentID: documentID,
            history: .line(history),
            isDeleted: isDeleted,
            body: body,
            sender: sender
        )
    }

    /// The revisions of a tree, newest first, itself included; none for a state of a peer with version vectors.
    package var line: [RevisionID] {
        switch history {
        case .line(let line): line
        case .state: []
        }
    }

    /// The bytes of its body, and of the content of other leaves that comes with it.
    package var contentBytes: Int {
        guard let knowledge else { return body.bytes.count }
        return knowledge.nodes.reduce(body.bytes.count) { $0 + ($1.body?.bytes.count ?? 0) }
    }

    /// The name by which the peer sent it.
    package var name: RevisionName {
        switch history {
        case .line(let line): line.first.map { .revision($0) } ?? .unknown
        case .state(let state): state.name ?? .unknown
        }
    }

    /// Returns the same revision with another body.
    package func with(_ body: JSONText) -> IncomingRevision {
        var revision = self
        revision.body = body
        return revision
    }
}

package enum InsertResult: Hashable, Sendable {
    case inserted
    case alreadyHere
    /// Stored beside the local revision, until the app's resolver has answered.
    case conflict
    /// Stored, but another revision is the current one here, for reasons that its sender may not know.
    case outranked(TreeKnowledge, current: RevisionID)
    /// Not stored, because it would conflict.
    case refusedConflict
    case badHistory
    case failed(LoveseatError)

    package var isStored: Bool {
        switch self {
        case .inserted, .alreadyHere, .conflict, .outranked: true
        case .refusedConflict, .badHistory, .failed: false
        }
    }
}

package enum BlobStart: Hashable, Sendable {
    /// So many bytes are here already.
    case from(UInt64)
    /// It is being received over this connection for another document.
    case underWay
    /// It arrived meanwhile.
    case here
}
