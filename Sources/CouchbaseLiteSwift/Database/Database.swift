import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import Synchronization

/// An embedded database: scopes, collections, JSON documents and blobs in one folder.
///
/// It is safe to use from any thread. Its calls block the thread, which may be one of Swift's pool: what they wait for runs on other threads, up to
/// 64 of which an app's closures may block at once. On Linux, Dispatch has at most 255 such threads in a process.
public final class Database: Sendable {
    /// The name of the default scope, `_default`.
    public static let defaultScopeName = CollectionName.defaultPart
    /// The name of the default collection, `_default`.
    public static let defaultCollectionName = CollectionName.defaultPart

    /// The name under which the database was opened.
    public let name: String
    /// The configuration with which the database was opened.
    public let config: DatabaseConfiguration
    let engine: EngineDatabase
    /// The path of the folder, also after the database was closed.
    let folder: String
    private let batch = Mutex<Batch?>(nil)
    private let known = Mutex(KnownCollections())

    /// The transaction of ``inBatch(using:)``.
    ///
    /// Unchecked, since it is behind a lock, and only the thread that runs the transaction gets at it.
    private struct Batch: @unchecked Sendable {
        let thread: Thread
        let transaction: WriteTransaction
    }

    /// The objects of collections that somebody has, and some that nobody has any more.
    private struct KnownCollections {
        struct Entry { weak var collection: Collection? }

        var entries: [CollectionHandle: Entry] = [:]
        /// The number of entries at which those without an object are removed.
        private var limit = 64

        mutating func add(_ collection: Collection) {
            if entries.count >= limit {
                entries = entries.filter { $0.value.collection != nil }
                limit = 64 + 2 * entries.count
            }
            entries[collection.engine.handle] = Entry(collection: collection)
        }
    }

    /// Opens a database, and creates it if it does not exist.
    ///
    /// - Throws: `invalidParameter` for a name that is not allowed, `busy` if another process has the database open,
    ///   `unsupportedEncryption` for a configuration with a key, `unreadableDatabase` if the files are not those of a database, `cantUpgradeDatabase` for a folder that Couchbase Lite made.
    public init(name: String, config: DatabaseConfiguration = DatabaseConfiguration()) throws {
        self.name = name
        self.config = config
        try Self.refuseForeign(name, config)
        engine = try CBLError.converting { try EngineDatabase(name: name, config: config.engine()) }
        folder = engine.path ?? ""
    }

    /// Throws if a folder has a database of Couchbase Lite in it: an empty one beside it would look like lost data.
    private static func refuseForeign(_ name: String, _ config: DatabaseConfiguration) throws {
        let folder = try folder(name, config.directory)
        guard FileManager.default.fileExists(atPath: "\(folder)/db.sqlite3"),
            !folder.hasDatabase
        else { return }  // The folder is ours, or does not exist.
        throw CBLError.make(
            CBLError.cantUpgradeDatabase,
            "\(folder) is a database of Couchbase Lite, whose files Loveseat cannot read: choose another name or directory, and replicate the documents"
        )
    }

    private static func folder(_ name: String, _ directory: String?) throws -> DatabaseFolder {
        var config = DatabaseConfiguration()
        if let directory { config.directory = directory }
        return try CBLError.converting { try DatabaseFolder(name: name, config.engine()) }
    }

    /// The path of the database's folder, with a slash at its end; nil after the database was closed.
    public var path: String? { engine.path.map { "\($0)/" } }

    // MARK: Ending

    /// Closes the database: stops its replicators, listeners and live queries, waits for them, and releases the files.
    ///
    /// Closing a second time does nothing. A filter, resolver or authenticator that calls this waits for itself, and so does the completion of a
    /// ``MessageEndpointConnection`` that needs the calling thread.
    ///
    /// - Throws: `transactionNotClosed` inside of ``inBatch(using:)``.
    public func close() throws { try CBLError.converting { try engine.close() } }

    /// Closes the database and removes it from the disk.
    ///
    /// - Throws: `notOpen` if the database was closed; `busy` if another `Database` has it open; `transactionNotClosed` inside of
    ///   ``inBatch(using:)``.
    public func delete() throws { try CBLError.converting { try engine.delete() } }

