package import LoveseatModel
import LoveseatStorage

/// The contents of a database, for tools. The calls block the thread while they read.
package struct DatabaseInspection {
    private let database: Database

    package init(_ database: Database) { self.database = database }

    /// The collections as they are, also those that another process has made since this one opened the database.
    package func collections() throws -> [Collection] {
        let names = try DocumentStore.wrapping { try database.store.read { $0.collections } }
        return names.map { Collection(database: database, handle: $0) }
            .sorted { ($0.scope.name, $0.name) < ($1.scope.name, $1.name) }
    }

    /// How much a collection contains.
    package struct Totals: Hashable, Sendable {
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
    package func totals(of collection: Collection) throws -> Totals {
        let totals = try DocumentStore.wrapping {
            try database.store.read { try $0.totals(collection.handle) }
        }
        return Totals(
            documents: totals.documents,
            tombstones: totals.tombstones,
            bytes: totals.bytes,
            conflicts: try CollectionConflicts(collection).all(includingDecided: false).count
        )
    }

    /// Calls a closure with each blob that a document of a collection refers to, until it returns false.
    package func forEachBlob(
        in collection: Collection,
        _ body: (_ document: String, _ blob: BlobReference) -> Bool
    ) throws {
        try DocumentStore.wrapping {
            try database.store.read { view in
                try view.blobHolders(in: collection.handle) { record in
                    BlobReference.all(in: record.body).allSatisfy { body(record.id, $0) }
                }
            }
        }
    }

    /// The problems of the stored data, one sentence each.
    package func problems() throws -> [String] { try database.store.check() }

    /// The full-text indexes whose words are damaged, one sentence each. The database must be writeable.
    package func damagedTextIndexes() throws -> [String] { try database.store.damagedTextIndexes() }

    /// A number that changes with every commit of another process.
    package func dataVersion() throws -> Int { try database.store.dataVersion() }
}
