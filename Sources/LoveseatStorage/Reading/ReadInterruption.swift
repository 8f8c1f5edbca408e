import GRDB
private import GRDBSQLite
import LoveseatModel
private import Synchronization

/// Ends a read whose task is cancelled: the running statement is interrupted, and no other one begins.
///
/// SQLite interrupts whatever a connection runs, so the connection is known here only while the read owns it.
final class ReadInterruption: Sendable {
    private struct State: @unchecked Sendable {
        var connection: SQLiteConnection?
        var isInterrupted = false
    }

    private let state = Mutex(State())

    /// Records that the read owns the connection until ``end()``.
    func begin(_ connection: SQLiteConnection?) {
        nonisolated(unsafe) let connection = connection
        state.withLock { $0.connection = connection }
    }

    func end() { state.withLock { $0.connection = nil } }

    /// Called on any thread. The lock keeps the connection from being returned meanwhile.
    func interrupt() {
        state.withLock { state in
            state.isInterrupted = true
            if let connection = state.connection { sqlite3_interrupt(connection) }
        }
    }

    /// Throws as an interrupted statement does, if the read has to end.
    func check() throws(DatabaseError) {
        if state.withLock({ $0.isInterrupted }) {
            throw DatabaseError(resultCode: .SQLITE_INTERRUPT, message: "the task was cancelled")
        }
    }

    /// Whether an error came from ``interrupt()``, and not from the app's closure or the disk.
    func explains(_ error: any Error) -> Bool {
        guard state.withLock({ $0.isInterrupted }) else { return false }
        return (error as? DatabaseError)?.resultCode == .SQLITE_INTERRUPT
            || (error as? LoveseatError)?.code == .init(Int(SQLITE_INTERRUPT), domain: .sqlite)
    }
}