    /// Removes a database that is not open. Does nothing if it does not exist. A nil directory is the default one.
    ///
    /// - Throws: `busy` if it is open.
    public static func delete(withName name: String, inDirectory directory: String? = nil) throws {
        let folder = try folder(name, directory)
        try CBLError.converting { try folder.removeUnused() }
    }

    /// Returns whether a database exists in a directory. A nil directory is the default one.
    public static func exists(withName name: String, inDirectory directory: String? = nil) -> Bool {
        // No database has a name that is not allowed.
        (try? folder(name, directory))?.hasDatabase ?? false
    }

    /// Copies a database with its blobs and indexes to a new one. If it fails, nothing is left of the copy.
    ///
    /// - Parameters:
    ///   - path: The folder to copy, such as ``path`` of an open database.
    ///   - name: The name of the copy.
    ///   - config: Where to put the copy. Nil means the defaults.
    /// - Throws: `notFound` if there is no database at `path`, `invalidParameter` if the copy exists already.
    public static func copy(
        fromPath path: String,
        toDatabase name: String,
        withConfig config: DatabaseConfiguration?
    ) throws {
        let config = DatabaseConfiguration(config: config)
        try CBLError.converting {
            // A path of this module ends with a slash.
            let folder = path.utf8.last == UInt8(ascii: "/") ? String(path.dropLast()) : path
            try EngineDatabase.copy(fromPath: folder, toDatabase: name, withConfig: config.engine())
        }
    }

    // MARK: Maintenance

    /// Cleans up, optimises or checks the database.
    ///
    /// - Throws: `notOpen`; `transactionNotClosed` inside of ``inBatch(using:)``; `corruptData` if a check finds damage.
    public func performMaintenance(type: MaintenanceType) throws {
        try CBLError.converting { try engine.performMaintenance(type: type.engine) }
    }

    /// Encrypts the files, which Loveseat does not do. Nil, for files that are not encrypted, does nothing.
    ///
    /// - Throws: `unsupportedEncryption` for a key; `notOpen`.
    @available(
        *,
        deprecated,
        message:
            "Loveseat does not encrypt its files, and throws `unsupportedEncryption` for a key: use an encrypted disk"
    )
    public func changeEncryptionKey(_ key: EncryptionKey?) throws {
        _ = try CBLError.converting { try engine.opened }
        try key?.refuse()
    }

    // MARK: Transactions

    /// Runs a closure in a transaction: everything that it changes in this database is stored when it returns, and nothing if it throws.
    ///
    /// Calls of this database inside the closure, on its thread, take part in the transaction. The closure may call `inBatch` again, which
    /// belongs to the same transaction.
    ///
    /// - Throws: `unexpectedError` with the message of the error that the closure throws; `notOpen`.
    public func inBatch(using block: () throws -> Void) throws {
        var failure: (any Error)?
        func perform() throws {
            do { try block() } catch {
                failure = error
                throw error
            }
        }
        do {
            guard transaction == nil else { return try perform() }
            try engine.write { transaction in
                batch.withLock { $0 = Batch(thread: .current, transaction: transaction) }
                defer { batch.withLock { $0 = nil } }
                try perform()
            }
        } catch {
            guard let failure else { throw CBLError.converted(error) }
            throw CBLError.make(CBLError.unexpectedError, failure.localizedDescription)
        }
    }

    /// The transaction of the batch that the calling thread is in; nil outside of one.
    var transaction: WriteTransaction? {
        guard let batch = batch.withLock({ $0 }), batch.thread === Thread.current else { return nil }
        return batch.transaction
    }

    /// Runs a closure in the batch of the calling thread, or in a transaction of its own.
    func write<T>(_ body: (WriteTransaction) throws -> T) throws -> T {
        try CBLError.converting {
            if let transaction { return try body(transaction) }
            return try engine.write(body)
        }
    }

    /// Reads in the batch of the calling thread, or outside of transactions.
    func read<T>(_ outside: () throws -> T, inBatch: (WriteTransaction) throws -> T) throws -> T {
        try CBLError.converting {
            if let transaction { return try inBatch(transaction) }
            return try outside()
        }
    }

    // MARK: Collections

    /// The object for a collection: the same one as long as somebody has it.
    func object(for collection: EngineCollection) -> Collection {
        known.withLock { known in
            if let object = known.entries[collection.handle]?.collection { return object }
            let scope = Scope(name: collection.handle.name.scope, database: self)
            let object = Collection(collection, in: scope)
            known.add(object)
            return object
        }
    }
}
