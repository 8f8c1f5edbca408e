import Dispatch
import Synchronization

/// A listener that was added. It stays when the token is dropped.
public final class ListenerToken: Sendable {
    private struct State {
        var isRemoved = false
        var end: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Creates a token; ``onRemoval(_:)`` says what it ends.
    init() {}

    /// Removes the listener: it is not called after this returns, unless it is being called. A second call does nothing.
    public func remove() {
        let end = state.withLock { state in
            defer { state = State(isRemoved: true, end: nil) }
            return state.end
        }
        end?()
    }

    /// Sets what ends the observation; calls it at once if the token was removed.
    func onRemoval(_ end: @escaping @Sendable () -> Void) {
        let isRemoved = state.withLock { state in
            if !state.isRemoved { state.end = end }
            return state.isRemoved
        }
        if isRemoved { end() }
    }

    var isRemoved: Bool { state.withLock { $0.isRemoved } }
}

/// A listener with its queue.
///
/// The listener is called only there: the app chose the queue for what the listener uses.
struct Delivery<Change>: @unchecked Sendable {
    private let queue: DispatchQueue
    private let listener: (Change) -> Void

    /// `queue`: nil is the main queue.
    init(_ queue: DispatchQueue?, _ listener: @escaping (Change) -> Void) {
        self.queue = queue ?? .main
        self.listener = listener
    }

    /// Calls the listener, unless it was removed before its turn.
    func send(_ change: Change, unlessRemoved token: ListenerToken?) {
        let unguarded = Unguarded(value: change)
        queue.async { [self] in
            if token?.isRemoved == true { return }
            listener(unguarded.value)
        }
    }
}
