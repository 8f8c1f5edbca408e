import LoveseatModel
import LoveseatStorage

/// Transactions: several reads as of one moment, and changes that are stored together or not at all.
extension Database {
    /// Runs a closure on a snapshot of the database, which stays the same while others save.
    ///
    /// ```swift
    /// let (order, customer) = try database.read { transaction in
    ///     let order = try transaction.document(id: "order-7", in: orders)
    ///     return (order, try transaction.document(id: order?["customer"]?.string ?? "", in: customers))
    /// }
    /// ```
    ///
    /// Up to four reads run at a time, beside a write; further reads wait. SQLite's log file grows while a read is in progress, so do
    /// not keep one open for minutes.
    ///
    /// This call blocks the thread. In async code, ``read(_:)-1eek`` takes its place.
    ///
    /// - Parameter body: Runs on the calling thread. The transaction can be used only until the closure returns.
    /// - Returns: The closure's result.
    /// - Throws: The error that the closure throws; ``LoveseatError``: `notOpen`, `busy` if the transaction could not begin within
    ///   ``DatabaseConfiguration/busyTimeout``, `transactionNotClosed` inside the closure of another transaction of this database, an error
    ///   of the disk.
    public func read<T>(_ body: (ReadTransaction) throws -> T) throws -> T {
        let opened = try opened
        return try Self.mappingStorageErrors {
            try opened.store.read(within: config.busyTimeout) { try perform(body, $0, opened) }
        }
    }

    /// Runs a closure on a snapshot of the database without blocking a thread of Swift's pool; see ``read(_:)-8zqyx``.
    ///
    /// - Parameter body: Runs on one of the database's own threads, within the calling task. The transaction can be used only until the
    ///   closure returns.
    /// - Returns: The closure's result.
    /// - Throws: As ``read(_:)-8zqyx``, and `CancellationError` if the task is cancelled before the closure has finished reading. The call
    ///   of the transaction that runs at that moment is interrupted, and later calls throw. A closure that catches these errors decides for
    ///   itself what to return or throw.
    public func read<T: Sendable>(_ body: @Sendable (ReadTransaction) throws -> T) async throws -> T {
        let opened = try opened
        do {
            return try await opened.store.readFromTask(within: config.busyTimeout) {
                try self.perform(body, $0, opened)
            }
        } catch { throw Self.mapped(error) }
    }

    /// Runs a closure in a transaction. All of its changes are stored when it returns, and none if it throws.
    ///
    /// ```swift
    /// try database.write { transaction in
    ///     try transaction.save(&from, in: accounts)
    ///     try transaction.save(&to, in: accounts)
    /// }
    /// ```
    ///
    /// Inside the closure, the transaction reads its own changes. They become visible outside, and change feeds report them, when the
    /// transaction is committed. A function that takes part in the transaction takes it as a parameter. One write runs at a time;
    /// others wait in the order in which they came. Keep closures short, and do not wait inside one for another thread's save: that
    /// save waits for this transaction, until it throws `busy`.
    ///
    /// A transaction of some hundred documents takes hardly longer than one of a single document, so bulk work is fastest in
    /// transactions of about a thousand documents.
    ///
    /// This call blocks the thread. In async code, ``write(_:)-k9lk`` takes its place.
    ///
    /// - Parameter body: Runs on the calling thread. The transaction can be used only until the closure returns.
    /// - Returns: The closure's result.
    /// - Throws: The error that the closure throws; then nothing was stored, although documents that the closure saved carry the revision
    ///   IDs that they would have got. ``LoveseatError``: `notOpen`, `busy` if the transaction could not begin within
    ///   ``DatabaseConfiguration/busyTimeout``, `transactionNotClosed` inside the closure of another transaction of this database,
    ///   `notWriteable`, an error of the disk.
    @discardableResult
    public func write<T>(_ body: (WriteTransaction) throws -> T) throws -> T {
        let opened = try opened
        return try Self.mappingStorageErrors {
            let (result, expiration) = try opened.store.write(within: config.busyTimeout) {
                try perform(body, $0, opened)
            }
            if let expiration { opened.expiration.expires(at: expiration) }
            return result
        }
    }

    /// Runs a closure in a transaction without blocking a thread of Swift's pool; see ``write(_:)-8w0u2``.
    ///
    /// - Parameter body: Runs on one of the database's own threads, within the calling task. The transaction can be used only until the
    ///   closure returns.
    /// - Returns: The closure's result.
    /// - Throws: As ``write(_:)-8w0u2``, and `CancellationError` if the task is cancelled before the closure begins; then nothing was
    ///   changed. A closure that has begun is not interrupted; it may check `Task.isCancelled`, and throw.
    @discardableResult
    public func write<T: Sendable>(_ body: @Sendable (WriteTransaction) throws -> T) async throws -> T {
        let opened = try opened
        do {
            let (result, expiration) = try await opened.store.writeFromTask(within: config.busyTimeout) {
                try self.perform(body, $0, opened)
            }
            if let expiration { opened.expiration.expires(at: expiration) }
            return result
        } catch { throw Self.mapped(error) }
    }

    private func perform<T>(
        _ body: (ReadTransaction) throws -> T,
        _ view: StoreReadTransaction,
        _ opened: DatabaseInstance
    ) throws -> T {
        let transaction = ReadTransaction(view, of: self, opened)
        defer { transaction.end() }
        return try body(transaction)
    }

    private func perform<T>(
        _ body: (WriteTransaction) throws -> T,
        _ edit: StoreWriteTransaction,
        _ opened: DatabaseInstance
    ) throws -> (T, expiration: Int64?) {
        let transaction = WriteTransaction(edit, of: self, opened)
        defer { transaction.end() }
        return (try body(transaction), transaction.firstExpiration)
    }

    private static func mappingStorageErrors<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw mapped(error) }
    }

    /// The app's own errors are not converted.
    static func mapped(_ error: any Error) -> any Error {
        DocumentStore.isStorageError(error) ? LoveseatError(storage: error) : error
    }
}
