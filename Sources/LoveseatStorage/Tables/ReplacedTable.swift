import GRDB
import LoveseatModel

/// The contents of replaced revisions, as far as databases keep them that peers of CouchDB's wire use: CouchDB serves them until a compaction
/// (docs/decisions/0009).
extension StoreWriteTransaction {
    /// The contents that are kept of one document, in bytes.
    package static let replacedBytes = 1 << 20
    /// How often the oldest of a document are removed, in edits; for larger ones each time.
    private static let trimming: UInt32 = 64

    /// Keeps what a document said before, as far as its row does not.
    func keepReplaced(of record: DocumentRecord, by tree: RevisionTree, in collection: CollectionHandle)
        throws
    {
        guard let limit = catalogView.revisionLimit else { return }
        if let node = tree.node(record.revision), node.body == nil {
            try keep(record.body, of: record.revision, record.id, collection)
        }
        if record.encodedTree != nil, ancestorBodiesKept > 0 || !tree.isLine {
            for node in try record.tree().nodes.values where node.id != record.revision {
                guard let body = node.body, let left = tree.node(node.id), left.body == nil else { continue }
                try keep(body, of: node.id, record.id, collection)
            }
        }
        let (generation, size) = (record.revision.generation, record.body.bytes.count)
        guard generation % Self.trimming == 0 || size > Self.replacedBytes / Int(Self.trimming) else {
            return
        }
        let oldest = Int64(generation).subtractingSaturated(Int64(limit))
        try database.cachedStatement(
            sql: "DELETE FROM replaced WHERE collection = ? AND doc_id = ? AND generation < ?"
        ).execute(arguments: [collection.number, record.id, oldest])
        // Of smaller ones that many are not too much.
        guard size > Self.replacedBytes / max(limit, 1) else { return }
        try trimReplaced(of: record.id, in: collection)
    }

    /// Removes the oldest contents, so that what is left is not too much.
    private func trimReplaced(of id: String, in collection: CollectionHandle) throws {
        let sql = """
            DELETE FROM replaced WHERE collection = ?1 AND doc_id = ?2 AND generation <= (
                SELECT max(generation) FROM (
                    SELECT generation, sum(length) OVER (ORDER BY generation DESC, revision DESC) AS total
                    FROM replaced WHERE collection = ?1 AND doc_id = ?2
                ) WHERE total > ?3
            )
            """
        try database.cachedStatement(sql: sql).execute(
            arguments: [collection.number, id, Self.replacedBytes]
        )
    }

    /// Keeps what a revision said that came after one that replaces it.
    func keepLate(
        _ body: JSONText,
        of revision: RevisionID,
        in tree: RevisionTree,
        _ id: String,
        _ collection: CollectionHandle
    )
        throws
    {
        guard catalogView.revisionLimit != nil, let node = tree.node(revision), node.body == nil else {
            return
        }
        try keep(body, of: revision, id, collection)
        try trimReplaced(of: id, in: collection)
    }

    private func keep(_ body: JSONText, of revision: RevisionID, _ id: String, _ collection: CollectionHandle)
        throws
    {
        guard body.bytes.count <= Self.replacedBytes else { return }
        let statement = try RawStatement(
            """
            INSERT OR IGNORE INTO replaced (collection, doc_id, generation, revision, length, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """,
            in: database
        )
        statement.bind(1, collection.number)
        statement.bind(2, id)
        statement.bind(3, Int64(revision.generation))
        statement.bind(4, revision.text)
        statement.bind(5, Int64(body.bytes.count))
        statement.bindText(6, body.bytes)
        try statement.run()
    }

    /// Forgets the contents of a document's replaced revisions.
    func forgetReplaced(of id: String, in collection: CollectionHandle) throws {
        let statement = try RawStatement(
            "DELETE FROM replaced WHERE collection = ?1 AND doc_id = ?2",
            in: database
        )
        statement.bind(1, collection.number)
        statement.bind(2, id)
        try statement.run()
    }

    /// Forgets the contents of the replaced revisions of all documents.
    func forgetReplaced() throws {
        guard catalogView.revisionLimit != nil else { return }
        try database.execute(sql: "DELETE FROM replaced")
    }
}

extension StoreReadTransaction {
    /// A document with the contents of replaced revisions that are kept, as the row would hold them.
    package func withReplaced(_ record: DocumentRecord, in collection: CollectionHandle) throws
        -> DocumentRecord
    {
        guard catalogView.revisionLimit != nil, record.encodedTree != nil else { return record }
        let statement = try RawStatement(
            "SELECT revision, body FROM replaced WHERE collection = ?1 AND doc_id = ?2",
            in: database
        )
        defer { statement.reset() }
        statement.bind(1, collection.number)
        statement.bind(2, record.id)
        var tree = try record.tree()
        while try statement.step() {
            guard let id = RevisionID(statement.string(0)) else { continue }
            tree.putBack(JSONText(trusted: statement.bytes(1)), of: id)
        }
        return try record.replacing(tree)
    }
}
