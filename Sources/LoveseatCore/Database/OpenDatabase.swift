private import Foundation
import LoveseatModel
package import LoveseatStorage
private import Synchronization

/// One open database folder, shared by every ``Database`` of this process that names it.
package final class OpenDatabase: Sendable {
    package let folder: String
    /// What it is known by in this process: readers and writers of a folder share nothing.
    private let key: String
    package let store: DocumentStore
    package let expiration: ExpirationTimer

    private init(folder: String, key: String, store: DocumentStore) {
        self.folder = folder
        self.key = key
        self.store = store
        expiration = ExpirationTimer(store: store)
    }

    private struct Entry {
        let database: OpenDatabase
        var holders: Int
    }

    private static let entries = Mutex<[String: Entry]>([:])

    /// Opens a folder, or joins those who have it open.
    static func open(folder: String, options: DocumentStore.Options) throws(LoveseatError) -> OpenDatabase {
        let path = canonical(folder)
        let key = options.isReadOnly ? "\(path) (reading)" : path
        let result: Result<OpenDatabase, LoveseatError> = entries.withLock { entries in
            if let entry = entries[key] {
                entries[key]?.holders += 1
                return .success(entry.database)
            }
            do throws(LoveseatError) {
                let store = try DocumentStore.open(folder: path, options: options)
                let database = OpenDatabase(folder: path, key: key, store: store)
                if !options.isReadOnly { database.expiration.look() }
                entries[key] = Entry(database: database, holders: 1)
                return .success(database)
            } catch { return .failure(error) }
        }
        let database = try result.get()
        // Outside the lock: a transaction under way elsewhere is waited for.
        do throws(LoveseatError) { try database.store.tighten(options) } catch {
            try? database.leave()
            throw error
        }
        return database
    }

    /// Leaves the folder; the last one closes it.
    func leave() throws(LoveseatError) {
        let result: Result<Void, LoveseatError> = Self.entries.withLock { entries in
            guard var entry = entries[key], entry.database === self else { return .success(()) }
            entry.holders -= 1
            guard entry.holders == 0 else {
                entries[key] = entry
                return .success(())
            }
            entries[key] = nil
            expiration.stop()
            do throws(LoveseatError) { return .success(try store.close()) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// How many in this process have a folder open.
    static func holders(ofFolder folder: String) -> Int {
        entries.withLock { $0[canonical(folder)]?.holders ?? 0 }
    }

    private static func canonical(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }
}
