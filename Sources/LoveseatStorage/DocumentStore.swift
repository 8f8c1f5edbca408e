private import Crypto
import GRDB
package import LoveseatModel
import Synchronization

#if canImport(Glibc)
private import Glibc
#elseif canImport(Musl)
private import Musl
#else
private import Darwin
#endif

/// Documents in SQLite, and blobs beside them.
///
/// One writer, parallel readers on snapshots, and one kept connection for reads of single rows, which a read
/// transaction would cost more than the row. Inside ``write(_:)`` every read of the same thread sees what was written.
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

    private let writer: any DatabaseWriter
    private let snapshots: any DatabaseReader
    private let rows: DatabaseQueue
    private let lock: FolderLock?
    private let options: Options
    private let ancestorBodiesKept: Atomic<Int>
    private let keepsDeletedBodies: Atomic<Bool>
    private let syncsFully: Atomic<Bool>
    package let blobs: BlobFiles
    package let changes = ChangeHub()
    /// 0, or the thread that is inside a write transaction.
    private let writingThread = Atomic<UInt>(0)
    private let writing = Mutex<UncheckedBox<WriteTransaction?>>(UncheckedBox(nil))
    let catalog = Mutex(Catalog())

    /// Sequences and collections as the last commit left them.
    package struct Catalog: Sendable {
        var collections: [CollectionName: CollectionHandle] = [:]
        var lastSequence: [Int64: UInt64] = [:]
    }

    // MARK: Opening

    /// Opens a database folder, making it if it is not there.
    ///
    /// - Throws: ``LoveseatError``: `busy` if another process has it open, `unreadableDatabase` for a file of another
    ///   kind, `databaseTooNew`, or an error of the disk.
    package static func open(folder: String, options: Options = Options()) throws(LoveseatError)
        -> DocumentStore
    {
        if options.isReadOnly { return try openForReading(folder: folder, options: options) }
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw BlobFiles.failure("make", folder) }
        let lock = try FolderLock(folder: folder)
        return try wrapping {
            let file = "\(folder)/db.sqlite"
            try createPrivateFile(file)
            let pool = try DatabasePool(
                path: file,
                configuration: configuration(options, cacheKilobytes: 32 << 10)
            )
            try prepare(pool, options: options)
            var readOnly = configuration(options, cacheKilobytes: 4 << 10)
            readOnly.readonly = true
            let rows = try DatabaseQueue(path: file, configuration: readOnly)
            let blobs = try BlobFiles(folder: "\(folder)/blobs", syncs: true)
            var options = options
            try rememberAncestorBodies(&options, pool)
            return try DocumentStore(
                writer: pool,
                snapshots: pool,
                rows: rows,
                lock: lock,
                blobs: blobs,
                options: options
            )
        }
    }

    /// Writes down that ancestors keep their bodies, or finds that an earlier opener wanted it.
    private static func rememberAncestorBodies(_ options: inout Options, _ writer: any DatabaseWriter) throws
    {
        let key = "ancestor_bodies"
        let before =
            try writer.unsafeRead {
                try Int.fetchOne($0, sql: "SELECT value FROM info WHERE key = ?", arguments: [key])
            } ?? 0
        if options.remembersAncestorBodies {
            options.ancestorBodiesKept = max(options.ancestorBodiesKept, before)
        }
        let now = options.ancestorBodiesKept
        guard now != before else { return }
        try writer.writeWithoutTransaction {
            try $0.execute(
                sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
                arguments: [key, now]
            )
        }
    }

    /// Makes an empty file that only its owner can read, if there is none. SQLite gives its other files the same mode.
    static func createPrivateFile(_ path: String) throws(LoveseatError) {
        let descriptor = Self.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw BlobFiles.failure("open", path) }
        _ = Self.close(descriptor)
    }

    // The names of these functions are also those of methods here.
    private static func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
        #if canImport(Darwin)
        Darwin.open(path, flags, mode)
        #else
        Glibc.open(path, flags, mode)
        #endif
    }

    private static func close(_ descriptor: Int32) -> Int32 {
        #if canImport(Darwin)
        Darwin.close(descriptor)
        #else
        Glibc.close(descriptor)
        #endif
    }

    /// Opens a database folder without writing anything to it. SQLite keeps readers and the writing process apart.
    private static func openForReading(folder: String, options: Options) throws(LoveseatError)
        -> DocumentStore
    {
        try wrapping {
            var readOnly = configuration(options, cacheKilobytes: 8 << 10)
            readOnly.readonly = true
            let rows = try DatabaseQueue(path: "\(folder)/db.sqlite", configuration: readOnly)
            _ = try rows.read { try checkFormat($0) }
            let blobs = BlobFiles(readingFrom: "\(folder)/blobs")
            return try DocumentStore(
                writer: rows,
                snapshots: rows,
                rows: rows,
                lock: nil,
                blobs: blobs,
                options: options
            )
        }
    }

    /// A number that changes with every commit of another connection, also one of another process.
    package func dataVersion() throws -> Int {
        try rows.unsafeRead { try Int.fetchOne($0, sql: "PRAGMA data_version") ?? 0 }
    }

    /// A store that lives in memory, for simulations; its blobs are files in a folder of the caller's.
    package static func inMemory(
        blobFolder: String,
        options: Options = Options()
    ) throws(LoveseatError) -> DocumentStore {
        try wrapping {
            let queue = try DatabaseQueue(configuration: configuration(options, cacheKilobytes: 2 << 10))
            try prepare(queue, options: options)
            let blobs = try BlobFiles(folder: blobFolder, syncs: false)
            return try DocumentStore(
                writer: queue,
                snapshots: queue,
                rows: queue,
                lock: nil,
                blobs: blobs,
                options: options
            )
        }
    }

    private static func configuration(_ options: Options, cacheKilobytes: Int) -> Configuration {
        var configuration = Configuration()
        configuration.label = "Loveseat"
        configuration.busyMode = .timeout(10)
        configuration.maximumReaderCount = 4
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA cache_size = -\(cacheKilobytes)")
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA synchronous = \(options.fullSync ? "FULL" : "NORMAL")")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 4000")
            }
        }
        return configuration
    }

    /// Refuses what is no database of ours, or one of a newer format; returns the format, 0 for an empty file.
    private static func checkFormat(_ db: Database) throws -> Int32 {
        let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
        guard application == Schema.applicationID || (application == 0 && tables == 0) else {
            throw LoveseatError(.unreadableDatabase, "db.sqlite is an SQLite file of another program")
        }
        guard version <= Schema.version else {
            throw LoveseatError(
                .databaseTooNew,
                "the database has format \(version), this program knows \(Schema.version): update it"
            )
        }
        return version
    }

    private static func prepare(_ writer: any DatabaseWriter, options: Options) throws {
        try writer.writeWithoutTransaction { db in
            let version = try checkFormat(db)
            guard version == 0 else { return try migrate(db, from: version) }
            let uuid = { BlobDigest(sha1: options.newUUID() + [0, 0, 0, 0]).hexadecimalText.prefix(32) }
            try db.inTransaction {
                try db.execute(sql: Schema.shared)
                try db.execute(
                    sql: "INSERT INTO info (key, value) VALUES ('private_uuid', ?), ('public_uuid', ?)",
                    arguments: [String(uuid()), String(uuid())]
                )
                let first = CollectionHandle(
                    number: 1,
                    name: .default,
                    table: CollectionName.default.fullName
                )
                try db.execute(sql: Schema.collection(first.table))
                try db.execute(
                    sql: "INSERT INTO collections (number, scope, name, table_name) VALUES (1, ?, ?, ?)",
                    arguments: [first.name.scope, first.name.name, first.table]
                )
                try db.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
                try db.execute(sql: "PRAGMA user_version = \(Schema.version)")
                return .commit
            }
        }
    }

    /// Brings an older format up to date, all or nothing.
    private static func migrate(_ db: Database, from version: Int32) throws {
        guard version < Schema.version else { return }
        try db.inTransaction {
            if version < 2 { try db.execute(sql: Schema.grants) }
            if version < 3 { try db.execute(sql: Schema.marks) }
            try db.execute(sql: "PRAGMA user_version = \(Schema.version)")
            return .commit
        }
    }

    private init(
        writer: any DatabaseWriter,
        snapshots: any DatabaseReader,
        rows: DatabaseQueue,
        lock: FolderLock?,
        blobs: BlobFiles,
        options: Options
    ) throws {
        self.options = options
        ancestorBodiesKept = Atomic(options.ancestorBodiesKept)
        syncsFully = Atomic(options.fullSync)
        keepsDeletedBodies = Atomic(try writer.unsafeRead { try Self.keepsDeletedBodies($0) })
        self.writer = writer
        self.snapshots = snapshots
        self.rows = rows
        self.lock = lock
        self.blobs = blobs
        let loaded = try writer.unsafeRead { try CollectionTable.load($0) }
        catalog.withLock { $0 = loaded }
    }

    /// Reads the catalog again after everything stored was replaced.
    func reloadCatalog() throws {
        let loaded = try writer.unsafeRead { try CollectionTable.load($0) }
        catalog.withLock { $0 = loaded }
    }

    /// Whether a commit reaches the disk before it returns.
    package var isFullSync: Bool { syncsFully.load(ordering: .acquiring) }

    /// Takes over what another opener asks for beyond what the store does already.
    package func tighten(_ options: Options) throws(LoveseatError) {
        ancestorBodiesKept.max(options.ancestorBodiesKept, ordering: .relaxed)
        guard options.fullSync, !isFullSync else { return }
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
        // Everything is then in one file, also where another process still reads. Nothing is lost if it cannot be.
        if lock != nil { _ = try? maintain { try Row.fetchAll($0, sql: "PRAGMA wal_checkpoint(TRUNCATE)") } }
        try Self.wrapping {
            try rows.close()
            try writer.close()
        }
        lock?.release()
        changes.close()
    }

    /// Whether this thread is inside ``write(_:)``.
    package var isInTransaction: Bool { isWritingHere }

    // MARK: Transactions

    private var isWritingHere: Bool { writingThread.load(ordering: .acquiring) == Self.thisThread }

    private static var thisThread: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: Int(pthread_mach_thread_np(pthread_self())))
        #else
        UInt(pthread_self())
        #endif
    }

    /// Runs a closure in a transaction that commits when it returns and leaves no trace when it throws.
    ///
    /// Inside another ``write(_:)`` of the same thread it is a part of that transaction that can fail by itself.
    package func write<T>(_ body: (WriteTransaction) throws -> T) throws -> T {
        if isWritingHere, let outer = writing.withLock({ $0.value }) {
            return try outer.nested { try body(outer) }
        }
        return try writeAlone(body)
    }

    /// Writes one document: a transaction of its own, or, inside ``write(_:)`` of the same thread, simply part of it.
    package func writeOne<T>(_ body: (WriteTransaction) throws -> T) throws -> T {
        if isWritingHere, let outer = writing.withLock({ $0.value }) { return try body(outer) }
        return try writeAlone(body)
    }

    private func writeAlone<T>(_ body: (WriteTransaction) throws -> T) throws -> T {
        try writer.writeWithoutTransaction { db in
            writingThread.store(Self.thisThread, ordering: .releasing)
            let start = catalog.withLock { $0 }
            let transaction = WriteTransaction(
                database: db,
                blobs: blobs,
                catalog: start,
                options: options,
                ancestorBodiesKept: ancestorBodiesKept.load(ordering: .relaxed),
                keepsDeletedBodies: keepsDeletedBodies.load(ordering: .relaxed)
            )
            writing.withLock { $0.value = transaction }
            defer {
                writing.withLock { $0.value = nil }
                writingThread.store(0, ordering: .releasing)
            }
            try RawStatement("BEGIN IMMEDIATE", in: db).run()
            do {
                let result = try body(transaction)
                try transaction.finish()
                try RawStatement("COMMIT", in: db).run()
                catalog.withLock { $0 = transaction.catalog }
                writing.withLock { $0.value = nil }
                writingThread.store(0, ordering: .releasing)
                changes.publish(transaction.commits)
                return result
            } catch {
                if db.isInsideTransaction { _ = try? RawStatement("ROLLBACK", in: db).run() }
                throw error
            }
        }
    }

    /// Runs a closure on a snapshot of the database.
    package func read<T>(_ body: (ReadTransaction) throws -> T) throws -> T {
        if isWritingHere, let outer = writing.withLock({ $0.value }) { return try body(outer) }
        return try snapshots.read {
            try body(ReadTransaction(database: $0, catalog: catalog.withLock { $0 }))
        }
    }

    /// Reads a few rows, each as of now, on the kept connection.
    package func readRows<T>(_ body: (ReadTransaction) throws -> T) throws -> T {
        if isWritingHere, let outer = writing.withLock({ $0.value }) { return try body(outer) }
        return try rows.unsafeRead {
            try body(ReadTransaction(database: $0, catalog: catalog.withLock { $0 }))
        }
    }

    /// Runs SQL that no transaction may surround, on the writer.
    ///
    /// - Throws: `transactionNotClosed` inside ``write(_:)`` of the same thread.
    func maintain<T>(_ body: (Database) throws -> T) throws -> T {
        try requireNoTransaction()
        return try writer.writeWithoutTransaction(body)
    }

    func requireNoTransaction() throws(LoveseatError) {
        guard isWritingHere else { return }
        throw LoveseatError(
            .transactionNotClosed,
            "this cannot be done inside a batch: do it before the batch or after it"
        )
    }

    // MARK: Collections

    package var collections: [CollectionHandle] {
        if isWritingHere, let outer = writing.withLock({ $0.value }) { return outer.collections }
        return catalog.withLock { Array($0.collections.values) }
    }

    package func collection(_ name: CollectionName) -> CollectionHandle? {
        collections.first { $0.name == name }
    }

    /// Whether a collection is still there.
    package func contains(_ collection: CollectionHandle) -> Bool {
        if isWritingHere, let outer = writing.withLock({ $0.value }) { return outer.contains(collection) }
        return catalog.withLock { $0.lastSequence[collection.number] != nil }
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

/// Carries a value past the compiler where a lock and a thread check guard it.
// @unchecked because a transaction is touched only by the thread inside it (DocumentStore.isWritingHere).
private struct UncheckedBox<Value>: @unchecked Sendable {
    var value: Value
    init(_ value: Value) { self.value = value }
}
