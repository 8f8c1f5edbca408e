import GRDB
import LoveseatModel

/// The contents of replaced revisions, in databases that peers of CouchDB's wire use: CouchDB serves them until a compaction
/// (docs/decisions/0009).
package struct ReplacedTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// The maximum size of the contents that are kept of one document, in bytes, apart from the last few.
    package static let maximumBytes = 1 << 20
    /// How often contents are trimmed: at one in so many edits, and at each edit whose content is larger than this.
    private static let trimming: (edits: UInt64, bytes: Int) = (16, 16 << 10)

    /// Keeps the earlier contents of a document that its row does not keep.
    func keep(of record: DocumentRecord, by tree: RevisionTree, in collection: CollectionHandle)
        throws
    {
        // Most databases have no peers of CouchDB's wire, and keep nothing.
        guard let limit = catalog.revisionLimit else { return }
        var largest = 0
        func keepIfReplaced(_ body: JSONText?, _ id: RevisionID) throws {
            // The row may keep the content itself, or have forgotten the revision.
            guard let body, let left = tree.node(id), left.body == nil else { return }
            try keep(body, of: id, record.id, collection)
            largest = max(largest, body.bytes.count)
        }
        try keepIfReplaced(record.body, record.revision)
        if record.encodedTree != nil, transaction.treePolicy.ancestorBodiesKept > 0 || !tree.isLine {
            for node in try record.tree().nodes.values where node.id != record.revision {
                try keepIfReplaced(node.body, node.id)
            }
        }
        // Spread over all sequences: a document may have every second one.
        let isChosen = (record.sequence &* 0x9E37_79B9_7F4A_7C15) >> 32 % Self.trimming.edits == 0
        if largest == 0 || (!isChosen && largest <= Self.trimming.bytes) { return }
        let oldest = Int64(record.revision.generation).subtractingSaturated(Int64(clamping: limit))
        if tree.isLine, oldest > 0 {
            try database.cachedStatement(
                sql: "DELETE FROM replaced WHERE collection = ? AND doc_id = ? AND generation < ?"
            ).execute(arguments: [collection.number, record.id, oldest])
        }
        // If a line keeps only small ones, they are not too much.
        if tree.isLine, largest <= Self.maximumBytes / max(limit, 1) { return }
        try trim(of: record.id, in: collection)
    }

    /// Removes the oldest contents, so that the rest is not too much.
    private func trim(of id: String, in collection: CollectionHandle) throws {
        let sql = """
            DELETE FROM replaced WHERE collection = ?1 AND doc_id = ?2 AND generation <= (
                SELECT max(generation) FROM (
                    SELECT generation, sum(length) OVER (ORDER BY generation DESC, revision DESC) AS total
                    FROM replaced WHERE collection = ?1 AND doc_id = ?2
                ) WHERE total > ?3
            )
            """
        try database.cachedStatement(sql: sql).execute(
            arguments: [collection.number, id, Self.maximumBytes]
        )
    }

    /// Keeps the content of a revision that arrived after one that replaces it.
    func keepLate(
        _ body: JSONText,
        of revision: RevisionID,
        in tree: RevisionTree,
        _ id: String,
        _ collection: CollectionHandle
    )
        throws
    {
        guard catalog.revisionLimit != nil, let node = tree.node(revision), node.body == nil else {
            return
        }
        try keep(body, of: revision, id, collection)
        try trim(of: id, in: collection)
    }

    /// Throws if a replaced revision arrives with other content than it had, if that is still here.
    ///
    /// - Throws: ``OtherContent``.
    func compare(
        _ arrived: RevisionTree.Node,
        with tree: RevisionTree,
        _ id: String,
        _ collection: CollectionHandle
    ) throws {
        // Most revisions that arrive were not replaced here, or nothing is kept of them.
        guard catalog.revisionLimit != nil, let body = arrived.body, !arrived.isDeleted,
            let node = tree.node(arrived.id), node.body == nil, !node.isDeleted
        else { return }
        let statement = try RawStatement(
            "SELECT body FROM replaced WHERE collection = ?1 AND doc_id = ?2 AND generation = ?3 AND revision = ?4",
            in: database
        )
        defer { statement.reset() }
        statement.bind(1, collection.number)
        statement.bind(2, id)
        statement.bind(3, Int64(arrived.id.generation))
        statement.bind(4, arrived.id.text)
        // The content may not be kept any more, or be damaged.
        guard try statement.step(), let known = Self.content(of: statement.bytes(0)) else { return }
        guard known.saysTheSame(as: body) else { throw OtherContent(revision: arrived.id) }
    }

    private func keep(_ body: JSONText, of revision: RevisionID, _ id: String, _ collection: CollectionHandle)
        throws
    {
        if body.bytes.count > Self.maximumBytes { return }
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
    func forget(_ id: String, in collection: CollectionHandle) throws {
        try remove(id, from: "replaced", in: collection)
    }

    /// Forgets the contents of the replaced revisions of all documents.
    func forgetAll() throws {
        if catalog.revisionLimit == nil { return }
        try database.execute(sql: "DELETE FROM replaced")
    }

    /// The content of a row, which is read back as it was written; nil if it is damaged.
    fileprivate static func content(of bytes: [UInt8]) -> JSONText? {
        let text = JSONText(trusted: bytes)
        return text.storedObject == nil ? nil : text
    }
}

extension StoreReadTransaction {
    /// A document with the contents of replaced revisions that are kept, as the row would hold them.
    package func withReplaced(_ record: DocumentRecord, in collection: CollectionHandle) throws
        -> DocumentRecord
    {
        guard catalogView.revisionLimit != nil, record.encodedTree != nil, try hasReplaced else {
            return record
        }
        let statement = try RawStatement(
            "SELECT revision, body FROM replaced WHERE collection = ?1 AND doc_id = ?2",
            in: database
        )
        defer { statement.reset() }
        statement.bind(1, collection.number)
        statement.bind(2, record.id)
        var tree = try record.tree()
        while try statement.step() {
            // Damaged text is not content.
            guard let id = RevisionID(statement.string(0)),
                let body = ReplacedTable.content(of: statement.bytes(1))
            else { continue }
            tree.putBack(body, of: id)
        }
        return try record.replacing(tree)
    }

    /// Whether the table is there: a database that is opened for reading only may be older.
    private var hasReplaced: Bool { get throws { try Schema.hasTable("replaced", in: database) } }

    /// A sentence for each content of a replaced revision that is damaged, or belongs to no document.
    func problemsOfReplaced() throws -> [String] {
        var problems: [String] = []
        guard try hasReplaced else { return [] }
        for collection in collections.sorted(by: { $0.number < $1.number }) {
            let statement = try RawStatement(
                """
                SELECT doc_id, revision, body, EXISTS (
                    SELECT 1 FROM "\(collection.table)" AS rows WHERE rows.doc_id = replaced.doc_id
                ) FROM replaced WHERE collection = ?1
                """,
                in: database
            )
            defer { statement.reset() }
            statement.bind(1, collection.number)
            while try statement.step() {
                let place =
                    "\(collection.name)/\(statement.string(0)): the content of replaced revision \(statement.string(1))"
                if ReplacedTable.content(of: statement.bytes(2)) == nil {
                    problems.append("\(place) is damaged")
                }
                if statement.int(3) == 0 { problems.append("\(place) is of no document") }
            }
        }
        return problems
    }
}
