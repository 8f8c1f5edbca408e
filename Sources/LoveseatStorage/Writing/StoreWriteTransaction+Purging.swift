/// Purges, and times at which documents are purged.
extension StoreWriteTransaction {
    /// Removes a document; false if it does not exist.
    ///
    /// `isWanted`: whether the user purges it; false if a peer takes it away.
    package func purge(_ id: String, in collection: CollectionHandle, isWanted: Bool = true) throws -> Bool {
        try requireOpen(collection)
        if isWanted { try purgeTable.remember(id, in: collection) }
        let statement = try RawStatement(
            "DELETE FROM \"\(collection.table)\" WHERE doc_id = ?1",
            in: database
        )
        statement.bind(1, id)
        guard try statement.run() > 0 else { return false }
        try ancestorTable.forget(id, in: collection)
        try replacedTable.forget(id, in: collection)
        try saveLastSequence(of: collection)
        recordChange(of: id, in: collection)
        return true
    }

    /// Called when the rows need not contain the last sequence. None may be used twice.
    func saveLastSequence(of collection: CollectionHandle) throws {
        let last = try RawStatement(
            "UPDATE collections SET last_sequence = ?2 WHERE number = ?1",
            in: database
        )
        last.bind(1, collection.number)
        last.bind(2, Int64(clamping: catalogView.lastSequence[collection.number] ?? 0))
        try last.run()
    }
}
