import GRDB
import LoveseatModel

/// The times of deletions: the last sequence of a collection at the end of a second in which something was deleted there.
///
/// A tombstone is at least as old as the first entry that its sequence does not exceed. Of the hours before the current one, the last entry
/// of each is kept.
struct DeletionTable: WrittenTable {
    let transaction: StoreWriteTransaction

    private static let hour: Int64 = 3_600

    /// Notes that documents were deleted up to the collections' last sequences.
    func note(in collections: [Int64]) throws {
        let now = transaction.options.time()
        for number in collections {
            let last = try last(in: number)
            // A clock that was set back makes nothing older.
            let time = max(now, last ?? now)
            if let last, last / Self.hour != time / Self.hour { try thin(of: number, before: time) }
            try note(in: number, at: time)
        }
    }

    private func last(in number: Int64) throws -> Int64? {
        try Int64.fetchOne(
            database.cachedStatement(sql: "SELECT max(time) FROM deletions WHERE collection = ?"),
            arguments: [number]
        )
    }

    private func note(in number: Int64, at time: Int64) throws {
        let statement = try RawStatement(
            "INSERT OR REPLACE INTO deletions (collection, time, sequence) VALUES (?1, ?2, ?3)",
            in: database
        )
        statement.bind(1, number)
        statement.bind(2, time)
        statement.bind(3, Int64(clamping: catalog.lastSequence[number] ?? 0))
        try statement.run()
    }

    private func thin(of number: Int64, before time: Int64) throws {
        try database.execute(
            sql: """
                DELETE FROM deletions WHERE collection = ?1 AND time < ?2 AND time NOT IN (
                    SELECT max(time) FROM deletions WHERE collection = ?1 AND time < ?2 GROUP BY time / ?3
                )
                """,
            arguments: [number, time - time % Self.hour, Self.hour]
        )
    }

    /// Notes that everything that is deleted is at least as old as this moment, so that tombstones from before this table age, too.
    func noteAll() throws {
        let now = transaction.options.time()
        for number in transaction.collections.map(\.number).sorted() {
            // A clock that was ahead must not keep tombstones young for ever.
            try database.execute(
                sql: "DELETE FROM deletions WHERE collection = ? AND time > ?",
                arguments: [number, now]
            )
            try note(in: number, at: now)
        }
    }

    /// Removes tombstones that are at least as old as this, in seconds, without a trace. Those of documents that wait for a resolver stay.
    ///
    /// - Returns: the number of removed tombstones.
    func removeTombstones(olderThan age: Int64) throws -> Int {
        try noteAll()
        let now = transaction.options.time()
        var removed = 0
        for collection in transaction.collections.sorted(by: { $0.number < $1.number }) {
            // A document that was deleted in a second may have been deleted at its end.
            let limit =
                age <= 0
                ? Int64(clamping: catalog.lastSequence[collection.number] ?? 0)
                : try Int64.fetchOne(
                    database,
                    sql: "SELECT max(sequence) FROM deletions WHERE collection = ? AND time < ?",
                    arguments: [collection.number, now.subtractingReportingOverflow(age).partialValue]
                ) ?? 0
            let flags = RowFlags.deleted.rawValue
            try database.execute(
                sql: """
                    DELETE FROM "\(collection.table)"
                    WHERE flags & \(flags) AND NOT flags & \(RowFlags.hasConflicts.rawValue) AND sequence <= ?
                    """,
                arguments: [limit]
            )
            let count = database.changesCount
            guard count > 0 else { continue }
            removed += count
            for table in ["ancestors", "replaced"] {
                try database.execute(
                    sql: """
                        DELETE FROM \(table) WHERE collection = ?
                            AND NOT EXISTS (SELECT 1 FROM "\(collection.table)" AS rows WHERE rows.doc_id = \(table).doc_id)
                        """,
                    arguments: [collection.number]
                )
            }
            try transaction.saveLastSequence(of: collection)
        }
        return removed
    }
}

extension DocumentStore {
    /// See ``DeletionTable/removeTombstones(olderThan:)``.
    package func removeTombstones(olderThan age: Int64) throws -> Int {
        defer { changes.noteSilentChange() }
        return try write(call: "removeTombstones(olderThan:)") {
            try $0.deletionTable.removeTombstones(olderThan: age)
        }
    }
}
