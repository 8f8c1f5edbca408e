import GRDB
private import GRDBSQLite
package import LoveseatModel
private import Synchronization

/// Transactions are passed to the closures that use them, and are not found by thread (docs/decisions/0007).
///
/// Callers wait for their transaction at an ``AccessGate``, and never in GRDB, whose queues have no deadlines. Calls from
/// inside a transaction's closure are recognised by the dispatch queue that GRDB runs it on, only to refuse them.
extension DocumentStore {
    // MARK: Writing

    /// Runs a closure in a transaction that commits when it returns and leaves no trace when it throws.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for other transactions of this process. Nil waits as long as they take, and is for our own
    ///     work.
    ///   - call: The name of the called function, for messages.
    ///   - durably: Whether this commit, and all before it, reach the disk before the call returns, without `fullSync` too.
    ///   - body: Gets the transaction.
    /// - Returns: The closure's result.
    /// - Throws: The error that the closure throws; `busy`; `transactionNotClosed` inside another transaction's closure.
    package func write<T>(
        within timeout: Duration? = nil,
        call: String = #function,
        durably: Bool = false,
        _ body: (StoreWriteTransaction) throws -> T
    ) throws -> T {
        try requireNoTransaction(call)
        let timeLeft = try waiting(call) { try gates.write.enter(within: timeout) }
        defer { gates.write.leave() }
        return try performWrite(timeLeft, call, durably: durably, body)
    }

    /// Runs a closure in a write transaction on one of the store's own threads, for tasks.
    ///
    /// - Throws: As ``write(within:_:)`` does, and `CancellationError` if the task is cancelled before the closure runs, and also while
    ///   it runs if it `isInterruptible`.
    package func writeFromTask<T: Sendable>(
        within timeout: Duration?,
        call: String = #function,
        durably: Bool = false,
        isInterruptible: Bool = false,
        _ body: @Sendable (StoreWriteTransaction) throws -> T
    ) async throws -> T {
        if options.runsTasksInPlace {
            try Task.checkCancellation()
            return try write(within: timeout, call: call, durably: durably, body)
        }
        let interruption = isInterruptible ? ReadInterruption() : nil
        @Sendable func interruptible(_ transaction: StoreWriteTransaction) throws -> T {
            guard let interruption else { return try body(transaction) }
            transaction.interruption = interruption
            interruption.begin(transaction.database.sqliteConnection)
            defer { interruption.end() }
            do { return try body(transaction) } catch {
                if interruption.explains(error) { throw interruption.error }
                throw error
            }
        }
        @Sendable func perform(_ timeLeft: Duration?) throws -> T {
            defer { gates.write.leave() }
            try Task.checkCancellation()
            return try performWrite(timeLeft, call, durably: durably, interruptible)
        }
        return try await inTurn(
            at: gates.write,
            within: timeout,
            call,
            interruption,
            on: { self.gates.writeLane }
        ) { _, timeLeft in
            try perform(timeLeft)
        }
    }

    /// Runs a closure on a lane behind a gate, which it leaves.
    ///
    /// - Throws: The error that the closure throws; `busy`; `CancellationError`.
    private func inTurn<T: Sendable>(
        at gate: AccessGate,
        within timeout: Duration?,
        _ call: String,
        _ interruption: ReadInterruption?,
        on lane: @escaping @Sendable () -> TransactionLane,
        _ body: @Sendable (TransactionLane, Duration?) throws -> T
    ) async throws -> T {
        if gate.tryEnter() {
            let lane = lane()
            guard let interruption else { return try await lane.run { try body(lane, timeout) } }
            return try await withTaskCancellationHandler {
                try await lane.run { try body(lane, timeout) }
            } onCancel: {
                interruption.interrupt()
            }
        }
        let turn = Turn(at: gate, within: timeout, then: lane)
        return try await withTaskCancellationHandler {
            do { return try await turn.run(body) } catch is AccessGate.TimedOut {
                throw isBusy(call, with: Self.ownTransactions)
            }
        } onCancel: {
            turn.cancel()
            interruption?.interrupt()
        }
    }

