private import Foundation
import LoveseatModel
package import LoveseatStorage
private import Synchronization

/// One open database folder, shared by every ``Database`` of this process that names it.
package final class DatabaseInstance: Sendable {
    package let folder: String
    /// The number of the folder within the process: the same for all that have it open at the same time, and never used again.
    let number: UInt64
    /// The key of the instance in this process: readers and writers of a folder share nothing.
    private let key: String
    package let store: DocumentStore
    package let expiration: ExpirationTimer

    private init(folder: String, number: UInt64, key: String, store: DocumentStore) {
        self.folder = folder
        self.number = number
        self.key = key
        self.store = store
        expiration = ExpirationTimer(store: store)
    }

    private struct Entry {
        let database: DatabaseInstance
        var holders: Int
    }

    private struct Registry {
        var entries: [ExactText: Entry] = [:]
        /// Folders that are being removed, and cannot be opened.
        var removals: Set<ExactText> = []
        private var lastNumber: UInt64 = 0

        /// The number of a folder that is about to be opened.
        mutating func number(_ path: String) -> UInt64 {
            let open = entries[ExactText(path)] ?? entries[ExactText(DatabaseInstance.readerKey(path))]
            if let open { return open.database.number }
            lastNumber += 1
            return lastNumber
        }

        /// How often a folder is open, readers included.
        func holders(_ path: String) -> Int {
            [path, DatabaseInstance.readerKey(path)].reduce(0) { $0 + (entries[ExactText($1)]?.holders ?? 0) }
        }
    }

    private static let registry = Mutex(Registry())

    /// Opens a folder, or returns the instance that has it open.
    static func open(folder: String, options: DocumentStore.Options) throws(LoveseatError) -> DatabaseInstance
    {
        let path = canonical(folder)
        let key = options.isReadOnly ? readerKey(path) : path
        let result: Result<DatabaseInstance, LoveseatError> = registry.withLock { registry in
            if registry.removals.contains(ExactText(path)) {
                return .failure(LoveseatError(.busy, "\(path) is being deleted: try again"))
            }
            if let entry = registry.entries[ExactText(key)] {
                registry.entries[ExactText(key)]?.holders += 1
                return .success(entry.database)
            }
            do throws(LoveseatError) {
                let store = try DocumentStore.open(folder: path, options: options)
                let number = registry.number(path)
                let database = DatabaseInstance(folder: path, number: number, key: key, store: store)
                if !options.isReadOnly { database.expiration.checkNow() }
                registry.entries[ExactText(key)] = Entry(database: database, holders: 1)
                return .success(database)
            } catch { return .failure(error) }
        }
        let database = try result.get()
        // Outside the lock, because it waits for open transactions.
        do throws(LoveseatError) { try database.store.tighten(options) } catch {
            try? database.leave()
            throw error
        }
        return database
    }

    /// Releases the instance; the last release closes it.
    func leave() throws(LoveseatError) {
        let result: Result<Void, LoveseatError> = Self.registry.withLock { registry in
            guard var entry = registry.entries[ExactText(key)], entry.database === self else {
                return .success(())
            }
            entry.holders -= 1
            guard entry.holders == 0 else {
                registry.entries[ExactText(key)] = entry
                return .success(())
            }
            registry.entries[ExactText(key)] = nil
            expiration.stop()
            do throws(LoveseatError) { return .success(try store.close()) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Marks a folder that is open nowhere else as being removed, so that it cannot be opened until ``endRemoval(_:)``.
    ///
    /// `holders`: how often it may be open in this process: 1 if the caller has it open, and closes it meanwhile.
    ///
    /// - Returns: The path for ``endRemoval(_:)``.
    /// - Throws: `busy` if others have it open.
    static func beginRemoval(_ folder: String, heldBy holders: Int) throws(LoveseatError) -> String {
        let path = canonical(folder)
        let isSole = registry.withLock { registry in
            registry.holders(path) == holders && registry.removals.insert(ExactText(path)).inserted
        }
        guard isSole else {
            throw LoveseatError(.busy, "\(path) is open elsewhere in this program: close it there first")
        }
        return path
    }

    static func endRemoval(_ path: String) { registry.withLock { _ = $0.removals.remove(ExactText(path)) } }

    private static func readerKey(_ path: String) -> String { "\(path) (reading)" }

    private static func canonical(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }
}
