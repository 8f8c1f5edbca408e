import Logging
public import LoveseatModel
package import LoveseatStorage
private import Synchronization

/// An embedded database: scopes, collections, JSON documents and blobs in one folder, `<name>.loveseat`.
///
/// Any number of `Database` instances may be open on one folder within a process, and see each other's commits. A second process
/// can open the folder only with ``DatabaseConfiguration/readOnly``; otherwise it gets ``LoveseatError/Code/busy``.
///
/// A database is safe to use from any thread. It closes when the last reference to it goes, unless a replicator or listener still
/// uses it.
public final class Database: Sendable {
    /// The name under which the database was opened.
    public let name: String
    /// The configuration with which the database was opened. Changing a copy of it has no effect.
    public let config: DatabaseConfiguration
    /// The number of this `Database` object within the process.
    let instance = Database.instances.add(1, ordering: .relaxed).newValue
    /// The number of the open folder, which this object shares with others that have it open at the same time.
    let folderNumber: UInt64
    /// The use of the open folder by this object.
    package let session: DatabaseSession

    private static let instances = Atomic<UInt64>(0)

    /// Opens a database, and creates it if it does not exist.
    ///
    /// - Parameters:
    ///   - name: The name: 1 to 240 bytes without a slash. The folder is `<name>.loveseat`.
    ///   - config: Where the folder is, and how to open it.
    /// - Throws: ``LoveseatError``: `invalidParameter` for a name or setting that is not allowed, `busy` if another process
    ///   has the database open, `unreadableDatabase` if the files are not a Loveseat database, `databaseTooNew` if a newer version of
    ///   Loveseat wrote them, `cantOpenFile` or another error of the disk.
    public init(name: String, config: DatabaseConfiguration = DatabaseConfiguration()) throws(LoveseatError) {
        self.name = name
        self.config = config
        let folder = try DatabaseFolder(name: name, config)
        let options = try config.storeOptions(for: name, folder)
        if !config.readOnly { try DatabaseFolder.create(directory: config.directory) }
        let open = try DatabaseInstance.open(folder: folder.path, options: options)
        folderNumber = open.number
        session = DatabaseSession(open, name: name)
        LogDomain.database.log(.info, "\(name): opened \(folder)\(config.readOnly ? " for reading" : "")")
    }

    /// Creates a database over a store that the caller has opened, and closes. For the simulator, whose stores are in memory.
    package init(name: String, over store: DocumentStore) {
        (self.name, config) = (name, DatabaseConfiguration())
        let open = DatabaseInstance(over: store)
        folderNumber = open.number
        session = DatabaseSession(open, name: name)
    }

    /// The path of the database's folder, or nil after the database was closed.
    public var path: String? { session.path }

    /// The open folder.
    ///
    /// - Throws: `notOpen` after ``close()-swift.method``.
    package var opened: DatabaseInstance { get throws(LoveseatError) { try session.opened } }

    package var store: DocumentStore { get throws(LoveseatError) { try opened.store } }

    // MARK: Ending

    /// Closes the database: stops its replicators and listeners, waits for them, and releases the files.
    ///
    /// Closing a second time does nothing. This call blocks the thread until replicators and listeners have ended; in async code, use
    /// ``close()-5y0ux`` instead.
    ///
    /// - Throws: ``LoveseatError``: `transactionNotClosed` inside a transaction's closure; an error of the disk.
    @available(*, noasync, message: "use `try await close()`, which blocks no thread")
    public func close() throws(LoveseatError) {
        try session.requireNoTransaction()
        try session.end()
    }

    /// Closes the database: stops its replicators and listeners, waits for them, and releases the files.
    ///
    /// Closing a second time does nothing. No thread is blocked while waiting. If the task is cancelled while it waits, the call returns
    /// and the database closes when replicators and listeners have ended. A task that was cancelled before waits.
    ///
    /// - Throws: ``LoveseatError``: `transactionNotClosed` inside a transaction's closure; an error of the disk.
    public func close() async throws(LoveseatError) {
        try session.requireNoTransaction()
        try await session.end { $0 }
    }

    /// Closes the database and removes it from the disk.
    ///
    /// This call blocks the thread until replicators and listeners have ended; in async code, use ``delete()-7nbnp`` instead.
    ///
    /// - Throws: ``LoveseatError``: `notOpen` if the database was closed, `notWriteable` if it is read-only, `busy` if another `Database`
    ///   of this process has the folder open, also for reading, `transactionNotClosed` inside a transaction's closure, `ioError` if files
    ///   cannot be removed. After `ioError` the database is closed.
    @available(*, noasync, message: "use `try await delete()`, which blocks no thread")
    public func delete() throws(LoveseatError) {
        let folder = try session.beginRemoval()
        defer { folder.endRemoval() }
        try session.end()
        try folder.remove()
    }

    /// Closes the database and removes it from the disk, without blocking a thread.
    ///
    /// If the task is cancelled while it waits for replicators and listeners, the call returns and the database is removed when they have
    /// ended.
    ///
    /// - Throws: ``LoveseatError``: `notOpen` if the database was closed, `notWriteable` if it is read-only, `busy` if another `Database`
    ///   of this process has the folder open, also for reading, `transactionNotClosed` inside a transaction's closure, `ioError` if files
    ///   cannot be removed. After `ioError` the database is closed.
    public func delete() async throws(LoveseatError) {
        let folder = try session.beginRemoval()
        try await session.end { closed in
            defer { folder.endRemoval() }
            do throws(LoveseatError) {
                try closed.get()
                return .success(try folder.remove())
            } catch { return .failure(error) }
        }
    }

