private import Synchronization

/// An asynchronous sequence of events, in the order in which they happen.
///
/// A feed observes from the moment it is created, before its first `next()`. Create another feed if two parts of an app need all events:
/// tasks that iterate one feed at the same time share its events. Events that were not consumed are kept up to a number of bytes; beyond
/// that, they are merged, and the merged event says so. The feed ends when its source ends, or when the iterating task is cancelled;
/// nothing is delivered after that.
public struct Feed<Element: Sendable>: AsyncSequence, Sendable {
    /// Iterating a feed never throws.
    public typealias Failure = Never

    private let buffer: FeedBuffer<Element>
    /// Ends the observation when its last copy is released.
    private let subscription: FeedSubscription

    package init(_ buffer: FeedBuffer<Element>, onEnd: @escaping @Sendable () -> Void) {
        self.buffer = buffer
        subscription = FeedSubscription(onEnd: onEnd)
    }

    /// Returns an iterator of the events that no other one has consumed.
    public func makeAsyncIterator() -> Iterator { Iterator(buffer: buffer, subscription: subscription) }

    /// Waits for the events of a feed.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let buffer: FeedBuffer<Element>
        fileprivate let subscription: FeedSubscription

        /// Waits for the next event and returns it, or nil at the end of the feed or if the task is cancelled.
        public mutating func next() async -> Element? { await buffer.next() }

        /// Waits for the next event and returns it, or nil at the end of the feed or if the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await buffer.next()
        }
    }
}

private final class FeedSubscription: Sendable {
    let onEnd: @Sendable () -> Void
    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
    deinit { onEnd() }
}

/// The buffer between a source of events and its consumer.
package final class FeedBuffer<Element: Sendable>: Sendable {
    private struct State {
        var pending: [Element] = []
        var next = 0
        var bytes = 0
        /// In the order in which they began to wait.
        var waiters: [CheckedContinuation<Element?, Never>] = []
        var isFinished = false
        var isCancelled = false

        mutating func removeWaiters() -> [CheckedContinuation<Element?, Never>] {
            defer { waiters = [] }
            return waiters
        }

        mutating func dequeueElement(_ cost: (Element) -> Int) -> Element? {
            guard next < pending.count else { return nil }
            let element = pending[next]
            bytes -= cost(element)
            next += 1
            if next == pending.count {
                (pending, next, bytes) = ([], 0, 0)
            } else if next > 256, next * 2 > pending.count {
                pending.removeFirst(next)
                next = 0
            }
            return element
        }
    }

    private let limit: Int
    private let cost: @Sendable (Element) -> Int
    private let merge: @Sendable (inout Element, Element) -> Void
    private let state = Mutex(State())

    /// `limit`: the maximum of waiting bytes. `merge`: adds an event to the last waiting one beyond it.
    package init(
        limit: Int = 4 << 20,
        cost: @escaping @Sendable (Element) -> Int,
        merge: @escaping @Sendable (inout Element, Element) -> Void
    ) {
        self.limit = limit
        self.cost = cost
        self.merge = merge
    }

    package func push(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard !state.isFinished, !state.isCancelled else { return nil }
            if !state.waiters.isEmpty { return state.waiters.removeFirst() }
            let size = cost(element)
            if state.bytes + size > limit, state.next < state.pending.count {
                merge(&state.pending[state.pending.count - 1], element)
            } else {
                state.pending.append(element)
                state.bytes += size
            }
            return nil
        }
        waiter?.resume(returning: element)
    }

    /// Ends the feed after the waiting events.
    package func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            return state.removeWaiters()
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }

    fileprivate func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (mustWait, element) = state.withLock { state -> (Bool, Element?) in
                    if state.isCancelled { return (false, nil) }
                    if let element = state.dequeueElement(cost) { return (false, element) }
                    if state.isFinished { return (false, nil) }
                    state.waiters.append(continuation)
                    return (true, nil)
                }
                if !mustWait { continuation.resume(returning: element) }
            }
        } onCancel: {
            let waiters = state.withLock { state in
                state.isCancelled = true
                state.pending = []
                return state.removeWaiters()
            }
            for waiter in waiters { waiter.resume(returning: nil) }
        }
    }
}
