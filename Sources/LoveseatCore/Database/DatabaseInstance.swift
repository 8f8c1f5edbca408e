private import Foundation
private import Logging
import LoveseatAssertions
import LoveseatModel
package import LoveseatStorage
private import Synchronization

/// One open database folder, shared by every ``Database`` of this process that names it.
package final class DatabaseInstance: Sendable {
    package let folder: String
    /// The number of the folder within the process: the same for all that have it open at the same time, and never used again.
    let number: UInt64
    /// Readers and writers of a folder share nothing.
    private let isReader: Bool
    /// Whether other ``Database`` objects may share it.
    private let isRegistered: Bool
    package let store: DocumentStore
    package let expiration: ExpirationTimer

    private init(folder: String, number: UInt64, isReader: Bool, store: DocumentStore) {
        self.folder = folder
        self.number = number
        self.isReader = isReader
        isRegistered = true
        self.store = store
        expiration = ExpirationTimer(store: store)
    }

    /// An instance over a store of the caller, who closes it. No other ``Database`` shares it.
    init(over store: DocumentStore) {
        folder = ""
        number = Self.nextNumber()
        isReader = false
        isRegistered = false
        self.store = store
        expiration = ExpirationTimer(store: store)
    }

    /// A folder that is open, or about to be, and by whom.
    private struct Folder {
        var number: UInt64 = 0
        var writer: Entry?
        var reader: Entry?
        /// It is being removed, and cannot be opened.
        var isBeingRemoved = false

        var holders: Int { (writer?.holders ?? 0) + (reader?.holders ?? 0) }
        var isUnused: Bool { writer == nil && reader == nil && !isBeingRemoved }

        subscript(isReader: Bool) -> Entry? {
            get { isReader ? reader : writer }
            set { if isReader { reader = newValue } else { writer = newValue } }
        }
    }

    private struct Entry {
        let database: DatabaseInstance
        var holders = 1
    }

    /// A folder with a lock: opening a database may take long, and other folders are not blocked meanwhile.
    private final class FolderSlot: Sendable { let folder = Mutex(Folder()) }

    private struct Registry {
        /// The slots that are open, or are being opened, closed or removed, with the number of threads that do so.
        var slots: [ExactText: (slot: FolderSlot, users: Int)] = [:]
        var lastNumber: UInt64 = 0
    }

    private static let registry = Mutex(Registry())

    /// Makes failed assertions go to the log, once any database is open.
    private static let logsFailedAssertions: Void = AssertionFailures.send {
        LogDomain.database.log(
            .critical,
            "assertionFailed: \($0): please report it, with what was done before"
        )
    }

    /// Opens a folder, or returns the instance that has it open.
    static func open(folder: String, options: DocumentStore.Options) throws(LoveseatError) -> DatabaseInstance
    {
        _ = logsFailedAssertions
        let path = canonical(folder)
        let database = try withFolder(path) { (folder) throws(LoveseatError) in
            if folder.isBeingRemoved { throw LoveseatError(.busy, "\(path) is being deleted: try again") }
            if let database = folder[options.isReadOnly]?.database {
                folder[options.isReadOnly]?.holders += 1
                return database
            }
            let store = try DocumentStore.open(folder: path, options: options)
            if folder.isUnused { folder.number = nextNumber() }
            let database = DatabaseInstance(
                folder: path,
                number: folder.number,
                isReader: options.isReadOnly,
                store: store
            )
            if !options.isReadOnly { database.expiration.checkNow() }
            folder[options.isReadOnly] = Entry(database: database)
            return database
        }
        // Outside the lock, because it waits for open transactions.
        do throws(LoveseatError) { try database.store.tighten(options) } catch {
            // The first error says more than an error of closing.
            try? database.leave()
            throw error
        }
        return database
    }

    /// Releases the instance; the last release closes it.
    func leave() throws(LoveseatError) {
        guard isRegistered else { return expiration.stop() }
        try Self.withFolder(folder) { (folder) throws(LoveseatError) in
            guard let entry = folder[isReader], entry.database === self else {
                return impossible("\(self.folder) was left more often than opened")
            }
            guard entry.holders == 1 else {
                folder[isReader]?.holders -= 1
                return
            }
            folder[isReader] = nil
            expiration.stop()
            try store.close()
        }
    }

    /// Marks a folder that is open nowhere else as being removed, so that it cannot be opened until ``endRemoval(_:)``.
    ///
    /// `holders`: how often it may be open in this process: 1 if the caller has it open, and closes it meanwhile.
    ///
    /// - Returns: The path for ``endRemoval(_:)``.
    /// - Throws: `busy` if others have it open.
    static func beginRemoval(_ folder: String, heldBy holders: Int) throws(LoveseatError) -> String {
        let path = canonical(folder)
        try withFolder(path) { (folder) throws(LoveseatError) in
            guard folder.holders == holders, !folder.isBeingRemoved else {
                throw LoveseatError(.busy, "\(path) is open elsewhere in this program: close it there first")
            }
            folder.isBeingRemoved = true
        }
        return path
    }

    static func endRemoval(_ path: String) { withFolder(path) { $0.isBeingRemoved = false } }

    /// Calls a closure with a folder, while no other thread does.
    private static func withFolder<T, Failure>(
        _ path: String,
        _ body: (inout Folder) throws(Failure) -> T
    ) throws(Failure) -> T {
        let key = ExactText(path)
        let slot = registry.withLock { registry in
            let (slot, users) = registry.slots[key] ?? (FolderSlot(), 0)
            registry.slots[key] = (slot, users + 1)
            return slot
        }
        defer {
            registry.withLock { registry in
                registry.slots[key]?.users -= 1
                if registry.slots[key]?.users == 0, slot.folder.withLock(\.isUnused) {
                    registry.slots[key] = nil
                }
            }
        }
        let result: Result<T, Failure> = slot.folder.withLock { folder in
            do throws(Failure) { return .success(try body(&folder)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Returns a number that is never used twice.
    private static func nextNumber() -> UInt64 {
        registry.withLock { registry in
            registry.lastNumber += 1
            return registry.lastNumber
        }
    }

    private static func canonical(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }
}
