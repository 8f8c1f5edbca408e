import GRDB

/// How far migrations of an app's documents have come, in the table `info`.
package enum MigrationProgress {
    /// The entry of a migration.
    package static func key(of name: String, in collection: CollectionHandle) -> String {
        prefix(collection) + name
    }

    private static func prefix(_ collection: CollectionHandle) -> String { "migration/\(collection.number)/" }

    /// Forgets the migrations of a collection that is deleted.
    static func forget(in collection: CollectionHandle, _ db: Database) throws {
        try db.execute(
            sql: "DELETE FROM info WHERE substr(key, 1, length(?1)) = ?1",
            arguments: [prefix(collection)]
        )
    }
}
