import GRDB
import LoveseatModel

/// The revisions deep in lines that only whole histories contain (docs/decisions/0009): they are added when a row forgets them, and read when
/// a peer of CouchDB's wire asks.
extension StoreWriteTransaction {
    /// How often those of a document are looked at that are too old, in edits.
    private static let trimming: UInt32 = 64

    func keepAncestors(
        _ revisions: [RevisionTree.AsideRevision],
        of id: String,
        below current: RevisionID,
        in collection: CollectionHandle
    ) throws {
        guard !revisions.isEmpty else { return }
        let statement = try RawStatement(
            "INSERT OR REPLACE INTO ancestors (collection, doc_id, generation, revision, child, flags) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            in: database
        )
        for revision in revisions {
            statement.bind(1, collection.number)
            statement.bind(2, id)
            statement.bind(3, Int64(revision.id.generation))
            statement.bind(4, revision.id.text)
            statement.bind(5, revision.child.text)
            statement.bind(6, Int64(revision.flags.rawValue))
            try statement.run()
        }
        guard revisions.count > 1 || current.generation % Self.trimming == 0 else { return }
        let limit = Int64(catalog.revisionLimit ?? 0)
        try database.execute(
            sql: "DELETE FROM ancestors WHERE collection = ? AND doc_id = ? AND generation < ?",
            arguments: [collection.number, id, Int64(current.generation).subtractingSaturated(limit)]
        )
    }

    /// Forgets what the tables beside the rows hold of a document: its deep ancestors, or what its replaced revisions said.
    func forget(_ tables: StaticString..., of id: String, in collection: CollectionHandle) throws {
        guard catalogView.revisionLimit != nil else { return }
        for table in tables { try forget(table, of: id, in: collection) }
    }

    private func forget(_ table: StaticString, of id: String, in collection: CollectionHandle) throws {
        let statement = try RawStatement(
            "DELETE FROM \(table) WHERE collection = ?1 AND doc_id = ?2",
            in: database
        )
        statement.bind(1, collection.number)
        statement.bind(2, id)
        try statement.run()
    }

    /// The tree to which a peer of CouchDB's wire adds revisions: with all ancestors if one of them does not continue a leaf that is here.
    func wholeTree(
        of record: DocumentRecord,
        for histories: some Sequence<[RevisionID]>,
        in collection: CollectionHandle
    ) throws -> RevisionTree {
        guard record.flags.contains(.hasAncestors) else { return try tree(of: record) }
        let tree = try tree(of: record)
        let leaves = Set(tree.leaves.map(\.id))
        if histories.allSatisfy({ !leaves.isDisjoint(with: $0) }) { return tree }
        return try self.tree(of: whole(record, in: collection))
    }
}

extension StoreReadTransaction {
    /// A document with all ancestors that are kept, as the row would hold them.
    package func whole(_ record: DocumentRecord, in collection: CollectionHandle) throws -> DocumentRecord {
        guard record.flags.contains(.hasAncestors) else { return record }
        let limit = Int64(catalogView.revisionLimit ?? 0)
        let rows = try Row.fetchAll(
            database.cachedStatement(
                sql:
                    "SELECT revision, child, flags FROM ancestors WHERE collection = ? AND doc_id = ? AND generation >= ? ORDER BY generation DESC"
            ),
            arguments: [
                collection.number, record.id, Int64(record.revision.generation).subtractingSaturated(limit),
            ]
        )
        guard !rows.isEmpty else { return record }
        var tree = try record.tree()
        tree.putBack(
            rows.compactMap { row in
                guard let id = RevisionID(row["revision"] as String),
                    let child = RevisionID(row["child"] as String)
                else { return nil }
                let flags = RevisionTree.Flags(rawValue: UInt8(truncatingIfNeeded: row["flags"] as Int64))
                return RevisionTree.AsideRevision(id: id, child: child, flags: flags)
            }
        )
        return try record.replacing(tree)
    }
}

extension DocumentStore {
    /// See ``StoreReadTransaction/whole(_:in:)``.
    package func whole(_ record: DocumentRecord, in collection: CollectionHandle) throws -> DocumentRecord {
        guard record.flags.contains(.hasAncestors) else { return record }
        return try readRows { try $0.whole(record, in: collection) }
    }
}
