import GRDB
import Synchronization

/// The connection for single rows. It may be opened when it is first used: it reads the schema once more, which takes long with many
/// collections.
final class RowsConnection: Sendable {
    private enum State {
        case unused(@Sendable () throws -> DatabaseQueue)
        case used(DatabaseQueue)
        case closed
    }

    private let state: Mutex<State>

    init(_ queue: DatabaseQueue) { state = Mutex(.used(queue)) }

    init(opening: @escaping @Sendable () throws -> DatabaseQueue) { state = Mutex(.unused(opening)) }

    /// The connection; nil if nothing has used it yet.
    var used: DatabaseQueue? { state.withLock { if case .used(let queue) = $0 { queue } else { nil } } }

    /// Returns the connection, and opens it for its first use.
    ///
    /// - Throws: An error of SQLite: that the connection is closed, or cannot be opened.
    func use() throws -> DatabaseQueue {
        try state.withLock { state in
            switch state {
            case .used(let queue): return queue
            case .unused(let open):
                let queue = try open()
                state = .used(queue)
                return queue
            case .closed: throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "Connection is closed")
            }
        }
    }

    func close() throws {
        let queue = state.withLock { state -> DatabaseQueue? in
            // A closed connection refuses everything by itself.
            if case .used(let queue) = state { return queue }
            state = .closed
            return nil
        }
        try queue?.close()
    }
}
