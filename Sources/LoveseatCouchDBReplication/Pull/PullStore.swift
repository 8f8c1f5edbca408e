package import LoveseatModel

/// The database of a pull, as far as it is not a `Replica`.
package protocol PullStore: AnyObject {
    /// The leaves of these that are not here.
    func missing(of listed: [(id: String, revisions: [RevisionID])]) throws -> [WantedLeaf]
    /// Stores revisions in one transaction, as far as the app's filter lets them in; returns a result for each.
    func insert(_ revisions: [FetchedRevision]) throws -> [PulledResult]
    /// The current revisions of those documents that are here.
    func current(_ ids: [String]) throws -> [CurrentRevision]
}

/// A leaf that is not here, and revisions of its document that are.
package struct WantedLeaf: Hashable, Sendable {
    package let leaf: DocumentLeaf
    package let known: [RevisionID]

    package init(leaf: DocumentLeaf, known: [RevisionID]) { (self.leaf, self.known) = (leaf, known) }

    /// Whether a revision with this history, newest first, is what was asked for, or goes on from it. A peer may have cut the history.
    func isAnswered(by history: [RevisionID]) -> Bool {
        guard let oldest = history.last else { return false }
        return history.contains(leaf.revision) || oldest.generation > leaf.revision.generation
    }

    /// The revisions in an answer of `_bulk_get`; nil if the leaf has to be fetched by itself, because it has attachments, or to find out
    /// the reason.
    package func documents(in item: BulkGetItem) -> [IncomingDocument]? {
        guard item.documentID.isExactly(leaf.documentID), !item.documents.isEmpty else { return nil }
        let documents = item.documents.compactMap { try? IncomingDocument($0) }
        let areAnswers = documents.allSatisfy { document in
            document.attachments.isEmpty && isAnswered(by: document.history)
                && document.id?.isExactly(leaf.documentID) ?? true
        }
        return areAnswers && documents.count == item.documents.count ? documents : nil
    }
}

/// A revision that came, whose attachments are stored.
package struct FetchedRevision: Sendable {
    package let document: PreparedDocument
    package let blobs: any BlobHolder

    package init(document: PreparedDocument, blobs: any BlobHolder) {
        (self.document, self.blobs) = (document, blobs)
    }

    var leaf: DocumentLeaf {
        DocumentLeaf(
            documentID: document.id,
            revision: document.history.first ?? RevisionID(generation: 1, digest: [])
        )
    }

    /// Whether the body refers to a blob that is not here. Those that are here are kept.
    var lacksBlobs: Bool {
        let areHere = BlobReference.all(in: document.body).map { blobs.hold($0.digest) }
        return areHere.contains(false)
    }
}

/// Keeps the blobs of a revision until it is stored.
package protocol BlobHolder: AnyObject, Sendable {
    /// Keeps a blob; returns whether it is here.
    func hold(_ digest: BlobDigest) -> Bool
}

/// The result of storing a pulled revision.
package enum PulledResult: Sendable {
    case stored(hasConflict: Bool)
    /// The app's filter refuses it.
    case filtered
    /// A stub means an attachment that is not here.
    case lacksAttachments
    case failed(LoveseatError)
}

package struct CurrentRevision: Sendable {
    package let documentID: String
    package let revision: RevisionID
    package let sequence: UInt64
    /// Whether the document has no other branches.
    package let isLine: Bool

    package init(documentID: String, revision: RevisionID, sequence: UInt64, isLine: Bool) {
        (self.documentID, self.revision) = (documentID, revision)
        (self.sequence, self.isLine) = (sequence, isLine)
    }
}
