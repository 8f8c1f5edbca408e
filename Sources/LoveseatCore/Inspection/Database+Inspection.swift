package import LoveseatModel
import LoveseatStorage

/// The contents of a database, for tools. The calls block the thread while they read.
extension Database {
    /// The collections as they are, also those that another process has made since this one opened the database.
    package func currentCollections() throws -> [Collection] {
        let names = try DocumentStore.wrapping { try store.read { $0.collections } }
        return names.map { Collection(database: self, handle: $0) }
            .sorted { ($0.scope.name, $0.name) < ($1.scope.name, $1.name) }
    }

    /// How much a collection contains.
    package struct CollectionTotals: Hashable, Sendable {
        /// The number of documents that are not deleted.
        package let documents: Int
        /// The number of tombstones.
        package let tombstones: Int
        /// The bytes of all current bodies.
        package let bytes: Int
        /// The number of documents with revisions that contend.
        package let conflicts: Int
    }

    /// Counts a collection. This reads all its documents.
    package func totals(of collection: Collection) throws -> CollectionTotals {
        let totals = try DocumentStore.wrapping { try store.read { try $0.totals(collection.handle) } }
        return CollectionTotals(
            documents: totals.documents,
            tombstones: totals.tombstones,
            bytes: totals.bytes,
            conflicts: try collection.contentions(includingDecided: false).count
        )
    }

    /// Calls a closure with each blob that a document of a collection refers to, until it returns false.
    package func forEachBlob(
        in collection: Collection,
        _ body: (_ document: String, _ blob: BlobReference) -> Bool
    ) throws {
        try DocumentStore.wrapping {
            try store.read { view in
                try view.blobHolders(in: collection.handle) { record in
                    BlobReference.all(in: record.body).allSatisfy { body(record.id, $0) }
                }
            }
        }
    }

    /// The addresses of the remote databases that this one has replicated with, the latest one first.
    package func knownRemotes(limit: Int) throws -> [String] {
        try DocumentStore.wrapping { try store.read { try $0.knownRemotes(limit: limit).map { $0.address } } }
    }

    /// The peers of earlier connections, as the process that serves the database has recorded them; nil if there are none.
    package func recordedPeers() throws -> JSONValue? {
        let text = try DocumentStore.wrapping { try store.read { try $0.info(Self.peerRecord) } }
        // A damaged record counts as none: the process that serves the database writes it anew.
        return text.flatMap { try? JSONValue(parsing: $0) }
    }

    /// Records the peers of earlier connections.
    package func recordPeers(_ peers: JSONValue) throws {
        try DocumentStore.wrapping {
            try store.write(within: config.busyTimeout) { try $0.setInfo(Self.peerRecord, peers.description) }
        }
    }

    private static let peerRecord = "recorded_peers"
}
