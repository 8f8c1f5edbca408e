import GRDB
package import LoveseatModel
import Synchronization

/// Documents in SQLite, and blobs beside them.
///
/// One writer, parallel readers on snapshots, and one kept connection for reads of single rows.
package final class DocumentStore: Sendable {
    /// How a store is opened.
    package struct Options: Sendable {
        /// Whether a commit reaches the disk before it returns. Without, it survives a crash of the process but the
        /// last commits may not survive a power cut.
        package var fullSync = false
        /// Whether only to read, which goes on while another process writes.
        package var isReadOnly = false
        /// How many ancestors of each document's current revision keep their bodies, for deltas.
        package var ancestorBodiesKept = 0
        /// How long to wait for another process that holds the file.
        package var busyTimeout = Duration.seconds(10)
        /// How many revisions of a line are kept.
        package var revisionDepth = RevisionTree.maximumDepth
        /// For the simulator: parts of the rule for conflicts that are left out.
        package var omissions: RevisionTree.Omissions = []
        /// Whether to keep as many ancestors' bodies as any opener before, if that is more.
        package var remembersAncestorBodies = false
        /// Random bits for the identity of a new database.
        package var newUUID: @Sendable () -> [UInt8] = { (0..<16).map { _ in UInt8.random(in: 0...255) } }

        package init() {}
    }

    /// The name in messages.
    let name: String
    let writer: any DatabaseWriter
    let snapshots: any DatabaseReader
    let rows: DatabaseQueue
    let lock: FolderLock?
    let options: Options
    let ancestorBodiesKept: Atomic<Int>
    let keepsDeletedBodies: Atomic<Bool>
    private let syncsFully: Atomic<Bool>
    package let blobs: BlobFiles
    package let changes: ChangeHub
    let catalog = Mutex(Catalog())
    let writeGate = AccessGate(places: 1)
    let readGate: AccessGate
    let waitingRoom = WaitingRoom()
    let writeLane = TransactionLane(label: "loveseat.write")
    let readLanes: Mutex<[TransactionLane]> = Mutex([])
    /// How many transactions are open, on whatever thread.
    let transactionsOpen = Atomic<Int>(0)
    let durableWrites = Atomic<Int>(0)
    /// How many reads of a database file there are at a time.
    static let readers = 4

    /// Sequences and collections as the last commit left them.
    package struct Catalog: Sendable {
        /// What SQLite counts up whenever a table is made or dropped.
        var schemaVersion: Int32 = 0
        var collections: [CollectionName: CollectionHandle] = [:]
        var lastSequence: [Int64: UInt64] = [:]
        /// The highest sequence given in any collection.
        var highestSequence: UInt64 = 0
        /// The highest sequence that may have been used before the database was opened (``SequenceReserve``).
        var firstFree: UInt64 = 0
        /// The last sequence that may be used.
        var reserved: UInt64 = 0
        /// Whether something purged is remembered (PurgeTable).
        var remembersPurges = false

        /// Begins every collection behind what may have been used.
        mutating func beginBehind(_ used: UInt64) {
            firstFree = max(firstFree, used)
            lastSequence = lastSequence.mapValues { max($0, firstFree) }
            highestSequence = max(firstFree, lastSequence.values.max() ?? 0)
        }
    }

    init(
        name: String,
        writer: any DatabaseWriter,
        snapshots: any DatabaseReader,
        rows: DatabaseQueue,
        lock: FolderLock?,
        blobs: BlobFiles,
        changes: ChangeHub,
        options: Options
    ) throws {
        self.name = name
        self.options = options
        self.changes = changes
        ancestorBodiesKept = Atomic(options.ancestorBodiesKept)
        syncsFully = Atomic(options.fullSync)
        keepsDeletedBodies = Atomic(try writer.unsafeRead { try Self.keepsDeletedBodies($0) })
        self.writer = writer
        self.snapshots = snapshots
        readGate = AccessGate(places: snapshots is DatabasePool ? Self.readers : 1)
        self.rows = rows
        self.lock = lock
        self.blobs = blobs
        let loaded = try writer.unsafeRead { db in
            var loaded = try CollectionTable.load(db)
            if !options.isReadOnly { loaded.beginBehind(try SequenceReserve.left(db)) }
            return loaded
        }
        catalog.withLock { $0 = loaded }
    }

    /// Reads the catalog again after everything stored was replaced by what was stored before.
    func reloadCatalog() throws {
        let loaded = try writer.unsafeRead { try CollectionTable.load($0) }
        catalog.withLock { catalog in
            let reserved = catalog.reserved
            catalog = loaded
            catalog.beginBehind(reserved)
        }
    }

    /// Whether a commit reaches the disk before it returns.
    package var isFullSync: Bool { syncsFully.load(ordering: .acquiring) }

    /// Takes over what another opener asks for beyond what the store does already.
    package func tighten(_ options: Options) throws(LoveseatError) {
        ancestorBodiesKept.max(options.ancestorBodiesKept, ordering: .relaxed)
        guard options.fullSync, !isFullSync, !self.options.isReadOnly else { return }
        try Self.wrapping { try maintain { try $0.execute(sql: "PRAGMA synchronous = FULL") } }
        syncsFully.store(true, ordering: .releasing)
    }

    private static let deletedBodiesKey = "deleted_bodies"

    private static func keepsDeletedBodies(_ db: Database) throws -> Bool {
        let sql = "SELECT value FROM info WHERE key = ?"
        return try Bool.fetchOne(db, sql: sql, arguments: [deletedBodiesKey]) ?? false
    }

    /// Keeps the body of what is deleted from now on, also when the database is opened again: an access policy judges a
    /// tombstone by it.
    package func keepDeletedBodies() throws {
        guard !keepsDeletedBodies.load(ordering: .relaxed) else { return }
        try write {
            try $0.database.execute(
                sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, 1)",
                arguments: [Self.deletedBodiesKey]
            )
        }
        keepsDeletedBodies.store(true, ordering: .relaxed)
    }

    /// Closes every connection. Waits for transactions under way.
    package func close() throws(LoveseatError) {
        try requireNoTransaction()
        // Everything is then in one file, also where another process still reads. Nothing is lost if it cannot be.
        if lock != nil {
            _ = try? maintain {
                try SequenceReserve.release($0)
                return try Row.fetchAll($0, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        }
        try Self.wrapping {
            try rows.close()
            try writer.close()
        }
        lock?.release()
        changes.close()
    }

    /// A number that changes with every commit of another connection, also one of another process.
    package func dataVersion() throws -> Int {
        try rows.unsafeReentrantRead { try Int.fetchOne($0, sql: "PRAGMA data_version") ?? 0 }
    }

    // MARK: Collections

    package var collections: [CollectionHandle] { catalog.withLock { Array($0.collections.values) } }

    package func collection(_ name: CollectionName) -> CollectionHandle? {
        catalog.withLock { $0.collections[name] }
    }

    /// Whether a collection is still there.
    package func contains(_ collection: CollectionHandle) -> Bool {
        catalog.withLock { $0.lastSequence[collection.number] != nil }
    }

    package func lastSequence(_ collection: CollectionHandle) -> UInt64 {
        catalog.withLock { $0.lastSequence[collection.number] ?? 0 }
    }

    /// Whether an error is SQLite's, not the app's.
    package static func isStorageError(_ error: any Error) -> Bool { error is DatabaseError }

    /// Runs work whose errors may be SQLite's, and throws ours.
    package static func wrapping<T>(_ body: () throws -> T) throws(LoveseatError) -> T {
        do { return try body() } catch { throw LoveseatError(storage: error) }
    }
}
