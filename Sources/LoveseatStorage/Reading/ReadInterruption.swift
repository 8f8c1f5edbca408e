import Dispatch
import GRDB
private import GRDBSQLite
import LoveseatAssertions
import LoveseatModel
private import Synchronization

/// Ends a transaction whose task is cancelled, or whose deadline passes: the running statement is interrupted, and no other one begins. It
/// has the connection's only progress handler, so it also reports the progress of statements.
///
/// SQLite interrupts whatever a connection runs, so the connection is known here only while the read owns it.
final class ReadInterruption: Sendable {
    enum Reason { case cancelled, tooLate }

    /// Called only on the thread that runs the statement.
    private struct Report: @unchecked Sendable { let send: () -> Void }

    private struct State: @unchecked Sendable {
        var connection: SQLiteConnection?
        var reason: Reason?
        var report: Report?
    }

    /// After how many instructions of a statement SQLite calls the progress handler.
    private static let instructions: Int32 = 10_000

    private let state = Mutex(State())

    /// Records that the read owns the connection until ``end()``.
    func begin(_ connection: SQLiteConnection?) {
        nonisolated(unsafe) let connection = connection
        state.withLock { $0.connection = connection }
        guard let connection else { return impossible("a transaction runs on a connection that is closed") }
        // SQLite forgets an interrupt that comes just before a statement begins, so the statement asks, too.
        sqlite3_progress_handler(
            connection,
            Self.instructions,
            { context in
                guard let context else { return 0 }
                return Unmanaged<ReadInterruption>.fromOpaque(context).takeUnretainedValue().progress()
                    ? 0 : 1
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    func end() {
        state.withLock { state in
            if let connection = state.connection { sqlite3_progress_handler(connection, 0, nil, nil) }
            state.connection = nil
        }
    }

    /// Calls a closure now and then while the statements of `body` run.
    func reporting<T>(_ send: @escaping () -> Void, _ body: () throws -> T) rethrows -> T {
        let report = Report(send: send)
        state.withLock { $0.report = report }
        defer { state.withLock { $0.report = nil } }
        return try body()
    }

    /// Reports, and returns whether the statement goes on.
    private func progress() -> Bool {
        state.withLock { $0.report }?.send()
        return !hasReason
    }

    private var hasReason: Bool { state.withLock { $0.reason != nil } }

    /// Called on any thread. The lock keeps the connection from being returned meanwhile.
    func interrupt(_ reason: Reason = .cancelled) {
        state.withLock { state in
            if state.reason == nil { state.reason = reason }
            if let connection = state.connection { sqlite3_interrupt(connection) }
        }
    }

    /// Throws as an interrupted statement does, if the read has to end.
    func check() throws(DatabaseError) {
        if hasReason {
            throw DatabaseError(resultCode: .SQLITE_INTERRUPT, message: "the task was cancelled")
        }
    }

    /// Whether an error came from ``interrupt()``, and not from the app's closure or the disk.
    func explains(_ error: any Error) -> Bool {
        guard hasReason else { return false }
        return (error as? DatabaseError)?.resultCode == .SQLITE_INTERRUPT
            || (error as? LoveseatError)?.code == .init(Int(SQLITE_INTERRUPT), domain: .sqlite)
    }

    /// The error that a caller gets for the interruption.
    var error: any Error {
        guard state.withLock({ $0.reason == .tooLate }) else { return CancellationError() }
        return LoveseatError(
            .timeout,
            "the query took longer than its deadline: create an index, ask for less, or allow more time"
        )
    }

    /// Interrupts when a time has passed.
    func interrupt(after time: Duration) {
        DispatchQueue.deadlines.asyncAfter(deadline: .now() + time.dispatchInterval) { [weak self] in
            self?.interrupt(.tooLate)
        }
    }
}
