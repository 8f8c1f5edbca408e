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
    /// The IDs changed in each collection, in order.
    private var changed: [(collection: CollectionHandle, ids: [String])] = []
    private var deleted: [CollectionHandle] = []
    /// The collections in which documents were deleted, by their numbers.
    private var withTombstones: Set<Int64> = []
    private(set) var commits: [CollectionCommit] = []
    /// Whether a mark for a remote was removed from a document that keeps its sequence.
    var hasWithdrawnMarks = false
    /// Whether the last document that was saved was a new one: most transactions save only new documents, or none.
    private var expectsNew = false
    /// The error of the disk after which nothing can be committed.
    private var failure: DatabaseError?

    var catalog: DocumentStore.Catalog { catalogView }

    init(
        database: Database,
        blobs: BlobFiles,
        catalog: DocumentStore.Catalog,
        options: DocumentStore.Options,
        retention: TreePolicy
    ) {
        self.blobs = blobs
        self.options = options
        self.retention = retention
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
        if !withTombstones.isEmpty { try noteDeletions(in: withTombstones.sorted()) }
        commits = changed.filter { !$0.ids.isEmpty }.sorted { $0.collection.number < $1.collection.number }
            .map {
                var seen = DocumentSet(minimumCapacity: $0.ids.count)
                return CollectionCommit(
                    collection: $0.collection.name,
                    number: $0.collection.number,
                    documentIDs: $0.ids.count == 1 ? $0.ids : $0.ids.filter { seen.insert($0) },
                    lastSequence: catalogView.lastSequence[$0.collection.number] ?? 0
                )
            }
        commits += deleted.filter { !contains($0) }.map {
            CollectionCommit(collection: $0.name, number: $0.number, documentIDs: [], lastSequence: 0)
        }
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
        if let handle { try removeIndexes(of: handle) }
        try replaceCatalog { try CollectionTable.delete(name, in: database, catalog: &$0) }
        if let handle { deleted.append(handle) }
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

    /// Records that purges are remembered from now on.
    func notePurges() {
        if !catalogView.remembersPurges { replaceCatalog { $0.remembersPurges = true } }
    }

    func recordChange(of id: String, in collection: CollectionHandle) {
        if let index = changed.firstIndex(where: { $0.collection.number == collection.number }) {
            changed[index].ids.append(id)
        } else {
            changed.append((collection, [id]))
        }
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
    ) throws -> (revision: RevisionID, sequence: UInt64)? {
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
            return (record.revision, record.sequence)
        }
        if case .unchanged(let base) = condition {
            guard base == record.revision || (base == nil && record.isDeleted) else { return nil }
        }
        let flags = try flagsOfSaved(body, isDeleted: isDeleted)
        let revision = try Self.revisionID(parent: record.revision, isDeleted: isDeleted, body: body)
        var tree = try record.tree()
        tree.insertLocal(
            revision,
            parent: record.revision,
            flags: flags.treeFlags,
            body: body,
            by: treePolicy
        )
        return (revision, try store(tree, over: record, in: collection))
    }

    private func insertNew(
        _ id: String,
        in collection: CollectionHandle,
        body: JSONText
    ) throws -> (revision: RevisionID, sequence: UInt64)? {
        let body = body.keepingAttachments(of: nil)
        let flags = try flagsOfSaved(body, isDeleted: false)
        if catalogView.remembersPurges, try record(id, in: collection) == nil,
            let made = try insertOverPurge(id, in: collection, flags: flags, body: body)
        {
            return made
        }
        let revision = try Self.revisionID(parent: nil, isDeleted: false, body: body)
        let sequence = try insertRow(
            id,
            in: collection,
            revision: revision,
            flags: flags.union(.verified),
            synced: 0,
            tree: nil,
            body: body
        )
        return sequence.map { (revision, $0) }
    }

    /// Returns the ID of a local revision.
    ///
    /// - Throws: ``LoveseatError/Code/badRevisionID`` if the parent has the highest possible generation.
    package static func revisionID(parent: RevisionID?, isDeleted: Bool, body: JSONText) throws(LoveseatError)
        -> RevisionID
    {
        guard parent?.generation != .max else {
            throw LoveseatError(
                .badRevisionID,
                "the document has the highest possible revision: purge it"
            )
        }
        return BodyDigest.name(over: parent, isDeleted: isDeleted, body: body)
    }

    /// The ID of the tombstone with which format 2 and older closed a branch.
    package static func closingTombstone(over leaf: RevisionID) -> RevisionID {
        BodyDigest.name(over: leaf, isDeleted: true, body: JSONText(canonical: ["closed": true]))
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

    /// Writes something that reaches the disk with this transaction, even if nothing else does.
    func noteCompaction() throws {
        let sql = """
            INSERT INTO info (key, value) VALUES ('compactions', 1)
            ON CONFLICT (key) DO UPDATE SET value = value + 1
            """
        try database.execute(sql: sql)
    }

    // MARK: Rows

    /// Inserts a row; nil if the document exists already.
    func insertRow(
        _ id: String,
        in collection: CollectionHandle,
        revision: RevisionID,
        flags: RowFlags,
        synced: Int,
        tree: [UInt8]?,
        body: JSONText
    ) throws -> UInt64? {
        let last = catalogView.lastSequence[collection.number]
        let sequence = try nextSequence(collection)
        let statement = try RawStatement(collection.insertSQL, in: database)
        statement.bind(1, id)
        statement.bind(2, Int64(clamping: sequence))
        statement.bind(3, revision.text)
        statement.bind(4, flags.rawValue)
        statement.bind(5, Int64(synced))
        statement.bind(6, blob: tree)
        statement.bindText(7, body.bytes)
        guard try statement.run() > 0 else {
            replaceCatalog { $0.lastSequence[collection.number] = last }
            return nil
        }
        if flags.contains(.deleted) { withTombstones.insert(collection.number) }
        recordChange(of: id, in: collection)
        return sequence
    }

    @discardableResult
    func store(
        _ tree: RevisionTree,
        current: RevisionTree.Node? = nil,
        over record: DocumentRecord?,
        id: String? = nil,
        in collection: CollectionHandle
    ) throws -> UInt64 {
        guard let record else {
            guard let id, let current = current ?? tree.current else {
                throw LoveseatError(.assertionFailed, "an empty tree")
            }
            let parts = try RowParts(tree, current: current, over: nil)
            let sequence = try insertRow(
                id,
                in: collection,
                revision: current.id,
                flags: parts.flags,
                synced: parts.synced,
                tree: parts.tree,
                body: parts.body
            )
            guard let sequence else {
                throw LoveseatError(.assertionFailed, "a row appeared inside a transaction")
            }
            try keepAncestors(of: tree, id, current: current.id, in: collection)
            return sequence
        }
        let sequence = try nextSequence(collection)
        try write(tree, current: current, over: record, in: collection, sequence: sequence)
        recordChange(of: record.id, in: collection)
        return sequence
    }

    /// Replaces a row.
    ///
    /// `current`: the tree's current revision, if that is known already. `digest`: the digest of the knowledge, if that is
    /// unchanged; nil to compute it.
    func write(
        _ tree: RevisionTree,
        current known: RevisionTree.Node? = nil,
        over record: DocumentRecord,
        in collection: CollectionHandle,
        sequence: UInt64,
        digest: [UInt8]? = nil
    ) throws {
        guard let current = known ?? tree.current else {
            throw LoveseatError(.assertionFailed, "an empty tree")
        }
        if sequence == record.sequence { try withdrawMarks(of: record, unlessIn: tree, collection) }
        let parts = try RowParts(tree, current: current, over: record, digest: digest)
        let statement = try RawStatement(collection.updateSQL, in: database)
        statement.bind(1, record.row)
        statement.bind(2, Int64(clamping: sequence))
        statement.bind(3, current.id.text)
        statement.bind(4, parts.flags.rawValue)
        statement.bind(5, Int64(parts.synced))
        statement.bind(6, blob: parts.tree)
        statement.bindText(7, parts.body.bytes)
        try statement.run()
        try keepAncestors(of: tree, record.id, current: current.id, in: collection)
        try keepReplaced(of: record, by: tree, in: collection)
        if parts.flags.contains(.deleted), sequence != record.sequence {
            withTombstones.insert(collection.number)
        }
    }

    /// The columns of a tree's row.
    private struct RowParts {
        let flags: RowFlags
        let synced: Int
        let tree: [UInt8]?
        let body: JSONText

        init(
            _ tree: RevisionTree,
            current: RevisionTree.Node,
            over record: DocumentRecord?,
            digest: [UInt8]? = nil
        ) throws {
            guard let body = current.body else {
                throw LoveseatError(.assertionFailed, "a current revision without a body")
            }
            var flags = RowFlags(rawValue: Int64(current.flags.subtracting([.joint, .yielded]).rawValue))
            if !tree.pending.isEmpty { flags.insert(.hasConflicts) }
            if tree.isTold { flags.insert(.branched) }
            if !tree.putAside.isEmpty || record?.flags.contains(.hasAncestors) == true {
                flags.insert(.hasAncestors)
            }
            // A body that was stored before is not verified again, which would hide damage.
            let verified =
                record?.revision == current.id || flags.contains(.verified)
                ? flags.intersection(.verified)
                : BodyDigest.flags(
                    of: current.id,
                    parent: current.parent,
                    isDeleted: current.isDeleted,
                    body: body
                )
            flags.formUnion(verified)
            // The lowest remote that has the current revision is in the row, so that a plain document needs no tree.
            synced = tree.remotes.filter { $0.value == current.id }.keys.min() ?? 0
            var rest = tree
            if synced != 0 { rest.forgetRemote(synced) }
            self.tree = DocumentRecord.encode(
                rest,
                current: current,
                isTold: flags.contains(.branched),
                digest: digest
            )
            self.flags = flags
            self.body = body
        }
    }
}

extension RowFlags {
    var treeFlags: RevisionTree.Flags {
        let known = RowFlags.deleted.rawValue | RowFlags.hasBlobs.rawValue
        return RevisionTree.Flags(rawValue: UInt8(truncatingIfNeeded: rawValue & known))
    }
}
