import Dispatch
import GRDB
private import GRDBSQLite
package import LoveseatModel
private import Synchronization

/// How calls are refused that are nested, or that would wait too long.
extension DocumentStore {
    // MARK: Refusing to nest

    /// Whether the caller is inside a transaction's closure, on its thread.
    package var isInTransaction: Bool {
        // Queues are looked up only while there are transactions, so that reading a row costs an atomic load.
        transactionsOpen.load(ordering: .relaxed) > 0
            && DispatchQueue.getSpecific(key: Self.queueKey) == ObjectIdentifier(changes)
    }

    /// Throws `transactionNotClosed` inside a transaction's closure, where the caller would wait for itself.
    ///
    /// `call`: the called function, for the message.
    package func requireNoTransaction(_ call: String = #function) throws(LoveseatError) {
        if isInTransaction { throw isNested(call) }
    }

    /// Finds nested calls that ``isInTransaction`` does not: through another database, or in memory.
    func requireOutside(_ db: Database, _ call: String) throws {
        guard let connection = db.sqliteConnection else {
            throw LoveseatError(.notOpen, "database \"\(name)\" is closed")
        }
        if sqlite3_get_autocommit(connection) != 0 { return }
        guard let failure = failedRollback.withLock({ $0 }) else { throw isNested(call) }
        let cause = LoveseatError(storage: failure)
        throw LoveseatError(
            cause.code,
            "the last transaction of database \"\(name)\" cannot be rolled back, so nothing more can be written: close the database and open it again (\(cause.message))"
        )
    }

    private func isNested(_ call: String) -> LoveseatError {
        LoveseatError(
            .transactionNotClosed,
            "`\(Self.named(call))` was called inside a transaction of database \"\(name)\": use that transaction, or call it after the transaction has ended"
        )
    }

    // MARK: Waiting too long

    static let ownTransactions =
        "other transactions of this program lasted longer than the call waits: try again, or keep transactions short"
    private static let otherProgram =
        "another program has the file db.sqlite locked for longer than the call waits: try again, or end that program"

    /// Runs a step that waits for others, and adds the reason to the message of `busy`.
    func waiting<T>(_ call: String, _ body: () throws -> T) throws -> T {
        do { return try body() } catch is AccessGate.TimedOut {
            throw isBusy(call, with: Self.ownTransactions)
        } catch let error as DatabaseError where [.SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode) {
            throw isBusy(call, with: Self.otherProgram)
        }
    }

    func isBusy(_ call: String, with reason: String) -> LoveseatError {
        LoveseatError(.busy, "database \"\(name)\" is too busy for `\(Self.named(call))`: \(reason)")
    }

    /// A function's name without its parameters.
    private static func named(_ call: String) -> Substring { call.prefix { $0 != "(" } }

    static let queueKey = DispatchSpecificKey<ObjectIdentifier>()

    /// The queue on which GRDB runs transactions, by which their closures are recognised.
    static func markedQueue(_ changes: ChangeHub) -> DispatchQueue {
        let queue = DispatchQueue(label: "loveseat.transactions", attributes: .concurrent)
        queue.setSpecific(key: queueKey, value: ObjectIdentifier(changes))
        return queue
    }
}
