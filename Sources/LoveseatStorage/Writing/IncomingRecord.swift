package import LoveseatModel

/// A received revision that is to be stored.
package struct IncomingRecord: Sendable {
    package var documentID: String
    /// Newest first, the revision itself included.
    package var history: [RevisionID]
    /// The first revision of its line, if the history does not reach it.
    package var origin: RevisionID?
    package var isDeleted: Bool
    package var body: JSONText
    package var sender: RevisionTree.PeerKind
    /// The remote whose current revision this is; nil if that does not matter.
    package var remote: Int?
    /// The sender's tree of the document; nil if it has only this line.
    package var knowledge: TreeKnowledge?
    /// Set if this is only the content of leaves of a document that is here: the sender's current revision.
    package var restOf: RevisionID?
    /// Whether the app's resolver decides between two versions.
    package var asksResolver = false
    /// It comes from an export. Its versions are stored whatever the device's clock says.
    package var isExported = false
    /// The sender has taken a newer revision from here since it announced this one.
    package var isOutdated = false
    /// The announcement may have been about an older state, and not about the sender's current one.
    package var mayBeOld = false
    /// The local sequences of the documents for which marks of the remote count; nil for all.
    package var followed: SequenceSet?

    package init(
        documentID: String,
        history: [RevisionID],
        isDeleted: Bool,
        body: JSONText,
        sender: RevisionTree.PeerKind,
        remote: Int? = nil
    ) {
        self.documentID = documentID
        self.history = history
        self.isDeleted = isDeleted
        self.body = body
        self.sender = sender
        self.remote = remote
    }
}