    private func performWrite<T>(
        _ timeLeft: Duration?,
        _ call: String,
        durably: Bool = false,
        _ body: (StoreWriteTransaction) throws -> T
    ) throws -> T {
        try requireWriteable()
        return try onWriter(call) { db in
            // Another process may have the file locked for the rest of the timeout.
            sqlite3_busy_timeout(db.sqliteConnection, (timeLeft ?? options.busyTimeout).milliseconds)
            var catalog = catalog.withLock { $0 }
            // Only versions need the time.
            let wall = catalog.versions.map { _ in options.system.nanoseconds() }
            try waiting(call) {
                try catalog.extendReserves(wall: wall, boot: options.system.bootID, isFullSync, in: db)
            }
            let transaction = StoreWriteTransaction(
                database: db,
                blobs: blobs,
                catalog: catalog,
                options: options,
                retention: retention,
                wall: wall,
                isFullSync: isFullSync
            )
            let asksForSync = durably && !isFullSync
            if asksForSync { try db.execute(sql: "PRAGMA synchronous = FULL") }
            // If this fails, commits go on to reach the disk, which only takes longer.
            defer { if asksForSync { try? db.execute(sql: "PRAGMA synchronous = NORMAL") } }
            _ = try waiting(call) { try RawStatement("BEGIN IMMEDIATE", in: db).run() }
            do {
                let result = try body(transaction)
                try transaction.finish()
                if transaction.hasWithdrawnMarks {
                    // No other thread may see the new rows with the old marks. New marks with old rows do no harm.
                    try self.catalog.withLock {
                        try RawStatement("COMMIT", in: db).run()
                        $0 = transaction.catalog
                    }
                } else {
                    try RawStatement("COMMIT", in: db).run()
                    self.catalog.withLock { $0 = transaction.catalog }
                }
                blobs.md5s.noteWritten(transaction.md5s)
                if durably { durableWrites.add(1, ordering: .relaxed) }
                transaction.newSourceReasons.forEach(options.system.onNewSource)
                changes.publish(transaction.commits)
                return result
            } catch {
                rollBack(db)
                self.catalog.withLock {
                    $0.reserved = catalog.reserved
                    if let limit = catalog.versions?.limit { $0.versions?.limit = limit }
                }
                throw Self.explained(error)
            }
        }
    }

    /// Runs SQL that no transaction may surround, on the writer.
    ///
    /// - Throws: `transactionNotClosed` inside a transaction's closure; `notWriteable` if the database is open for reading only.
    func maintain<T>(call: String = #function, _ body: (Database) throws -> T) throws -> T {
        try requireNoTransaction(call)
        try requireWriteable()
        _ = try waiting(call) { try gates.write.enter(within: nil) }
        defer { gates.write.leave() }
        return try onWriter(call) { db in
            // The transaction before may have had less time.
            sqlite3_busy_timeout(db.sqliteConnection, options.busyTimeout.milliseconds)
            let result = try body(db)
            let version = try CollectionTable.schemaVersion(db)
            catalog.withLock { $0.schemaVersion = version }
            return result
        }
    }

    /// The gate admits one at a time, so that GRDB's queue neither blocks nor is entered twice.
    private func onWriter<T>(_ call: String, _ body: (Database) throws -> T) throws -> T {
        try sqlite.keptRead.suspended {
            try sqlite.writer.writeWithoutTransaction { db in
                // The caller has the gate: a transaction that is open now was left by another call.
                if failedRollback.withLock({ $0 != nil }) { rollBack(db) }
                try requireOutside(db, call)
                transactionsOpen.add(1, ordering: .relaxed)
                defer { transactionsOpen.subtract(1, ordering: .relaxed) }
                return try body(db)
            }
        }
    }

    /// Rolls back the open transaction. If that fails, the next call that writes tries again.
    private func rollBack(_ db: Database) {
        var failure: (any Error)?
        if db.isInsideTransaction {
            do {
                try options.beforeRollback()
                try RawStatement("ROLLBACK", in: db).run()
            } catch { failure = error }
        }
        failedRollback.withLock { $0 = failure }
    }

    // MARK: Reading

    /// Runs a closure on a snapshot of the database, with the collections that it holds.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for other reads of this process. Nil waits as long as they take, and is for our own work.
    ///   - deadline: How long the closure may take before its reads are interrupted; nil without a limit.
    ///   - call: The name of the called function, for messages.
    ///   - body: Gets the snapshot.
    /// - Returns: The closure's result.
    /// - Throws: The error that the closure throws; `busy`; `transactionNotClosed` inside another transaction's closure.
    package func read<T>(
        within timeout: Duration? = nil,
        deadline: Duration? = nil,
        call: String = #function,
        _ body: (StoreReadTransaction) throws -> T
    ) throws -> T {
        try requireNoTransaction(call)
        _ = try waiting(call) { try gates.read.enter(within: timeout) }
        defer { gates.read.leave() }
        let interruption = deadline.map { _ in ReadInterruption() }
        if let deadline { interruption?.interrupt(after: deadline) }
        return try performRead(call, interruption, body)
    }

    /// Runs a closure on a snapshot, on one of the store's own threads, for tasks.
    ///
    /// - Throws: As ``read(within:call:_:)`` does, and `CancellationError` if the task is cancelled before the closure ends, and the
    ///   closure does not throw something else.
    package func readFromTask<T: Sendable>(
        within timeout: Duration?,
        deadline: Duration? = nil,
        call: String = #function,
        _ body: @Sendable (StoreReadTransaction) throws -> T
    ) async throws -> T {
        if options.runsTasksInPlace {
            try Task.checkCancellation()
            return try read(within: timeout, deadline: deadline, call: call, body)
        }
        let interruption = ReadInterruption()
        @Sendable func perform(on lane: TransactionLane) throws -> T {
            defer {
                gates.giveBack(lane)
                gates.read.leave()
            }
            try Task.checkCancellation()
            if let deadline { interruption.interrupt(after: deadline) }
            return try performRead(call, interruption, body)
        }
        return try await inTurn(
            at: gates.read,
            within: timeout,
            call,
            interruption,
            on: { self.gates.freeLane() }
        ) { lane, _ in
            try perform(on: lane)
        }
    }

