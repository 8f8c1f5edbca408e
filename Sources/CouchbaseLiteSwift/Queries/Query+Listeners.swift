public import Dispatch
import LoveseatCore
import Synchronization

/// A result of an observed query.
public struct QueryChange {
    /// The query.
    public let query: Query
    /// The rows as of one moment; nil if the query failed.
    public let results: ResultSet?
    /// Why the query failed; nil if it did not.
    public let error: (any Error)?
}

/// Listeners, which observe until their tokens are removed, or the database is closed. Until then they keep the query and its database.
extension Query {
    /// Calls a closure on the main queue with the rows as they are, and again when they have changed.
    @discardableResult
    public func addChangeListener(_ listener: @escaping (QueryChange) -> Void) -> ListenerToken {
        addChangeListener(withQueue: nil, listener)
    }

    /// Calls a closure on a queue with the rows as they are, and again when they have changed. Nil is the main queue.
    ///
    /// A change of the ``parameters`` also calls it. Each call has a result set of its own.
    @discardableResult
    public func addChangeListener(
        withQueue queue: DispatchQueue?,
        _ listener: @escaping (QueryChange) -> Void
    ) -> ListenerToken {
        let token = ListenerToken()
        let added = QueryListener(Delivery(queue, listener), token)
        token.onRemoval { [weak self] in
            added.end()
            self?.remove(added)
        }
        add(added)
        return token
    }

    /// Removes a listener.
    @available(*, deprecated, message: "use `token.remove()`")
    public func removeChangeListener(withToken token: ListenerToken) { token.remove() }

    /// Has a listener observe the query with the parameters as they are, instead of how it did.
    func start(_ listener: QueryListener) {
        if database.transaction != nil {
            // A batch has no changes to observe. Outside of its thread this does not wait for its end.
            background { [self] in start(listener) }
            return
        }
        do {
            try listener.observe { run in
                let changes = try CBLError.converting { try complete().changes() }
                return background { [self] in
                    for await change in changes { listener.send(converted(change), of: run) }
                    // The database was closed, or a collection deleted: there is nothing to observe any more.
                    if listener.isObserving(run) { remove(listener) }
                }
            }
        } catch { listener.send(QueryChange(query: self, results: nil, error: error)) }
    }

    private func converted(_ change: LoveseatCore.QueryChange) -> QueryChange {
        QueryChange(
            query: self,
            results: change.results.map { ResultSet($0, of: database.engine) },
            error: change.error.map { CBLError.converted($0) }
        )
    }
}

/// A listener of a query with the task that observes it for the listener.
final class QueryListener: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        /// The number of the latest task. Results of earlier ones, which had other parameters, are not delivered.
        var run = 0

        mutating func end() {
            task?.cancel()
            task = nil
            run += 1
        }
    }

    private let delivery: Delivery<QueryChange>
    private let token: ListenerToken
    private let state = Mutex(State())

    init(_ delivery: Delivery<QueryChange>, _ token: ListenerToken) {
        self.delivery = delivery
        self.token = token
    }

    /// Replaces the task by another one, which gets its number. If that cannot begin, there is none.
    func observe(_ begin: (Int) throws -> Task<Void, Never>) rethrows {
        try state.withLock { state in
            state.end()
            if !token.isRemoved { state.task = try begin(state.run) }
        }
    }

    /// Ends the task.
    func end() { state.withLock { $0.end() } }

    func isObserving(_ run: Int) -> Bool { state.withLock { $0.run == run } }

    /// Calls the listener, unless a later run has begun. A nil run is always the latest.
    func send(_ change: QueryChange, of run: Int? = nil) {
        state.withLock { state in
            if run == nil || state.run == run { delivery.send(change, unlessRemoved: token) }
        }
    }
}
