import GRDB
import LoveseatModel

/// Totals and searches for tools. They read whole tables.
extension StoreReadTransaction {
    /// How much a collection contains.
    package struct Totals: Hashable, Sendable {
        /// The number of documents that are not deleted.
        package let documents: Int
        /// The number of tombstones.
        package let tombstones: Int
        /// The bytes of all current bodies.
        package let bytes: Int
    }

    /// Counts a collection's documents and their bytes.
    package func totals(_ collection: CollectionHandle) throws -> Totals {
        let statement = try RawStatement(
            """
            SELECT count(*), sum(flags & 1), sum(length(CAST(body AS BLOB)))
            FROM "\(collection.table)"
            """,
            in: database
        )
        defer { statement.reset() }
        guard try statement.step() else { return Totals(documents: 0, tombstones: 0, bytes: 0) }
        let tombstones = Int(statement.int(1))
        return Totals(
            documents: Int(statement.int(0)) - tombstones,
            tombstones: tombstones,
            bytes: Int(statement.int(2))
        )
    }

    /// Returns the bytes of the database's file, without its log, and those of the pages in it that are used. This reads only its header.
    package func fileSize() throws -> (all: UInt64, used: UInt64) {
        func value(_ name: String) throws -> UInt64 {
            UInt64(clamping: try Int64.fetchOne(database, sql: "PRAGMA \(name)") ?? 0)
        }
        let (page, pages, free) = try (value("page_size"), value("page_count"), value("freelist_count"))
        return (page * pages, page * (pages - min(free, pages)))
    }

    /// Reads documents whose current revision refers to blobs, until `visit` returns false.
    package func blobHolders(in collection: CollectionHandle, visit: (DocumentRecord) throws -> Bool) throws {
        try records(in: collection, where: "flags & 9 = 8", visit: visit)
    }

    /// Reads documents whose history has more than one line, until `visit` returns false.
    package func branched(in collection: CollectionHandle, visit: (DocumentRecord) throws -> Bool) throws {
        try records(in: collection, where: "flags & \(RowFlags.branched.rawValue)", visit: visit)
    }

    private func records(
        in collection: CollectionHandle,
        where condition: String,
        visit: (DocumentRecord) throws -> Bool
    ) throws {
        let statement = try RawStatement(
            "SELECT \(CollectionHandle.columns) FROM \"\(collection.table)\" WHERE \(condition)",
            in: database
        )
        defer { statement.reset() }
        while try statement.step() {
            if try !visit(record(of: statement, in: collection)) { return }
        }
    }

    /// The addresses of the remote databases that this one has replicated with, with the last user name.
    package func knownRemotes(limit: Int) throws -> [(address: String, user: String?)] {
        try Row.fetchAll(
            database.cachedStatement(sql: "SELECT address, user FROM remotes ORDER BY number DESC LIMIT ?"),
            arguments: [limit]
        )
        .map { ($0["address"], $0["user"]) }
    }
}
