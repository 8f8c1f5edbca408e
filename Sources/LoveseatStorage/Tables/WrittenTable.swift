import GRDB

/// A table, as a transaction writes it.
protocol WrittenTable {
    var transaction: StoreWriteTransaction { get }
}

extension WrittenTable {
    var database: Database { transaction.database }
    var catalog: StoreCatalog { transaction.catalog }

    /// Removes a document's rows from a table beside its own.
    func remove(_ id: String, from table: StaticString, in collection: CollectionHandle) throws {
        // Only databases that peers of CouchDB's wire use have such rows.
        if catalog.revisionLimit == nil { return }
        let statement = try RawStatement(
            "DELETE FROM \(table) WHERE collection = ?1 AND doc_id = ?2",
            in: database
        )
        statement.bind(1, collection.number)
        statement.bind(2, id)
        try statement.run()
    }
}