    private func performRead<T>(
        _ call: String,
        _ interruption: ReadInterruption?,
        _ body: (StoreReadTransaction) throws -> T
    ) throws -> T {
        try sqlite.snapshots.unsafeReentrantRead { db in
            try requireOutside(db, call)
            transactionsOpen.add(1, ordering: .relaxed)
            defer { transactionsOpen.subtract(1, ordering: .relaxed) }
            try RawStatement("BEGIN DEFERRED", in: db).run()
            // Nothing was written, so nothing has to be kept.
            defer { _ = try? RawStatement("ROLLBACK", in: db).run() }
            // The connection is used by another caller afterwards, which must not be interrupted.
            interruption?.begin(db.sqliteConnection)
            defer { interruption?.end() }
            do {
                let view = StoreReadTransaction(database: db, catalog: try catalogSeen(by: db))
                view.interruption = interruption
                return try body(view)
            } catch {
                if let interruption, interruption.explains(error) { throw interruption.error }
                throw Self.explained(error)
            }
        }
    }

    /// The error of a transaction in a collection that was deleted since it was looked up.
    private static func explained(_ error: any Error) -> any Error {
        guard let failure = error as? DatabaseError, failure.resultCode == .SQLITE_ERROR,
            failure.message?.hasPrefix("no such table: ") == true
        else { return error }
        return LoveseatError(.notOpen, "the collection was deleted")
    }

    private static func explaining<T>(_ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw explained(error) }
    }

    /// Returns the collections of a snapshot. This is the first statement of a transaction, so it creates the snapshot.
    private func catalogSeen(by db: Database) throws -> StoreCatalog {
        let version = try CollectionTable.schemaVersion(db)
        let latest = catalog.withLock { $0 }
        if latest.schemaVersion == version {
            guard options.isReadOnly else { return latest }
            // Another process may push.
            var latest = latest
            latest.marks = try MarkTable.load(db)
            return latest
        }
        // A collection was created or deleted since, perhaps by another process.
        let loaded = try CollectionTable.load(db)
        if lock == nil { catalog.withLock { $0 = loaded } }
        return loaded
    }

    /// Reads a few rows, each as of now, on the kept connection: a separate read transaction would cost more than the reads.
    ///
    /// The app's code never runs in the closure.
    package func readRows<T>(_ body: (StoreReadTransaction) throws -> T) throws -> T {
        try sqlite.rows.use().unsafeReentrantRead { db in
            try sqlite.keptRead.begin(db)
            let view = StoreReadTransaction(database: db, catalog: catalog.withLock { $0 })
            return try Self.explaining { try body(view) }
        }
    }

    /// Reads a few rows of the tables that all collections share, as ``readRows(_:)`` does. The connection for single rows is not opened for
    /// them while nobody uses the one that writes.
    package func readSettings<T>(_ body: (StoreReadTransaction) throws -> T) throws -> T {
        guard sqlite.rows.used == nil, gates.write.tryEnter() else { return try readRows(body) }
        defer { gates.write.leave() }
        let isIdle = failedRollback.withLock { $0 == nil }
        guard isIdle else { return try readRows(body) }
        return try sqlite.writer.unsafeReentrantWrite { db in
            let view = StoreReadTransaction(database: db, catalog: catalog.withLock { $0 })
            return try Self.explaining { try body(view) }
        }
    }

    /// Reads many rows as ``readRows(_:)`` does, all as of now: the file is locked once instead of for each row.
    package func readManyRows<T>(_ body: (StoreReadTransaction) throws -> T) throws -> T {
        try sqlite.rows.use().unsafeReentrantRead { db in
            // A write would wait for the end of the kept transaction, and this may take longer.
            sqlite.keptRead.end(db)
            let view = StoreReadTransaction(database: db, catalog: catalog.withLock { $0 })
            // In memory, the one connection may have a transaction already.
            guard let connection = db.sqliteConnection, sqlite3_get_autocommit(connection) != 0 else {
                return try body(view)
            }
            try RawStatement("BEGIN DEFERRED", in: db).run()
            // Nothing was written. After an error of the disk SQLite may have ended the transaction itself.
            defer { _ = try? RawStatement("ROLLBACK", in: db).run() }
            return try Self.explaining { try body(view) }
        }
    }

    // MARK: Refusing to write

    /// Throws `notWriteable` if the database is open for reading only.
    package func requireWriteable() throws(LoveseatError) {
        if options.isReadOnly { throw .isReadOnly(name) }
    }
}

extension Duration {
    var milliseconds: Int32 {
        let (seconds, attoseconds) = max(.zero, min(self, .seconds(2_000_000))).components
        return Int32(seconds) * 1_000 + Int32(attoseconds / 1_000_000_000_000_000)
    }
}
