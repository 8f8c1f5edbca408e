package import LoveseatModel

/// A document whose attachments' content is stored, ready for a transaction.
package struct PreparedDocument: Sendable {
    package enum Attachment: Sendable {
        /// `position`: as the client gave it.
        case ready(StoredAttachment, position: Int?)
        case stub(IncomingAttachment)
    }

    package let id: String
    package var history: [RevisionID]
    package let isDeleted: Bool
    /// Whether it only says that the document is not for its reader.
    package let isRemoved: Bool
    /// Whether it says when it expires.
    package let hasExpiration: Bool
    package let body: JSONText
    package var attachments: [Attachment] = []
    /// The content that came with the document.
    package var received: Set<BlobDigest> = []
    /// Why it is refused, if that is known before its content is stored.
    package var refusal: CouchDBError?
    /// An attachment without content that stands for a blob of the body which is not here.
    package var missingBlob: String?

    package init(_ document: IncomingDocument, id: String) {
        self.id = id
        history = document.history
        isDeleted = document.isDeleted
        isRemoved = document.isRemoved
        hasExpiration = document.hasExpiration
        body = document.body
    }

    /// A document of a batch that is refused alone. `id`: empty if it has none.
    package init(refusal: CouchDBError, id: String, history: [RevisionID]) {
        (self.id, self.history, self.refusal) = (id, history, refusal)
        (isDeleted, isRemoved, hasExpiration, body) = (false, false, false, .emptyObject)
    }

    /// Whether an attachment came as a stub, other than one for a blob that is here.
    package var hasStubs: Bool {
        missingBlob != nil || attachments.contains { if case .stub = $0 { true } else { false } }
    }
}
