import GRDB
package import LoveseatModel

/// The revisions deep in lines that only whole histories contain (docs/decisions/0009): they are added when a row forgets them, and read
/// when a peer of CouchDB's wire requests them.
struct AncestorTable: WrittenTable {
    let transaction: StoreWriteTransaction

    /// How often a document's ancestors are checked for ones that are too old, in edits.
    private static let trimming: UInt32 = 64

    func keep(
        of tree: RevisionTree,
        _ id: String,
        current: RevisionID,
        in collection: CollectionHandle
    ) throws {
        let revisions = tree.putAside
        if revisions.isEmpty { return }
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
        if revisions.count == 1, current.generation % Self.trimming != 0 { return }
        let limit = catalog.revisionLimit ?? 0
        if tree.isLine {
            try database.execute(
                sql: "DELETE FROM ancestors WHERE collection = ? AND doc_id = ? AND generation <= ?",
                arguments: [collection.number, id, current.highestForgotten(limit)]
            )
            return
        }
        var floors = LineFloors(of: tree, limit: limit)
        for row in try transaction.ancestors(of: id, above: 0, in: collection) where !floors.admits(row) {
            try database.cachedStatement(
                sql:
                    "DELETE FROM ancestors WHERE collection = ? AND doc_id = ? AND generation = ? AND revision = ? AND child = ?"
            ).execute(arguments: [
                collection.number, id, Int64(row.id.generation), row.id.text, row.child.text,
            ])
        }
    }

    /// Removes the ancestors of a document.
    func forget(_ id: String, in collection: CollectionHandle) throws {
        try remove(id, from: "ancestors", in: collection)
    }

    /// The tree to which a peer of CouchDB's wire adds revisions: with all ancestors if one of them does not continue a leaf that is here.
    func wholeTree(
        of record: DocumentRecord,
        for histories: some Sequence<[RevisionID]>,
        in collection: CollectionHandle
    ) throws -> RevisionTree {
        let tree = try record.tree()
        if !record.flags.contains(.hasAncestors) { return tree }
        let leaves = Set(tree.leaves.map(\.id))
        if histories.allSatisfy({ !leaves.isDisjoint(with: $0) }) { return tree }
        return try transaction.whole(record, in: collection).tree()
    }
}

extension StoreReadTransaction {
    /// A document with all ancestors that are kept, as the row would hold them.
    package func whole(_ record: DocumentRecord, in collection: CollectionHandle) throws -> DocumentRecord {
        guard record.flags.contains(.hasAncestors) else { return record }
        let limit = catalogView.revisionLimit ?? 0
        // A line that lost may end far below the current revision.
        var tree = try record.tree()
        var floors = tree.isLine ? nil : LineFloors(of: tree, limit: limit)
        let lowest = floors?.lowest ?? record.revision.highestForgotten(limit)
        let rows = try ancestors(of: record.id, above: lowest, in: collection)
        let kept = floors == nil ? rows : rows.filter { floors?.admits($0) ?? true }
        guard !kept.isEmpty else { return record }
        tree.putBack(kept)
        return try record.replacing(tree)
    }

    /// A document with all ancestors if the table may have one of these revisions, and as its row holds it otherwise: a long line takes as long
    /// to read as many documents.
    package func whole(
        _ record: DocumentRecord,
        ifNamedIn revisions: [RevisionID],
        in collection: CollectionHandle
    ) throws -> DocumentRecord {
        try isAside(revisions, of: record, in: collection) ? whole(record, in: collection) : record
    }

    /// Up to how many revisions are looked up one by one. It takes less time to read the whole line than to look up more.
    private static let lookedUp = 16

    /// Whether the table may have one of these revisions of a document.
    package func isAside(
        _ revisions: [RevisionID],
        of record: DocumentRecord,
        in collection: CollectionHandle
    ) throws -> Bool {
        guard record.flags.contains(.hasAncestors) else { return false }
        let isLine = !record.flags.contains(.branched)
        let older = revisions.filter { !isLine || $0.generation < record.revision.generation }
        if older.count > Self.lookedUp { return true }
        return try older.contains { revision in
            let statement = try RawStatement(
                "SELECT 1 FROM ancestors WHERE collection = ?1 AND doc_id = ?2 AND generation = ?3 AND revision = ?4",
                in: database
            )
            defer { statement.reset() }
            statement.bind(1, collection.number)
            statement.bind(2, record.id)
            statement.bind(3, Int64(revision.generation))
            statement.bind(4, revision.text)
            return try statement.step()
        }
    }

