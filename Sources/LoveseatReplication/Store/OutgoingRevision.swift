package import LoveseatModel

/// A request for a revision to be sent.
package struct RevisionRequest: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    /// Revisions that the peer has.
    package let known: [RevisionName]
    package let maxHistory: Int
    /// Whether the peer takes a delta against one of the revisions that it has.
    package let wantsDelta: Bool
    package let peer: RevisionTree.PeerKind
    /// Whether a hub gets a copy even if the revision descends from the hub's.
    package let isCopyOnly: Bool
    /// How many forms of the revision a peer with version vectors has refused (``SendableRevision/hasOtherForm``).
    package var refusedForms = 0

    package init(
        documentID: String,
        revision: RevisionID,
        known: [RevisionName],
        maxHistory: Int,
        wantsDelta: Bool = false,
        peer: RevisionTree.PeerKind,
        isCopyOnly: Bool = false
    ) {
        self.peer = peer
        self.isCopyOnly = isCopyOnly
        self.documentID = documentID
        self.revision = revision
        self.known = known
        self.maxHistory = maxHistory
        self.wantsDelta = wantsDelta
    }
}

/// A revision to be sent, or why it cannot be.
package enum OutgoingRevision: Hashable, Sendable {
    case found(SendableRevision)
    /// The document was purged.
    case missing
    /// A newer revision took its place and its body is gone; this is the current one.
    case obsolete(current: RevisionID)
    /// The hub has the same content under another revision.
    case same
    /// Its body is not the one that the revision was made of.
    case damaged

    /// Whether it comes with the knowledge of its document's tree.
    package var bringsTree: Bool {
        if case .found(let content) = self { content.knowledge != nil } else { false }
    }
}

/// A revision as it is sent.
package struct SendableRevision: Hashable, Sendable {
    package let revision: RevisionID
    /// Its ancestors, newest first. A peer with version vectors is sent the ``state`` instead.
    package let history: [RevisionID]
    /// The revision for a peer with version vectors: the vector, and the revisions behind it. Nil for peers with trees.
    package var state: StateHistory?
    /// A peer with version vectors that refuses the revision may take it in another form: with other revisions behind the vector.
    package var hasOtherForm = false
    package var isDeleted: Bool
    package var body: JSONText
    /// The first revision of its line, for a Loveseat to which the history does not show it.
    package var origin: RevisionID?
    /// The rest of the document's tree, for a Loveseat; nil if there is only this line.
    package var knowledge: TreeKnowledge?
    /// Set if the revision is a copy that was made for a hub.
    package var copy: HubCopy?
    /// The hub may have had this revision: other peers wrote the document, too, and the hub's revisions are not known.
    package var isUncertain = false
    /// A revision that the peer has, with its body, to make a delta against.
    package var deltaBase: DeltaBase?

    /// The content of one line on top of another, the only form in which a hub accepts it (docs/decisions/0001).
    package struct HubCopy: Hashable, Sendable {
        /// The first revision with that content.
        package let original: RevisionID
        /// The hub's revision below it.
        package let parent: RevisionID

        package init(original: RevisionID, parent: RevisionID) {
            self.original = original
            self.parent = parent
        }
    }

    package struct DeltaBase: Hashable, Sendable {
        package let revision: RevisionName
        package let body: JSONText

        package init(revision: RevisionName, body: JSONText) {
            self.revision = revision
            self.body = body
        }
    }

    package init(
        revision: RevisionID,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText
    ) {
        self.revision = revision
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
    }

    /// The name by which the peer is sent the revision.
    package var name: RevisionName { RevisionName(of: revision, state) }

    /// The generation by which a table of attachments is ordered; nil for a peer with version vectors, which has no generations.
    package var generation: UInt32? { state == nil ? revision.generation : nil }
}
