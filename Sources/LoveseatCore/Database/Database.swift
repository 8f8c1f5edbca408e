private import Foundation
import Logging
public import LoveseatModel
import LoveseatReplication
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
    private let state: Mutex<State>

    private static let instances = Atomic<UInt64>(0)

    private struct State {
        /// Nil once closed.
        var open: DatabaseInstance?
        var services: [ObjectIdentifier: any DatabaseService] = [:]
        /// Closures that end the feeds of this instance.
        var feedEnds: [UInt64: @Sendable () -> Void] = [:]
        var nextFeed: UInt64 = 0
    }

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
        let folder = try Self.folder(name, in: config.directory)
        guard (1...DatabaseConfiguration.largestMaximumDocumentBytes).contains(config.maximumDocumentBytes)
        else {
            throw LoveseatError(
                .invalidParameter,
                "maximumDocumentBytes is \(config.maximumDocumentBytes): use 1 to \(DatabaseConfiguration.largestMaximumDocumentBytes)"
            )
        }
        guard config.busyTimeout >= .zero else {
            throw LoveseatError(.invalidParameter, "busyTimeout is negative: use 0 or more")
        }
        guard DatabaseConfiguration.cacheSizes.contains(config.cacheSize) else {
            throw LoveseatError(
                .invalidParameter,
                "cacheSize is \(config.cacheSize): use \(1 << 20) to \(DatabaseConfiguration.cacheSizes.upperBound) bytes"
            )
        }
        if !config.readOnly { try Self.makeDirectory(config.directory) }
        var options = DocumentStore.Options()
        options.fullSync = config.fullSync
        options.isReadOnly = config.readOnly
        options.excludesWriters = config.excludesWriters
        options.busyTimeout = config.busyTimeout
        options.cacheSize = config.cacheSize
        options.ancestorBodiesKept = config.enableDeltaSync ? DatabaseConfiguration.deltaBasesKept : 0
        options.remembersAncestorBodies = config.remembersDeltaSync
        options.onNewIdentity = {
            LogDomain.database.log(
                .notice,
                "\(name): \(folder) was copied from another folder or a backup: it compares all documents with its peers once"
            )
        }
        let open = try DatabaseInstance.open(folder: folder, options: options)
        folderNumber = open.number
        state = Mutex(State(open: open))
        LogDomain.database.log(.info, "\(name): opened \(folder)\(config.readOnly ? " for reading" : "")")
    }

    /// Creates a database over a store that the caller has opened, and closes. For the simulator, whose stores are in memory.
    package init(name: String, over store: DocumentStore) {
        (self.name, config) = (name, DatabaseConfiguration())
        let open = DatabaseInstance(over: store)
        folderNumber = open.number
        state = Mutex(State(open: open))
    }

    private static func makeDirectory(_ directory: String) throws(LoveseatError) {
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        } catch {
            throw LoveseatError(
                .cantOpenFile,
                "cannot create the folder \(directory): \(error.localizedDescription)"
            )
        }
    }

    deinit {
        // There is no caller to report an error to.
        try? state.withLock { state in
            let open = state.open
            state.open = nil
            return open
        }?.leave()
    }

    static func folder(_ name: String, in directory: String) throws(LoveseatError) -> String {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(UInt8(ascii: "/")),
            !name.utf8.contains(0), name.utf8.count <= 240
        else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(name)\" is not a valid database name: use 1 to 240 bytes without a slash"
            )
        }
        return "\(directory)/\(name).loveseat"
    }

    /// The path of the database's folder, or nil after the database was closed.
    public var path: String? { state.withLock { $0.open?.folder } }

    /// The open folder.
    ///
    /// - Throws: `notOpen` after ``close()-swift.method``.
    package var opened: DatabaseInstance {
        get throws(LoveseatError) {
            guard let open = state.withLock({ $0.open }) else {
                throw LoveseatError(.notOpen, "database \"\(name)\" is closed")
            }
            return open
        }
    }

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
        try refuseInTransaction()
        let services = removeServices()
        if !services.isEmpty {
            let done = DispatchSemaphore(value: 0)
            Task.detached {
                for service in services { await service.endWithDatabase() }
                done.signal()
            }
            done.wait()
        }
        try leave()
    }

    /// Closes the database: stops its replicators and listeners, waits for them, and releases the files.
    ///
    /// Closing a second time does nothing. No thread is blocked while waiting. If the task is cancelled while it waits, the call returns
    /// and the database closes when replicators and listeners have ended. A task that was cancelled before waits.
    ///
    /// - Throws: ``LoveseatError``: `transactionNotClosed` inside a transaction's closure; an error of the disk.
    public func close() async throws(LoveseatError) {
        try refuseInTransaction()
        try await ending { $0 }
    }

    /// Ends the services, closes, and does something more. All of that is done even if the task is cancelled; see ``finishing(_:)``.
    private func ending(
        then finish: @escaping @Sendable (Result<Void, LoveseatError>) -> Result<Void, LoveseatError>
    ) async throws(LoveseatError) {
        let services = removeServices()
        let closing: @Sendable () -> Result<Void, LoveseatError> = { [self] in
            do throws(LoveseatError) { return .success(try leave()) } catch { return .failure(error) }
        }
        guard !services.isEmpty else { return try finish(closing()).get() }
        try await finishing {
            for service in services { await service.endWithDatabase() }
            return finish(closing())
        }?.get()
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
        let folder = try beginRemoval()
        defer { DatabaseInstance.endRemoval(folder) }
        try close()
        try Self.remove(folder)
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
        let folder = try beginRemoval()
        try await ending { closed in
            defer { DatabaseInstance.endRemoval(folder) }
            do throws(LoveseatError) {
                try closed.get()
                return .success(try Self.remove(folder))
            } catch { return .failure(error) }
        }
    }

    private func beginRemoval() throws(LoveseatError) -> String {
        let open = try opened
        try refuseInTransaction("delete")
        try open.store.requireWriteable()
        return try DatabaseInstance.beginRemoval(open.folder, heldBy: 1)
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
        let folder = try folder(name, in: directory ?? DatabaseConfiguration().directory)
        if !FileManager.default.fileExists(atPath: folder) { return }
        let removal = try DatabaseInstance.beginRemoval(folder, heldBy: 0)
        defer { DatabaseInstance.endRemoval(removal) }
        try remove(folder)
    }

    /// Returns whether a database of this name exists in a directory. A nil directory means the default of
    /// ``DatabaseConfiguration/directory``.
    public static func exists(withName name: String, inDirectory directory: String? = nil) -> Bool {
        // No database has a name that is not allowed.
        guard let folder = try? folder(name, in: directory ?? DatabaseConfiguration().directory) else {
            return false
        }
        return FileManager.default.fileExists(atPath: "\(folder)/db.sqlite")
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
        let target = try folder(name, in: config.directory)
        let files = FileManager.default
        guard files.fileExists(atPath: "\(path)/db.sqlite") else {
            throw LoveseatError(.notFound, "there is no database at \(path)")
        }
        guard !files.fileExists(atPath: target) else {
            throw LoveseatError(
                .invalidParameter,
                "\(target) exists already: delete it or choose another name"
            )
        }
        let source = try DatabaseInstance.open(folder: path, options: DocumentStore.Options())
        // The copy is whole by then, or has its own error: that the source cannot be closed changes neither.
        defer { try? source.leave() }
        do {
            try files.createDirectory(atPath: config.directory, withIntermediateDirectories: true)
            try source.store.copy(to: target)
        } catch {
            // There is nothing to remove if the copy was not begun. The first error is the one to report.
            try? files.removeItem(atPath: target)
            throw LoveseatError(storage: error)
        }
    }

    /// Removes a folder that this process does not have open, and keeps other processes from opening it meanwhile.
    private static func remove(_ folder: String) throws(LoveseatError) {
        let lock = try FolderLock(folder: folder)
        defer { lock.release() }
        do { try FileManager.default.removeItem(atPath: folder) } catch {
            throw LoveseatError(.ioError, "cannot remove \(folder): \(error.localizedDescription)")
        }
    }

    private func refuseInTransaction(_ call: String = #function) throws(LoveseatError) {
        try state.withLock({ $0.open })?.store.requireNoTransaction(call)
    }

    private func leave() throws(LoveseatError) {
        let (open, feedEnds) = state.withLock { state in
            defer { (state.open, state.feedEnds) = (nil, [:]) }
            return (state.open, state.feedEnds.values)
        }
        for end in feedEnds { end() }
        // The database was closed before.
        guard let open else { return }
        try open.leave()
        LogDomain.database.log(.info, "\(name): closed")
    }

    // MARK: Feeds

    /// Ends a feed when this instance closes, even if another one keeps the folder open.
    ///
    /// Returns a number for ``forgetFeed(_:)``. Calls `end` at once if the database is closed.
    package func endWhenClosed(_ end: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isOpen) = state.withLock { state in
            state.nextFeed += 1
            if state.open != nil { state.feedEnds[state.nextFeed] = end }
            return (state.nextFeed, state.open != nil)
        }
        if !isOpen { end() }
        return number
    }

    /// Called when the feed has no consumer any more.
    package func forgetFeed(_ number: UInt64) {
        state.withLock { _ = $0.feedEnds.removeValue(forKey: number) }
    }

    // MARK: Services

    /// Keeps a replicator or listener alive, and stops it when the database closes.
    package func adopt(_ service: any DatabaseService) throws(LoveseatError) {
        let isOpen = state.withLock { state in
            guard state.open != nil else { return false }
            state.services[ObjectIdentifier(service)] = service
            return true
        }
        if !isOpen { throw LoveseatError(.notOpen, "database \"\(name)\" is closed") }
    }

    /// Called when a service has ended by itself.
    package func release(_ service: any DatabaseService) {
        state.withLock { $0.services[ObjectIdentifier(service)] = nil }
    }

    /// The replicators and listeners that run.
    var services: [any DatabaseService] { state.withLock { Array($0.services.values) } }

    private func removeServices() -> [any DatabaseService] {
        state.withLock { state in
            let services = Array(state.services.values)
            state.services = [:]
            return services
        }
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
        try refuseInTransaction()
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
        try refuseInTransaction()
        LogDomain.database.log(.info, "\(name): maintenance: \(type)")
        try DocumentStore.wrapping {
            switch type {
            case .compact: _ = try store.compact()
            case .reindex: try store.reindex()
            case .optimize: try store.optimize(isFull: false)
            case .fullOptimize: try store.optimize(isFull: true)
            case .integrityCheck:
                let problems = try store.check()
                if let first = problems.first {
                    throw LoveseatError(
                        .corruptData,
                        "\(problems.count.counted("problem")), the first: \(first)"
                    )
                }
            }
        }
    }
}

/// The kinds of maintenance that ``Database/performMaintenance(type:)`` performs.
public enum MaintenanceType: UInt8, Hashable, Sendable, CaseIterable {
    /// Removes blobs that no document refers to, and returns free space to the file system.
    case compact
    /// Rebuilds the indexes.
    case reindex
    /// Verifies everything that is stored, blobs included, and throws `corruptData` if something is damaged.
    case integrityCheck
    /// Updates outdated statistics that SQLite plans queries with.
    case optimize
    /// Updates all statistics that SQLite plans queries with.
    case fullOptimize
}

/// A replicator, listener or other service that must end before its database closes.
package protocol DatabaseService: AnyObject, Sendable {
    /// Stops, and returns when it no longer uses the database.
    func endWithDatabase() async

    /// The replications that it is a side of.
    var replicationTasks: [ReplicationTask] { get }
}

extension DatabaseService {
    package var replicationTasks: [ReplicationTask] { [] }
}
