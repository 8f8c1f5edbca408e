package import LoveseatModel

/// A state that came from a peer with version vectors, to be stored.
package struct IncomingState: Sendable {
    package var documentID: String
    package var state: StateHistory
    package var isDeleted: Bool
    package var body: JSONText
    /// The remote whose current state this is; nil on the passive side, which refuses conflicts.
    package var remote: Int?
    /// See ``IncomingRevision/parent``.
    package var parent: RevisionName?
    /// Whether the app's resolver decides between two states.
    package var asksResolver = false
    /// See ``IncomingRecord/isOutdated``.
    package var isOutdated = false
    /// See ``IncomingRecord/followed``.
    package var followed: SequenceSet?

    package init(
        documentID: String,
        state: StateHistory,
        isDeleted: Bool,
        body: JSONText,
        remote: Int?
    ) {
        self.documentID = documentID
        self.state = state
        self.isDeleted = isDeleted
        self.body = body
        self.remote = remote
    }
}
