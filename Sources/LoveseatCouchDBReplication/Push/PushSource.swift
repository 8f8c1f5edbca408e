package import LoveseatModel

/// The local documents of a push.
package protocol PushSource: AnyObject {
    /// Reads the next changes that are not done; nil if there are none. The content of these documents is held until the next page is read.
    func nextPage(after done: SequenceSet) throws -> PushPage?
    /// The text of a leaf of the page that was read last, with its attachments in parts or inline.
    func render(_ leaf: PushedLeaf, isInline: Bool) -> RenderedDocument
    func contains(_ blob: BlobDigest) -> Bool
}

/// Changed documents.
package struct PushPage: Sendable {
    package struct Document: Sendable {
        package let id: String
        package let sequence: UInt64
        /// The current revision.
        package let revision: RevisionID
        package let isDeleted: Bool
        /// The leaves that the app's filter lets out.
        package let leaves: [RevisionID]

        package init(
            id: String,
            sequence: UInt64,
            revision: RevisionID,
            isDeleted: Bool,
            leaves: [RevisionID]
        ) {
            (self.id, self.sequence, self.revision) = (id, sequence, revision)
            (self.isDeleted, self.leaves) = (isDeleted, leaves)
        }
    }

    /// A document that cannot be pushed as it is.
    package struct Unfit: Sendable {
        package let id: String
        package let sequence: UInt64
        package let isDeleted: Bool
        package let error: LoveseatError
        /// Whether the next session tries it again.
        package let isHeldBack: Bool

        package init(id: String, sequence: UInt64, isDeleted: Bool, error: LoveseatError, isHeldBack: Bool) {
            (self.id, self.sequence, self.isDeleted) = (id, sequence, isDeleted)
            (self.error, self.isHeldBack) = (error, isHeldBack)
        }
    }

    package var documents: [Document] = []
    package var unfit: [Unfit] = []
    /// The sequences that were looked at.
    package let range: ClosedRange<UInt64>

    package init(_ range: ClosedRange<UInt64>) { self.range = range }
}

/// A leaf that the remote lacks.
package struct PushedLeaf: Sendable {
    /// Its document's place in the page.
    package let place: Int
    package let documentID: String
    package let revision: RevisionID
    /// Revisions that the remote has.
    package let known: [RevisionID]
    /// Whether all attachments are sent, also those that the remote seems to have.
    package internal(set) var isWhole = false
    /// Its text, with the content of attachments in parts.
    package internal(set) var text = RenderedDocument()
}
