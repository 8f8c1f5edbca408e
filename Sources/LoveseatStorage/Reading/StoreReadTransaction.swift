import GRDB
private import GRDBSQLite
package import LoveseatModel

/// A snapshot of the database. It can be used only inside the closure that it is passed to.
package class StoreReadTransaction {
    let database: Database
    package fileprivate(set) var catalogView: StoreCatalog
    /// Ends the transaction if its task is cancelled; nil if it cannot be cancelled.
    var interruption: ReadInterruption?

    init(database: Database, catalog: StoreCatalog) {
        self.database = database
        catalogView = catalog
    }

    package var collections: [CollectionHandle] { Array(catalogView.collections.values) }

    package func collection(_ name: CollectionName) -> CollectionHandle? { catalogView.collections[name] }

    package func contains(_ collection: CollectionHandle) -> Bool {
        catalogView.lastSequence[collection.number] != nil
    }

    /// Runs a step of a closure that may catch the step's errors and continue.
    package func step<T>(_ body: () throws -> T) throws -> T {
        try interruption?.check()
        return try body()
    }

    /// A document's row, tombstones included; nil if there is none.
    package func record(_ id: String, in collection: CollectionHandle) throws -> DocumentRecord? {
        let statement = try RawStatement(collection.statements.fetch, in: database)
        statement.bind(1, id)
        defer { statement.reset() }
        return try statement.step() ? try record(of: statement, in: collection) : nil
    }

    /// How much a document's row holds, without reading its tree; nil if there is none.
    package func size(of id: String, in collection: CollectionHandle) throws -> StoredSize? {
        let statement = try RawStatement(collection.statements.size, in: database)
        statement.bind(1, id)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        return StoredSize(tree: Int(statement.int(0)), body: Int(statement.int(1)))
    }

    /// Reads rows with sequences above `since`, in order, until `visit` returns false.
    ///
    /// `remote`: leaves out plain rows whose current revision this remote is known to have. Other rows may contain
    /// knowledge that it lacks.
    package func changes(
        in collection: CollectionHandle,
        since: UInt64,
        notSyncedWith remote: Int? = nil,
        visit: (DocumentRecord) throws -> Bool
    ) throws {
        let marked = remote.flatMap { catalogView.marks[collection.number]?[$0] } ?? SequenceSet()
        let statement = try RawStatement(collection.statements.changes, in: database)
        statement.bind(1, Int64(clamping: since))
        statement.bind(2, Int64(remote ?? -1))
        defer { statement.reset() }
        while try statement.step() {
            let isPlain = !RowFlags(rawValue: statement.int(4)).contains(.branched)
            if isPlain, marked.contains(UInt64(clamping: statement.int(2))) { continue }
            if try !visit(record(of: statement, in: collection)) { return }
        }
    }

    /// Frees the pages that a long scan read, which are not read again soon. They have replaced the others in the connection's cache.
    package func forgetPages() { sqlite3_db_release_memory(database.sqliteConnection) }

    func record(of statement: RawStatement, in collection: CollectionHandle) throws
        -> DocumentRecord
    {
        guard let revision = RevisionID(statement.string(3)) else {
            throw LoveseatError(
                .corruptRevisionData,
                "document \"\(statement.string(1))\" has a revision ID that is not valid: run `check`"
            )
        }
        return DocumentRecord(
            row: statement.int(0),
            id: statement.string(1),
            sequence: UInt64(clamping: statement.int(2)),
            revision: revision,
            flags: RowFlags(rawValue: statement.int(4)),
            synced: Int(statement.int(5)),
            marks: catalogView.marks[collection.number] ?? [:],
            expires: statement.isNull(6) ? nil : statement.int(6),
            encodedTree: statement.optionalBytes(7),
            body: JSONText(trusted: statement.bytes(8))
        )
    }

    /// The last sequence that was used, by this transaction, too.
    package func newestSequence(_ collection: CollectionHandle) -> UInt64 {
        catalogView.lastSequence[collection.number] ?? 0
    }

    /// The last sequence of any row in this snapshot.
    package func lastSequence(_ collection: CollectionHandle) throws -> UInt64 {
        UInt64(
            try Int64.fetchOne(
                database.cachedStatement(sql: "SELECT max(sequence) FROM \"\(collection.table)\"")
            ) ?? 0
        )
    }

    /// The number of documents that are not deleted.
    package func count(_ collection: CollectionHandle) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT (SELECT count(*) FROM "\(collection.table)")
                        - (SELECT count(*) FROM "\(collection.table)" WHERE flags & 1)
                    """
            )
        ) ?? 0
    }

    /// The number of documents, deleted or not, whose IDs come before one.
    package func count(in collection: CollectionHandle, before id: String, isDescending: Bool) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(
                sql:
                    "SELECT count(*) FROM \"\(collection.table)\" WHERE flags & 1 = 0 AND doc_id \(isDescending ? ">" : "<") ?"
            ),
            arguments: [id]
        ) ?? 0
    }

    /// The number of tombstones.
    package func deletedCount(_ collection: CollectionHandle) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(sql: "SELECT count(*) FROM \"\(collection.table)\" WHERE flags & 1")
        ) ?? 0
    }

    /// The number of changes after a sequence; at most `limit`, which is all of them by default.
    package func changeCount(in collection: CollectionHandle, after sequence: UInt64, limit: Int = -1) throws
        -> Int
    {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM \"\(collection.table)\" WHERE sequence > ? LIMIT ?)"
        return try Int.fetchOne(
            database.cachedStatement(sql: sql),
            arguments: [Int64(clamping: sequence), limit]
        ) ?? 0
    }

    /// Reads rows with sequences below `before`, in descending order, until `visit` returns false.
    package func changesBackwards(
        in collection: CollectionHandle,
        before: UInt64,
        visit: (DocumentRecord) throws -> Bool
    ) throws {
        let statement = try RawStatement(
            """
            SELECT \(CollectionHandle.columns) FROM "\(collection.table)" WHERE sequence < ?1 ORDER BY sequence DESC
            """,
            in: database
        )
        statement.bind(1, Int64(clamping: before))
        defer { statement.reset() }
        while try statement.step() {
            if try !visit(record(of: statement, in: collection)) { return }
        }
    }

    /// The documents with a conflict that was not resolved yet, in the order of their sequences, from the one after
    /// `after`.
    ///
    /// - Returns: `next`: the last one's sequence if there may be more.
    package func conflictedIDs(
        in collection: CollectionHandle,
        after sequence: UInt64 = 0,
        limit: Int = 1_000
    ) throws -> (ids: [String], next: UInt64?) {
        let rows = try Row.fetchAll(
            database.cachedStatement(
                sql:
                    "SELECT doc_id, sequence FROM \"\(collection.table)\" WHERE flags & 16 AND sequence > ? ORDER BY sequence LIMIT ?"
            ),
            arguments: [Int64(clamping: sequence), limit]
        )
        let last = rows.last.map { UInt64(clamping: $0["sequence"] as Int64) }
        return (rows.map { $0["doc_id"] }, rows.count == limit ? last : nil)
    }

    /// A property that few documents have.
    package enum Rarity: String, CaseIterable, Sendable {
        /// A conflict that was not resolved yet.
        case conflict = "flags & 16"
        case expiration = "expires IS NOT NULL"
    }

    /// The maximum number of collections that one statement reads. GRDB records the tables that a statement reads, which takes time with
    /// the square of their number.
    static let collectionsAtOnce = 16

    /// The numbers of those collections that have any document with a rare property. Statements for each of many collections would take
    /// longer to prepare, and would be kept.
    package func numbers(of collections: [CollectionHandle], with rarity: Rarity) throws -> Set<Int64> {
        var found: Set<Int64> = []
        for start in stride(from: 0, to: collections.count, by: Self.collectionsAtOnce) {
            let part = collections[start..<min(start + Self.collectionsAtOnce, collections.count)]
            let questions = part.map {
                "SELECT \($0.number) WHERE EXISTS (SELECT 1 FROM \"\($0.table)\" WHERE \(rarity.rawValue))"
            }
            found.formUnion(
                try Int64.fetchAll(database, sql: questions.joined(separator: " UNION ALL "))
            )
        }
        return found
    }

    /// The expired documents, and the next time at which one expires.
    package func expired(in collection: CollectionHandle, at now: Int64) throws -> (
        ids: [String], next: Int64?
    ) {
        let ids = try String.fetchAll(
            database.cachedStatement(
                sql: "SELECT doc_id FROM \"\(collection.table)\" WHERE expires <= ? LIMIT 1000"
            ),
            arguments: [now]
        )
        let next = try Int64.fetchOne(
            database.cachedStatement(
                sql: "SELECT min(expires) FROM \"\(collection.table)\" WHERE expires > ?"
            ),
            arguments: [now]
        )
        return (ids, next)
    }

    /// Every blob that a stored body refers to.
    package func referencedBlobs() throws -> Set<BlobDigest> {
        var found: Set<BlobDigest> = []
        for collection in collections {
            try changes(in: collection, since: 0) { record in
                for body in try record.bodiesWithBlobs() {
                    found.formUnion(BlobReference.all(in: body).map(\.digest))
                }
                return true
            }
        }
        return found
    }
}

extension DocumentRecord {
    /// The current body, and those of conflicting leaves and kept ancestors.
    func allBodies() throws(LoveseatError) -> [JSONText] {
        guard encodedTree != nil else { return [body] }
        return try tree().nodes.values.compactMap(\.body)
    }
}

extension DocumentRecord {
    /// The bodies whose blobs are kept: not those of deleted revisions, which are kept for access policies only.
    fileprivate func bodiesWithBlobs() throws(LoveseatError) -> [JSONText] {
        guard isDeleted, encodedTree != nil else { return try allBodies() }
        let tree = try tree()
        let deleted = tree.isLine ? tree.deleted(by: revision)?.id : nil
        return tree.nodes.values.compactMap { $0.id == deleted ? nil : $0.body }
    }
}

extension StoreReadTransaction {
    /// Lets a write transaction keep the collections that it created.
    func replaceCatalog(_ change: (inout StoreCatalog) throws -> Void) rethrows {
        try change(&catalogView)
    }
}
