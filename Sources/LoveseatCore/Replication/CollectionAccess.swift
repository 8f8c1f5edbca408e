package import LoveseatModel
import LoveseatReplication
package import LoveseatStorage

/// The access of a client of CouchDB's wire to a collection and its documents, by a listener's policy.
///
/// Its methods are called outside transactions, since the app's policy may use the database.
package struct CollectionAccess: Sendable {
    private let access: PeerAccess
    private let store: DocumentStore
    private let collection: CollectionHandle

    package init(_ access: PeerAccess, store: DocumentStore, collection: CollectionHandle) {
        self.access = access
        self.store = store
        self.collection = collection
    }

    /// The name under which the documents that the client was sent are remembered.
    package var peerName: String { access.name }

    /// Whether the collection exists for the client.
    package var mayRead: Bool { access.access(to: collection.name) >= .read }

    /// Whether the client may write anything in the collection.
    package var mayWrite: Bool { access.access(to: collection.name) >= .write }

    /// The branches of a document that the client may read; nil if the document does not exist for it.
    package func branches(of record: DocumentRecord) throws -> DocumentBranches? {
        guard try mayRead(record) else { return nil }
        return try DocumentBranches(of: record).restricted { isAllowed($0, of: record.id) }
    }

    /// Whether the document exists for the client.
    package func mayRead(_ record: DocumentRecord) throws -> Bool {
        try access.mayRead(record, in: collection, store)
    }

    private func isAllowed(_ branch: DocumentBranch, of id: String) -> Bool {
        guard let body = branch.body else { return false }
        let candidate = FilterCandidate(
            documentID: id,
            revision: branch.id,
            isDeleted: branch.isDeleted,
            body: body
        )
        return access.access(to: candidate, in: collection.name) >= .read
    }

    /// Remembers that the client has documents, so that it is told when they are deleted.
    package func grant(_ ids: [String]) async throws {
        let new = try store.readRows { view in
            try ids.filter { try !view.isGranted($0, in: collection, to: access.name) }
        }
        if new.isEmpty { return }
        try await store.writeFromTask(within: nil) { try $0.grant(new, in: collection, to: access.name) }
    }

    /// A revision that a client wants to write.
    package struct Change: Sendable {
        package let id: String
        /// The revision and its ancestors, newest first, as far as they are known; for an edit, its parent.
        package let history: [RevisionID]
        package let isDeleted: Bool
        package let body: JSONText
        /// Whether it takes attachments from its ancestors.
        package var hasStubs = false
        /// The metadata of attachments that are not in the body, as `_attachments` contains it.
        package var attachments = JSONObject()
        /// The content that came with it.
        package var received: Set<BlobDigest> = []

        package init(id: String, history: [RevisionID], isDeleted: Bool, body: JSONText) {
            self.id = id
            self.history = history
            self.isDeleted = isDeleted
            self.body = body
        }
    }

    /// Whether the client may write a revision. `record`: the document as it is; nil if there is none.
    package func mayWrite(_ change: Change, over record: DocumentRecord?) throws -> Bool {
        guard let readable = try readableAncestors(of: change, over: record) else { return false }
        // A client without access to a blob has to send it, which proves that it has the content.
        var known = change.received
        for body in readable.map(\.body) { known.formUnion(Self.blobs(in: body)) }
        return Self.blobs(in: change.body).isSubset(of: known)
    }

    /// Whether the client may write a revision if it sends the blobs.
    package func mayWriteContent(_ change: Change, over record: DocumentRecord?) throws -> Bool {
        try readableAncestors(of: change, over: record) != nil
    }

    /// The ancestors of a change that the client may read; nil if it may not write the change.
    private func readableAncestors(of change: Change, over record: DocumentRecord?) throws
        -> [FilterCandidate]?
    {
        guard mayWrite else { return nil }
        if let record {
            // Deleting a document requires the right to write it: a tombstone has no content to decide by.
            let current = try FilterCandidate(judging: record)
            guard access.access(to: current, in: collection.name) >= .write else { return nil }
        }
        let candidate = FilterCandidate(
            documentID: change.id,
            revision: change.history.first ?? record?.revision
                ?? RevisionID(generation: 1, digest: []),
            isDeleted: change.isDeleted,
            body: change.body
        )
        if !change.isDeleted || record == nil {
            guard access.access(to: candidate, in: collection.name) >= .write else { return nil }
        }
        let ancestors = try ancestors(of: change, in: record)
        if let parent = ancestors.first {
            guard access.access(to: parent, in: collection.name) >= .write else { return nil }
        }
        let readable = ancestors.filter { access.access(to: $0, in: collection.name) >= .read }
        return !change.hasStubs || readable.count == ancestors.count ? readable : nil
    }

    private static func blobs(in body: JSONText) -> Set<BlobDigest> {
        Set(BlobReference.all(in: body).map(\.digest))
    }

    /// The revisions in a change's history whose content is here, and the current one if the change names none.
    private func ancestors(of change: Change, in record: DocumentRecord?) throws -> [FilterCandidate] {
        guard let record else { return [] }
        guard record.encodedTree != nil else {
            let isOver = change.history.isEmpty || change.history.contains(record.revision)
            return isOver && !record.isDeleted ? [FilterCandidate(record)] : []
        }
        let tree = try record.tree()
        let history = change.history.isEmpty ? [record.revision] : change.history
        return history.compactMap { tree.node($0) }.filter { !$0.isDeleted }
            .compactMap { FilterCandidate($0, of: record.id) }
    }
}
