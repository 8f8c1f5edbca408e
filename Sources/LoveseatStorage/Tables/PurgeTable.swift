import GRDB
import LoveseatModel

/// Remembers purged documents, by a hash of the ID, until a document of that ID is stored again.
///
/// A document that is created again after a purge replaces the purged one, which peers may still have. Otherwise their
/// revision, which is often the higher one, would come back (docs/decisions/0001). A database that never had a peer
/// remembers nothing.
struct PurgeTable: WrittenTable {
    let transaction: StoreWriteTransaction

    private static let prefix = "purged/"
    /// The maximum number of entries; beyond it, the oldest is forgotten.
    private static let maximumKept = 10_000

    /// A revision that was purged, and the first one of its line.
    struct PurgedRevision: Hashable {
        let original: RevisionID
        let origin: RevisionID
    }

    /// Whether any purge is remembered.
    static func remembersAny(_ database: GRDB.Database) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql:
                    "SELECT EXISTS (SELECT 1 FROM local_checkpoints WHERE id >= 'purged/' AND id < 'purged0')"
            )
        ) ?? false
    }

    /// Remembers the live versions of a document that is about to be purged, and those that were closed for it.
    func remember(_ id: String, in collection: CollectionHandle) throws {
        let peers = "SELECT EXISTS (SELECT 1 FROM remotes) OR EXISTS (SELECT 1 FROM peer_checkpoints)"
        // No peer may have the document, or it may not be here.
        guard try Bool.fetchOne(database.cachedStatement(sql: peers)) == true,
            let record = try transaction.record(id, in: collection)
        else { return }
        let tree = try record.tree()
        // An original that is not here is given up by its name. Only a revision that is here can be continued.
        var revisions = tree.candidates.filter { !$0.node.isDeleted }.flatMap { candidate in
            tree.contains(candidate.original)
                ? [candidate.original] : [candidate.node.id, candidate.original]
        }.map { PurgedRevision(original: $0, origin: tree.line($0).last ?? $0) }
        if revisions.isEmpty { return }
        revisions += tree.closed.sorted(by: >).map { PurgedRevision(original: $0, origin: $0) }
        try transaction.checkpointTables.saveLocalCheckpoint(
            Self.key(id, collection),
            JSONText(
                canonical: .array(
                    revisions.prefix(TreePolicy.closedLinesKept).map {
                        [.string($0.original.text), .string($0.origin.text)]
                    }
                )
            )
        )
        if database.lastInsertedRowID % 64 == 0 { try forgetOld() }
        if !catalog.remembersPurges { transaction.replaceCatalog { $0.remembersPurges = true } }
    }

    /// Returns and forgets the purged revisions of a document that is stored again.
    func remove(_ id: String, in collection: CollectionHandle) throws -> [PurgedRevision] {
        let key = Self.key(id, collection)
        guard let text = try transaction.localCheckpoint(key) else { return [] }
        try transaction.checkpointTables.removeLocalCheckpoint(key)
        return JSONElement(text).items.compactMap { pair in
            guard let original = pair[0]?.string.flatMap({ RevisionID($0) }),
                let origin = pair[1]?.string.flatMap({ RevisionID($0) })
            else { return nil }
            return PurgedRevision(original: original, origin: origin)
        }
    }

    static func forget(in collection: CollectionHandle, _ database: GRDB.Database) throws {
        try database.cachedStatement(sql: "DELETE FROM local_checkpoints WHERE id >= ?1 AND id < ?2").execute(
            arguments: ["\(prefix)\(collection.number)/", "\(prefix)\(collection.number)0"])
    }

    private static func key(_ id: String, _ collection: CollectionHandle) -> String {
        let hash = Hashing.sha256(Array(id.utf8)).prefix(16).hexadecimalText
        return "\(prefix)\(collection.number)/\(hash)"
    }

    private func forgetOld() throws {
        let all = "FROM local_checkpoints WHERE id >= 'purged/' AND id < 'purged0'"
        try database.cachedStatement(
            sql: """
                DELETE FROM local_checkpoints WHERE rowid IN (SELECT rowid \(all) ORDER BY rowid \
                LIMIT max(0, (SELECT count(*) \(all)) - ?))
                """
        ).execute(arguments: [Self.maximumKept])
    }

    /// Stores the first revision of a document that was purged here; nil if it was not.
    ///
    /// `flags`: of the body.
    func insertAnew(
        _ id: String,
        in collection: CollectionHandle,
        flags: RowFlags,
        body: JSONText
    ) throws -> SavedRevision? {
        guard catalog.remembersPurges else { return nil }
        let purged = try remove(id, in: collection)
        if purged.isEmpty { return nil }
        var tree = RevisionTree()
        let vector = try transaction.versionTable.edited(VersionVector())
        let revision = try tree.makeAnew(
            over: purged,
            flags: flags.treeFlags,
            body: body,
            vector: vector,
            by: transaction.treePolicy
        ) {
            try BodyDigest.revisionID(parent: $0, isDeleted: false, body: body)
        }
        let sequence = try transaction.documentTable.store(tree, over: nil, id: id, in: collection)
        return SavedRevision(revision, sequence, vector?.current)
    }
}

extension RevisionTree {
    /// Creates the first revision of a document that was purged here.
    ///
    /// `name`: names the revision over a parent. A document that begins with the same content as the purged one continues where that one
    /// ended.
    mutating func makeAnew(
        over purged: [PurgeTable.PurgedRevision],
        flags: Flags,
        body: JSONText,
        vector: VersionVector?,
        by policy: TreePolicy,
        name: (_ parent: RevisionID?) throws -> RevisionID
    ) throws -> RevisionID {
        var revision = try name(nil)
        if let same = purged.first(where: { $0.origin == revision || $0.original == revision }) {
            revision = try name(same.original)
            try addLine([revision, same.original], origin: same.origin, flags: flags, body: body, by: policy)
            if let vector { addVector(vector, of: revision) }
        } else {
            RevisionEdit(id: revision, parent: nil, flags: flags, body: body, vector: vector)
                .insert(into: &self, by: policy)
        }
        for given in purged where !contains(given.original) { giveUp(given.original, by: policy) }
        return revision
    }
}
