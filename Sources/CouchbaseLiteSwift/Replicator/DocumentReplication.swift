public import LoveseatCore
import LoveseatModel

/// Documents that were replicated in one direction, or could not be.
public struct DocumentReplication: Sendable {
    /// The replicator.
    public let replicator: Replicator
    /// Whether the documents were pushed; false if they were pulled.
    public let isPush: Bool
    /// The documents, in the order in which they were replicated.
    public let documents: [ReplicatedDocument]
}

/// A document that was replicated, or that could not be.
public struct ReplicatedDocument: Sendable {
    /// The document's ID.
    public let id: String
    /// Whether the document was deleted, or access to it was removed.
    public let flags: DocumentFlags
    /// Why the document could not be replicated; nil if it was.
    public let error: (any Error)?
    /// The name of its collection's scope.
    public let scope: String
    /// The name of its collection.
    public let collection: String

    init(_ document: LoveseatCore.ReplicatedDocument) {
        id = document.id
        flags = document.flags
        error = document.error.map { CBLError.converted($0) }
        scope = document.scope
        collection = document.collection
    }
}
