import LoveseatModel
import LoveseatStorage

/// Transactions: several reads as of one moment, and changes that are kept together or not at all.
extension Database {
    /// Runs a closure on a snapshot of the database, in which nothing changes, whatever others save meanwhile.
    ///
    /// ```swift
    /// let (order, customer) = try database.read { transaction in
    ///     let order = try transaction.document(id: "order-7", in: orders)
    ///     return (order, try transaction.document(id: order?["customer"]?.string ?? "", in: customers))
    /// }
    /// ```
    ///
    /// Up to four reads run at a time, beside writes; further ones wait. A long read keeps SQLite from shortening its log
    /// file, so do not keep one open for minutes.
    ///
    /// Blocks the thread; in async code there is a twin of the same name that does not.
    ///
    /// - Parameter body: Gets the transaction, which is of use only until it returns.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws; ``LoveseatError``: `notOpen`, `busy` if it could not begin within
    ///   ``DatabaseConfiguration/busyTimeout``, `transactionNotClosed` inside the closure of another transaction of this
    ///   database, an error of the disk.
    public func read<T>(_ body: (ReadTransaction) throws -> T) throws -> T {
        let opened = try opened
        return try Self.mappingStorageErrors {
            try opened.store.read(within: config.busyTimeout) { try perform(body, $0, opened) }
        }
    }

    /// Runs a closure on a snapshot of the database without blocking a thread of Swift's pool; see ``read(_:)-8zqyx``.
    ///
    /// The closure runs on one of the database's own threads, within the calling task. When the task is cancelled, the call of the
    /// transaction that runs is interrupted, and later ones do not begin: they throw, and then so does this function.
    ///
    /// - Throws: As ``read(_:)-8zqyx`` does, and `CancellationError` if the task is cancelled before the closure has read what it
    ///   reads. A closure that catches the errors of its calls, and returns or throws something else, decides for itself.
    public func read<T: Sendable>(_ body: @Sendable (ReadTransaction) throws -> T) async throws -> T {
        let opened = try opened
        do {
            return try await opened.store.readFromTask(within: config.busyTimeout) {
                try self.perform(body, $0, opened)
            }
        } catch { throw Self.mapped(error) }
    }

    /// Runs a closure in a transaction: all of its changes are kept when it returns, and none if it throws.
    ///
    /// ```swift
    /// try database.write { transaction in
    ///     try transaction.save(&from, in: accounts)
    ///     try transaction.save(&to, in: accounts)
    /// }
    /// ```
    ///
    /// Inside the closure the transaction sees its own changes. Everybody else sees them, and change feeds tell of them, once
    /// it has been committed. Functions that take part in it take it as a parameter. There is one write at a time; the others
    /// wait for their turn in the order in which they came. So keep closures short, and prepare before. Do not wait inside one for
    /// another thread's save: that save waits for this transaction, until it throws `busy`.
    ///
    /// A transaction of some hundred documents costs hardly more than one of a single document, so bulk work is much faster
    /// in transactions of about a thousand documents.
    ///
    /// Blocks the thread; in async code there is a twin of the same name that does not.
    ///
    /// - Parameter body: Gets the transaction, which is of use only until it returns.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws, and then nothing was changed, although documents that it saved have the revision IDs
    ///   that they would have got; ``LoveseatError``: `notOpen`, `busy` if it could not begin within
    ///   ``DatabaseConfiguration/busyTimeout``, `transactionNotClosed` inside the closure of another transaction of this
    ///   database, `notWriteable`, an error of the disk.
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
    /// The closure runs on one of the database's own threads, within the calling task.
    ///
    /// - Throws: As ``write(_:)-8w0u2`` does, and `CancellationError` if the task is cancelled before the closure begins; then
    ///   nothing was changed. What has begun is not interrupted; the closure may look at `Task.isCancelled`, and throw.
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
        _ opened: OpenDatabase
    ) throws -> T {
        let transaction = ReadTransaction(view, of: self, opened)
        defer { transaction.end() }
        return try body(transaction)
    }

    private func perform<T>(
        _ body: (WriteTransaction) throws -> T,
        _ edit: StoreWriteTransaction,
        _ opened: OpenDatabase
    ) throws -> (T, expiration: Int64?) {
        let transaction = WriteTransaction(edit, of: self, opened)
        defer { transaction.end() }
        return (try body(transaction), transaction.firstExpiration)
    }

    private static func mappingStorageErrors<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw mapped(error) }
    }

    /// The app's own errors stay what they are.
    private static func mapped(_ error: any Error) -> any Error {
        DocumentStore.isStorageError(error) ? LoveseatError(storage: error) : error
    }
}
