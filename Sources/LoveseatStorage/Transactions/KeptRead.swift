import GRDB
import Synchronization

/// The read transaction that the connection for single rows keeps while there is no write: otherwise a row would cost two locks of the
/// file.
///
/// A write ends it before it begins, because a snapshot that stays would keep the write-ahead log from being emptied. Nothing can change
/// in between, since this process is the only one that writes.
final class KeptRead: Sendable {
    private let rows: RowsConnection
    private let isOpen = Atomic<Bool>(false)
    private let writers = Atomic<Int>(0)
    private let isAllowed: Bool

    /// `isOnlyWriter`: whether no other process and no other connection of `rows` writes.
    init(_ rows: RowsConnection, isOnlyWriter: Bool) {
        self.rows = rows
        #if canImport(Darwin)
        // A suspended app that has a file of its group locked is killed.
        isAllowed = false
        #else
        isAllowed = isOnlyWriter
        #endif
    }

    /// Begins the transaction if there is no write. Called on the connection's queue.
    func begin(_ db: Database) throws {
        if !isAllowed || isOpen.load(ordering: .relaxed) { return }
        // A write that begins from here on finds it open, and waits until the connection's queue has ended it.
        isOpen.store(true, ordering: .sequentiallyConsistent)
        guard writers.load(ordering: .sequentiallyConsistent) == 0 else {
            return isOpen.store(false, ordering: .relaxed)
        }
        do { try RawStatement("BEGIN DEFERRED", in: db).run() } catch {
            isOpen.store(false, ordering: .relaxed)
            throw error
        }
    }

    /// Ends the transaction, if it is open. Called on the connection's queue.
    func end(_ db: Database) {
        if !isOpen.load(ordering: .relaxed) { return }
        // After an error of the disk SQLite may have ended the transaction itself.
        _ = try? RawStatement("ROLLBACK", in: db).run()
        isOpen.store(false, ordering: .relaxed)
    }

    /// Runs a closure that writes, without the transaction.
    func suspended<T>(_ body: () throws -> T) throws -> T {
        guard isAllowed else { return try body() }
        writers.add(1, ordering: .sequentiallyConsistent)
        defer { writers.subtract(1, ordering: .sequentiallyConsistent) }
        if isOpen.load(ordering: .sequentiallyConsistent) { rows.used?.unsafeReentrantRead { end($0) } }
        return try body()
    }
}