    /// The ancestors in the table that are younger than a generation, the highest first.
    fileprivate func ancestors(of id: String, above generation: Int64, in collection: CollectionHandle) throws
        -> [RevisionTree.AsideRevision]
    {
        let rows = try Row.fetchCursor(
            database.cachedStatement(
                sql:
                    "SELECT revision, child, flags FROM ancestors WHERE collection = ? AND doc_id = ? AND generation > ? ORDER BY generation DESC"
            ),
            arguments: [collection.number, id, generation]
        )
        var ancestors: [RevisionTree.AsideRevision] = []
        while let row = try rows.next() {
            // Damaged rows are left out here. A check names them.
            guard let id = RevisionID(try row.stored("revision") as String),
                let child = RevisionID(try row.stored("child") as String)
            else { continue }
            let flags = RevisionTree.Flags(
                rawValue: UInt8(truncatingIfNeeded: try row.stored("flags") as Int64)
            )
            ancestors.append(RevisionTree.AsideRevision(id: id, child: child, flags: flags))
        }
        return ancestors
    }

    /// A sentence for each ancestor whose row is damaged, so that whole histories lack it.
    func problemsOfAncestors() throws -> [String] {
        // A database that is opened for reading only may be older than the table.
        guard try Schema.hasTable("ancestors", in: database) else { return [] }
        var problems: [String] = []
        for collection in collections.sorted(by: { $0.number < $1.number }) {
            let statement = try RawStatement(
                "SELECT doc_id, generation, revision, child FROM ancestors WHERE collection = ?1",
                in: database
            )
            defer { statement.reset() }
            statement.bind(1, collection.number)
            while try statement.step() {
                let (text, childText) = (statement.string(2), statement.string(3))
                if let id = RevisionID(text), let child = RevisionID(childText),
                    Int64(id.generation) == statement.int(1), id.generation < child.generation
                {
                    continue
                }
                problems.append(
                    "\(collection.name)/\(statement.string(0)): ancestor \(text) of revision \(childText) is damaged"
                )
            }
        }
        return problems
    }
}

extension RevisionID {
    /// The generation up to which a line that ends with this revision is forgotten.
    fileprivate func highestForgotten(_ limit: Int) -> Int64 {
        Int64(generation).subtractingSaturated(Int64(clamping: limit))
    }
}

/// The generations up to which the lines of a tree are forgotten, each counted from its own leaf.
private struct LineFloors {
    private var floors: [RevisionID: Int64] = [:]
    let lowest: Int64

    init(of tree: RevisionTree, limit: Int) {
        let leaves = tree.leaves.map { ($0.id.highestForgotten(limit), $0.id) }.sorted { $0.0 < $1.0 }
        lowest = leaves.first?.0 ?? 0
        floors.reserveCapacity(tree.nodes.count)
        for (floor, leaf) in leaves {
            var next: RevisionID? = leaf
            // The rest of the line was visited from a leaf that keeps more.
            while let id = next, floors[id] == nil {
                floors[id] = floor
                next = tree.node(id)?.parent
            }
        }
    }

    /// Whether an ancestor belongs to the part of a line that is kept. Call this for children before their parents.
    mutating func admits(_ ancestor: RevisionTree.AsideRevision) -> Bool {
        guard let floor = floors[ancestor.child], Int64(ancestor.id.generation) > floor else { return false }
        floors[ancestor.id] = min(floors[ancestor.id] ?? .max, floor)
        return true
    }
}

extension DocumentStore {
    /// See ``StoreReadTransaction/whole(_:in:)``.
    package func whole(_ record: DocumentRecord, in collection: CollectionHandle) throws -> DocumentRecord {
        guard record.flags.contains(.hasAncestors) else { return record }
        return try readRows { try $0.whole(record, in: collection) }
    }
}
