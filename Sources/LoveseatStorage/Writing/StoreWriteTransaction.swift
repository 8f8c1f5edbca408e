import GRDB
package import LoveseatModel

/// The condition under which a save succeeds.
package enum SaveCondition: Hashable, Sendable {
    /// Any revision is replaced.
    case lastWriteWins
    /// The document must still be at the revision that the change is based on (nil: must not exist, or be deleted).
    case unchanged(since: RevisionID?)
}

/// A transaction that may write. It can be used only inside the closure that it is passed to.
package final class StoreWriteTransaction: StoreReadTransaction {
    private let blobs: BlobFiles
    let options: DocumentStore.Options
    /// How much trees keep, without the revision limit.
    private let retention: TreePolicy
    private let wallAtBeginning: UInt64?
    /// The system's clock for versions, in nanoseconds since 1970. A transaction reads it once.
    private(set) lazy var wall = wallAtBeginning ?? options.system.nanoseconds()
    /// Whether every commit reaches the disk.
    let isFullSync: Bool
    /// Why versions have another source since the transaction began.
    var newSourceReasons: [NewSourceReason] = []
    private var changes = TransactionChanges()
    /// The collections in which documents were deleted, by their numbers.
    var withTombstones: Set<Int64> = []
    private(set) var commits: [CollectionCommit] = []
    /// The MD5s that are written with the rest.
    private(set) var md5s: [BlobDigest: MD5Digest] = [:]
    /// Whether a mark for a remote was removed from a document that keeps its sequence.
    var hasWithdrawnMarks = false
    /// Whether the last document that was saved was a new one: most transactions save only new documents, or none.
    private var expectsNew = false
    /// The error of the disk after which nothing can be committed.
    private var failure: DatabaseError?

    var catalog: StoreCatalog { catalogView }

    var documentTable: DocumentTable { DocumentTable(transaction: self) }
    var ancestorTable: AncestorTable { AncestorTable(transaction: self) }
    var replacedTable: ReplacedTable { ReplacedTable(transaction: self) }
    var md5Table: MD5Table { MD5Table(transaction: self) }
    package var receivedTable: ReceivedTable { ReceivedTable(transaction: self) }
    package var versionTable: VersionTable { VersionTable(transaction: self) }
    var deletionTable: DeletionTable { DeletionTable(transaction: self) }
    var purgeTable: PurgeTable { PurgeTable(transaction: self) }
    package var markTable: MarkTable { MarkTable(transaction: self) }
    package var checkpointTables: CheckpointTables { CheckpointTables(transaction: self) }
    package var grantTable: GrantTable { GrantTable(transaction: self) }
    package var indexTable: IndexTable { IndexTable(transaction: self) }

    init(
        database: Database,
        blobs: BlobFiles,
        catalog: StoreCatalog,
        options: DocumentStore.Options,
        retention: TreePolicy,
        wall: UInt64?,
        isFullSync: Bool
    ) {
        (self.blobs, self.options, self.retention) = (blobs, options, retention)
        (wallAtBeginning, self.isFullSync) = (wall, isFullSync)
        super.init(database: database, catalog: catalog)
    }

    /// Runs a step of a closure that may catch the step's errors and continue.
    ///
    /// After an error of the disk nothing can be committed any more. Half of the step may be there, or SQLite may have rolled the
    /// transaction back, and further changes would be outside of any.
    package override func step<T>(_ body: () throws -> T) throws -> T {
        if let failure { throw failure }
        do { return try body() } catch let error as DatabaseError {
            failure = error
            throw error
        }
    }

    func finish() throws {
        if let failure { throw failure }
        try versionTable.saveClock()
        md5s = blobs.md5s.unwritten
        try md5Table.add(md5s)
        if !withTombstones.isEmpty { try deletionTable.note(in: withTombstones.sorted()) }
        commits = changes.commits(lastSequence: catalogView.lastSequence)
    }

    // MARK: Collections

    package func createCollection(_ name: CollectionName) throws -> CollectionHandle {
        var handle: CollectionHandle?
        try replaceCatalog { handle = try CollectionTable.create(name, in: database, catalog: &$0) }
        guard let handle else { throw LoveseatError(.assertionFailed, "no collection was made") }
        return handle
    }

    package func deleteCollection(_ name: CollectionName) throws {
        let handle = catalogView.collections[name]
        if let handle { try indexTable.removeAll(of: handle) }
        try replaceCatalog { try CollectionTable.delete(name, in: database, catalog: &$0) }
        if let handle { changes.recordDeletion(of: handle) }
    }

    /// Sets an entry of the table `info`.
    package func setInfo(_ key: String, _ value: String) throws {
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)").execute(
            arguments: [key, value])
    }

    /// The MD5 of a blob; nil if it is not known.
    package func knownMD5(of blob: BlobDigest) throws -> MD5Digest? {
        try blobs.md5s.inMemory(blob) ?? md5(of: blob)
    }

    package func hasBlob(_ digest: BlobDigest) -> Bool { blobs.contains(digest) }

    /// Throws if the collection was deleted.
    func requireOpen(_ collection: CollectionHandle) throws {
        guard contains(collection) else {
            throw LoveseatError(.notOpen, "collection \(collection.name) was deleted")
        }
    }

    func nextSequence(_ collection: CollectionHandle) throws -> UInt64 {
        try requireOpen(collection)
        let last = catalogView.lastSequence[collection.number] ?? 0
        replaceCatalog {
            $0.lastSequence[collection.number] = last + 1
            $0.highestSequence = max($0.highestSequence, last + 1)
        }
        return last + 1
    }

    /// Notes that a document of a collection has a rare property.
    func noteRarity(_ rarity: Rarity, in collection: CollectionHandle) {
        if catalogView.having[rarity]?.contains(collection.number) == true { return }
        replaceCatalog { _ = $0.having[rarity, default: []].insert(collection.number) }
    }

    func recordChange(of id: String, in collection: CollectionHandle) {
        changes.record(id, in: collection)
    }

    /// See ``retention``. The revision limit may change within the transaction.
    var treePolicy: TreePolicy {
        var policy = retention
        policy.depthWithAside = catalogView.revisionLimit ?? 0
        return policy
    }

    // MARK: Local edits

    /// Saves a local revision; nil if the condition is not met.
    ///
    /// `body`: canonical JSON, from which the revision's digest is computed. Attachments without a blob in the body stay unless it names
    /// them. `keepsUnchanged`: whether a document that has these properties already gets no new revision, whatever the condition.
    package func save(
        _ id: String,
        in collection: CollectionHandle,
        body: JSONText,
        isDeleted: Bool,
        condition: SaveCondition,
        keepsUnchanged: Bool = false
    ) throws -> SavedRevision? {
        try requireOpen(collection)
        let mayBeNew = !isDeleted && (condition == .lastWriteWins || condition == .unchanged(since: nil))
        if mayBeNew, expectsNew || (condition == .unchanged(since: nil) && !keepsUnchanged),
            let made = try insertNew(id, in: collection, body: body)
        {
            return made
        }
        let record = try record(id, in: collection)
        expectsNew = record == nil
        guard let record else { return mayBeNew ? try insertNew(id, in: collection, body: body) : nil }
        let body = isDeleted ? body : body.keepingAttachments(of: record.isDeleted ? nil : record.body)
        if keepsUnchanged, !isDeleted, !record.isDeleted,
            record.body == body || record.body.canonical == body
        {
            return SavedRevision(record.revision, record.sequence, record.version)
        }
        if case .unchanged(let base) = condition {
            guard base == record.revision || (base == nil && record.isDeleted) else { return nil }
        }
        let flags = try flagsOfSaved(body, isDeleted: isDeleted)
        let revision = try BodyDigest.revisionID(parent: record.revision, isDeleted: isDeleted, body: body)
        var tree = try record.tree()
        let vector = try versionTable.vector(ofEditOf: record.revision, in: tree)
        let treeFlags = flags.treeFlags
        RevisionEdit(id: revision, parent: record.revision, flags: treeFlags, body: body, vector: vector)
            .insert(into: &tree, by: treePolicy)
        let sequence = try documentTable.store(tree, over: record, in: collection)
        return SavedRevision(revision, sequence, vector?.current)
    }

    private func insertNew(
        _ id: String,
        in collection: CollectionHandle,
        body: JSONText
    ) throws -> SavedRevision? {
        let body = body.keepingAttachments(of: nil)
        let flags = try flagsOfSaved(body, isDeleted: false)
        if catalogView.remembersPurges, try record(id, in: collection) == nil,
            let made = try purgeTable.insertAnew(id, in: collection, flags: flags, body: body)
        {
            return made
        }
        let revision = try BodyDigest.revisionID(parent: nil, isDeleted: false, body: body)
        let tree = try versionTable.treeOfNew(revision, flags: flags, body: body)
        let sequence = try documentTable.insertRow(
            id,
            in: collection,
            revision: revision,
            flags: flags.union(.verified),
            synced: 0,
            tree: tree,
            body: body
        )
        guard let sequence else { return nil }
        if tree != nil { try versionTable.noteVectors() }
        return SavedRevision(revision, sequence, tree.flatMap { RevisionTreeDecoder.currentVersion(in: $0) })
    }

    func rowFlags(of body: JSONText, isDeleted: Bool) -> RowFlags {
        let references = BlobReference.all(in: body)
        if !references.isEmpty { blobs.touch(references.map(\.digest)) }
        return rowFlags(hasBlobs: !references.isEmpty, isDeleted: isDeleted)
    }

    private func rowFlags(hasBlobs: Bool, isDeleted: Bool) -> RowFlags {
        var flags: RowFlags = hasBlobs ? .hasBlobs : []
        if isDeleted { flags.insert(.deleted) }
        return flags
    }

    /// The flags of a document that the app saves.
    ///
    /// - Throws: `notFound` if a compaction has removed one of its blobs.
    private func flagsOfSaved(_ body: JSONText, isDeleted: Bool) throws(LoveseatError) -> RowFlags {
        guard !isDeleted else { return rowFlags(of: body, isDeleted: true) }
        let references = BlobReference.all(in: body)
        if !references.isEmpty { try blobs.refer(to: references.map(\.digest)) }
        return rowFlags(hasBlobs: !references.isEmpty, isDeleted: false)
    }
}

extension RowFlags {
    var treeFlags: RevisionTree.Flags {
        let known = RowFlags.deleted.rawValue | RowFlags.hasBlobs.rawValue
        return RevisionTree.Flags(rawValue: UInt8(truncatingIfNeeded: rawValue & known))
    }
}