    /// Removes a database that is not open. Does nothing if it does not exist.
    ///
    /// - Parameters:
    ///   - name: The name of the database.
    ///   - directory: The folder that contains the database's folder. Nil means the default of
    ///     ``DatabaseConfiguration/directory``.
    /// - Throws: ``LoveseatError``: `busy` if this process has it open, or another one for writing, `invalidParameter` for a name that is
    ///   not allowed, `ioError` if files cannot be removed.
    public static func delete(withName name: String, inDirectory directory: String? = nil)
        throws(LoveseatError)
    {
        try DatabaseFolder(name: name, DatabaseConfiguration(directory: directory)).removeUnused()
    }

    /// Returns whether a database of this name exists in a directory. A nil directory means the default of
    /// ``DatabaseConfiguration/directory``.
    public static func exists(withName name: String, inDirectory directory: String? = nil) -> Bool {
        // No database has a name that is not allowed.
        let folder = try? DatabaseFolder(name: name, DatabaseConfiguration(directory: directory))
        return folder?.hasDatabase ?? false
    }

    /// Copies a database with its blobs to a new database, which gets an identity of its own.
    ///
    /// The database may be open in this process, and the copy shows it as of one moment. The copy has no checkpoints, so that a
    /// replicator compares all documents with its peer once. This call blocks the thread while it copies. If it fails, nothing is left
    /// of the copy.
    ///
    /// - Parameters:
    ///   - path: The folder to copy, such as ``path`` of an open database.
    ///   - name: The name of the copy.
    ///   - config: Where to put the copy. Nil means the defaults.
    /// - Throws: ``LoveseatError``: `notFound` if there is no database at `path`, `invalidParameter` if the copy exists already or its
    ///   name is not allowed, `busy` if another process has the database open, `transactionNotClosed` inside the closure of one of its
    ///   transactions, an error of the disk.
    public static func copy(
        fromPath path: String,
        toDatabase name: String,
        withConfig config: DatabaseConfiguration? = nil
    ) throws(LoveseatError) {
        let config = config ?? DatabaseConfiguration()
        try DatabaseFolder(name: name, config).copy(from: path, creating: config.directory)
    }

    // MARK: Maintenance

    /// Removes the tombstones of documents that were deleted here, or whose deletion arrived here, at least so long ago. Nothing does
    /// that by itself: without this call deletions are kept for ever.
    ///
    /// A peer that has not replicated with this database since before a deletion, and has the document, brings it back: choose an age that
    /// is longer than any peer is away, and call this at all peers. Peers whose pull was complete since keep their tombstones, and
    /// nothing comes back from them. ``MaintenanceType/compact`` then returns the space to the file system. In a database of an earlier
    /// version, tombstones begin to age when it is compacted, or at the first call of this method.
    ///
    /// - Parameter age: With zero or less, all tombstones are removed. Fractions of seconds do not count.
    /// - Returns: The number of tombstones that were removed.
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure, `notWriteable`, an error of the disk.
    @discardableResult
    public func removeTombstones(olderThan age: Duration) throws(LoveseatError) -> Int {
        let store = try store
        try session.requireNoTransaction()
        let removed = try DocumentStore.wrapping {
            try store.removeTombstones(olderThan: age.components.seconds)
        }
        LogDomain.database.log(.info, "\(name): removed \(removed.counted("tombstone"))")
        return removed
    }

    /// Cleans up, optimises or checks the database.
    ///
    /// This call blocks the thread until it is done, which takes time in proportion to the size of the database.
    ///
    /// - Throws: ``LoveseatError``: `notOpen`, `transactionNotClosed` inside a transaction's closure, `corruptData` if
    ///   ``MaintenanceType/integrityCheck`` finds damage, `notWriteable`, an error of the disk.
    public func performMaintenance(type: MaintenanceType) throws(LoveseatError) {
        let store = try store
        try session.requireNoTransaction()
        LogDomain.database.log(.info, "\(name): maintenance: \(type)")
        try DocumentStore.wrapping { try type.perform(on: store) }
    }

    /// Performs several kinds of maintenance one after the other, on a thread of the database's own: what a service does every night.
    ///
    /// ```swift
    /// try await database.performMaintenance(types: [.compact, .optimize], removingTombstonesOlderThan: .seconds(90 * 86_400))
    /// ```
    ///
    /// No thread of Swift's pool is blocked. If the task is cancelled, the kind that has begun is completed, and the others are left out.
    ///
    /// - Parameters:
    ///   - types: The kinds of maintenance, in their order.
    ///   - age: Before them, tombstones of at least this age are removed; see ``removeTombstones(olderThan:)``. With nil, the default, all are kept.
    /// - Returns: The number of tombstones that were removed.
    /// - Throws: As ``performMaintenance(type:)`` and ``removeTombstones(olderThan:)``, and `CancellationError`.
    @discardableResult
    public func performMaintenance(
        types: [MaintenanceType],
        removingTombstonesOlderThan age: Duration? = nil
    ) async throws -> Int {
        try Task.checkCancellation()
        let work = Task.detached(executorPreference: BlockingThreads.shared) { [self] in
            var removed = 0
            if let age { removed = try removeTombstones(olderThan: age) }
            for type in types {
                try Task.checkCancellation()
                try performMaintenance(type: type)
            }
            return removed
        }
        return try await withTaskCancellationHandler {
            try await work.value
        } onCancel: {
            work.cancel()
        }
    }
}
