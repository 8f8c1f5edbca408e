extension StoreWriteTransaction {
    /// Sets when a document expires, in milliseconds since 1970, or nil for never; false if it does not exist.
    ///
    /// A document that had expired, and was not purged yet, gets a new sequence if it lives on: the feed of changes may have passed it over.
    package func setExpiration(_ id: String, in collection: CollectionHandle, at time: Int64?) throws -> Bool
    {
        try requireOpen(collection)
        // The clock is read in seconds.
        let soon = options.time().addingReportingOverflow(1).partialValue.multipliedReportingOverflow(
            by: 1_000
        )
        .partialValue
        if time ?? .max > soon, let record = try record(id, in: collection), let last = record.expires,
            last < soon
        {
            let sequence = try RawStatement(
                "UPDATE \"\(collection.table)\" SET sequence = ?2 WHERE doc_id = ?1",
                in: database
            )
            sequence.bind(1, id)
            sequence.bind(2, Int64(clamping: try nextSequence(collection)))
            try sequence.run()
            recordChange(of: id, in: collection)
        }
        let statement = try RawStatement(
            "UPDATE \"\(collection.table)\" SET expires = ?2 WHERE doc_id = ?1",
            in: database
        )
        statement.bind(1, id)
        statement.bind(2, time)
        if time != nil { noteRarity(.expiration, in: collection) }
        return try statement.run() > 0
    }
}
