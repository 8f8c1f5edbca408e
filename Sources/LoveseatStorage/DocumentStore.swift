import GRDB
package import LoveseatModel
private import LoveseatPlatform
import Synchronization

/// Documents in SQLite, and blobs beside them.
///
/// It has one writer, parallel readers on snapshots, and one kept connection for reads of single rows.
package final class DocumentStore: Sendable {
    /// The options with which a store is opened.
    package struct Options: Sendable {
        /// Whether a commit reaches the disk before it returns. Otherwise it survives a crash of the process, but the
        /// last commits may not survive a power loss.
        package var fullSync = false
        /// Whether the store only reads, which is possible while another process writes.
        package var isReadOnly = false
        /// Whether a store that only reads keeps processes that write out, if there is none. Then it needs no file beside that of the
        /// database, so that it works on a full disk and on one that cannot be written to.
        package var excludesWriters = false
        /// How many ancestors of each document's current revision keep their bodies, for deltas.
        package var ancestorBodiesKept = 0
        /// How long to wait for another process that has the file locked.
        package var busyTimeout = Duration.seconds(10)
        /// Bytes of the file that a connection keeps in memory; the one that writes keeps half as many.
        package var cacheSize = 8 << 20
        /// How many revisions of a line are kept.
        package var revisionDepth = RevisionTree.maximumDepth
        /// Whether to keep as many ancestors' bodies as an earlier process requested, if that is more.
        package var remembersAncestorBodies = false
        /// The time by which tombstones age, in seconds since 1970.
        package var time: @Sendable () -> Int64 = { Int64(LoveseatPlatform.time(nil)) }
        /// The clock and the randomness for versions.
        package var system = VersionSystem()
        /// Random bits for the identity of a new database.
        package var newUUID: @Sendable () -> [UInt8] = { (0..<16).map { _ in UInt8.random(in: 0...255) } }
        /// Called if the folder turns out to be a copy, which gets an identity of its own.
        package var onNewIdentity: @Sendable () -> Void = {}

        /// For the simulator: whether transactions of tasks run where the task runs, rather than on a thread of the store.
        package var runsTasksInPlace = false
        /// For tests: called before each rollback, which fails with the error that this throws.
        package var beforeRollback: @Sendable () throws -> Void = {}

        /// Counts the reads of properties by index expressions in the connection that writes.
        let walks = WalkCounter()

        package init() {}
    }

    /// The name in messages.
    let name: String
    let sqlite: SQLiteConnections
    let lock: FolderLock?
    /// Keeps writers out while this store reads.
    private let readLock: FolderLock?
    let options: Options
    private let settings: StoreSettings
    package let blobs: BlobFiles
    package let changes: ChangeHub
    let catalog = Mutex(StoreCatalog())
    /// Why the last write transaction could not be rolled back; nil if no transaction was left open.
    let failedRollback = Mutex<(any Error)?>(nil)
    let gates: TransactionGates
    /// The number of open transactions on all threads.
    let transactionsOpen = Atomic<Int>(0)
    let durableWrites = Atomic<Int>(0)
    private let connections = Atomic<Int>(0)
    let compactions = SharedRuns<(blobs: Int, bytes: UInt64)>()

    init(
        name: String,
        writer: any DatabaseWriter,
        snapshots: any DatabaseReader,
        rows: RowsConnection,
        lock: FolderLock?,
        readLock: FolderLock? = nil,
        blobs: BlobFiles,
        changes: ChangeHub,
        options: Options
    ) throws {
        self.name = name
        self.options = options
        self.changes = changes
        // The connection that writes has read the schema; a reader of the pool would read it again, which takes long with many collections.
        let opened = try writer.unsafeReentrantWrite { db in
            var catalog = try CollectionTable.load(db)
            if !options.isReadOnly { catalog.beginBehind(try SequenceReserve.left(db)) }
            return (catalog: catalog, keepsDeletedBodies: try Self.keepsDeletedBodies(db))
        }
        settings = StoreSettings(options, keepsDeletedBodies: opened.keepsDeletedBodies)
        sqlite = SQLiteConnections(
            writer: writer,
            snapshots: snapshots,
            rows: rows,
            isOnlyWriter: lock != nil
        )
        gates = TransactionGates(readers: snapshots is DatabasePool ? SQLiteConnections.readers : 1)
        self.lock = lock
        self.readLock = readLock
        self.blobs = blobs
        catalog.withLock { $0 = opened.catalog }
        blobs.md5s.read { [weak self] blob in try self?.readRows { try $0.md5(of: blob) } }
    }

    /// Reads the catalog again after the content was replaced by a snapshot.
    func reloadCatalog() throws {
        let (loaded, left) = try sqlite.writer.unsafeRead {
            (try CollectionTable.load($0), try SequenceReserve.left($0))
        }
        catalog.withLock { catalog in
            catalog = loaded
            catalog.beginBehind(left)
        }
    }

    /// Whether a commit reaches the disk before it returns.
    package var isFullSync: Bool { settings.syncsFully.load(ordering: .acquiring) }

    /// How much trees keep, without the revision limit.
    var retention: TreePolicy {
        var policy = TreePolicy(depth: options.revisionDepth)
        policy.ancestorBodiesKept = settings.ancestorBodiesKept.load(ordering: .relaxed)
        policy.keepsDeletedBodies = settings.keepsDeletedBodies.load(ordering: .relaxed)
        return policy
    }

    /// Adds the options of another opener of the same folder.
    package func tighten(_ options: Options) throws(LoveseatError) {
        settings.ancestorBodiesKept.max(options.ancestorBodiesKept, ordering: .relaxed)
        if !options.fullSync || isFullSync || self.options.isReadOnly { return }
        try Self.wrapping { try maintain { try $0.execute(sql: "PRAGMA synchronous = FULL") } }
        settings.syncsFully.store(true, ordering: .releasing)
    }

    private static let deletedBodiesKey = "deleted_bodies"

    private static func keepsDeletedBodies(_ db: Database) throws -> Bool {
        let sql = "SELECT value FROM info WHERE key = ?"
        return try Bool.fetchOne(db, sql: sql, arguments: [deletedBodiesKey]) ?? false
    }

    /// Keeps the bodies of revisions that are deleted from now on, even after the database is opened again, for access policies.
    package func keepDeletedBodies() throws {
        if settings.keepsDeletedBodies.load(ordering: .relaxed) { return }
        try write {
            try $0.database.execute(
                sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, 1)",
                arguments: [Self.deletedBodiesKey]
            )
        }
        settings.keepsDeletedBodies.store(true, ordering: .relaxed)
    }

    /// Closes every connection. Waits for open transactions.
    package func close() throws(LoveseatError) {
        try requireNoTransaction()
        // Everything is then in one file, even if another process still reads. If this fails, nothing is lost.
        if lock != nil {
            if !blobs.md5s.unwritten.isEmpty { try? write(call: "close()") { _ in } }
            _ = try? maintain {
                try SequenceReserve.release(in: $0, catalog.withLock { $0 })
                return try Row.fetchAll($0, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        }
        try Self.wrapping {
            try sqlite.rows.close()
            try sqlite.writer.close()
        }
        lock?.release()
        readLock?.release()
        changes.close()
    }

    /// A number that changes with every commit of another connection, including those of other processes.
    package func dataVersion() throws -> Int {
        try sqlite.rows.use().unsafeReentrantRead { try Int.fetchOne($0, sql: "PRAGMA data_version") ?? 0 }
    }

    // MARK: Collections

    package var collections: [CollectionHandle] { catalog.withLock { Array($0.collections.values) } }

    /// The numbers of the collections that may have documents with a rare property; those of others have none.
    package func numbers(having rarity: StoreReadTransaction.Rarity) -> Set<Int64> {
        catalog.withLock { $0.having[rarity] ?? [] }
    }

    /// The number of connections that replicate this database.
    package var connectionCount: Int { connections.load(ordering: .relaxed) }

    package func noteConnection(isOpen: Bool) {
        if isOpen {
            connections.add(1, ordering: .relaxed)
        } else {
            connections.subtract(1, ordering: .relaxed)
        }
    }

    /// How many revisions of a line are kept.
    package var revisionLimit: Int { max(options.revisionDepth, catalog.withLock { $0.revisionLimit ?? 0 }) }

    package func collection(_ name: CollectionName) -> CollectionHandle? {
        catalog.withLock { $0.collections[name] }
    }

    /// Whether a collection still exists.
    package func contains(_ collection: CollectionHandle) -> Bool {
        catalog.withLock { $0.lastSequence[collection.number] != nil }
    }

    package func lastSequence(_ collection: CollectionHandle) -> UInt64 {
        catalog.withLock { $0.lastSequence[collection.number] ?? 0 }
    }

    /// Whether an error is SQLite's, not the app's.
    package static func isStorageError(_ error: any Error) -> Bool { error is DatabaseError }

    /// Runs a closure that may throw SQLite's errors, and converts them to ``LoveseatError``.
    package static func wrapping<T>(_ body: () throws -> T) throws(LoveseatError) -> T {
        do { return try body() } catch { throw LoveseatError(storage: error) }
    }
}

/// The options that may be tightened while the store is open.
private struct StoreSettings: ~Copyable, Sendable {
    let ancestorBodiesKept: Atomic<Int>
    let keepsDeletedBodies: Atomic<Bool>
    let syncsFully: Atomic<Bool>

    init(_ options: DocumentStore.Options, keepsDeletedBodies: Bool) {
        ancestorBodiesKept = Atomic(options.ancestorBodiesKept)
        self.keepsDeletedBodies = Atomic(keepsDeletedBodies)
        syncsFully = Atomic(options.fullSync)
    }
}
