package import LoveseatModel
private import Synchronization

/// The documents that one transaction changed in one collection.
package struct CollectionCommit: Hashable, Sendable {
    package let collection: CollectionName
    /// The collection's number. A collection that was deleted and created again has another one.
    package let number: Int64
    /// The documents saved, deleted, purged or replicated, in order, each once; none if the collection was deleted.
    package let documentIDs: [String]
    /// The collection's last sequence after the transaction.
    package let lastSequence: UInt64
}

/// Reports every commit to subscribers, once and in order.
package final class ChangeHub: Sendable {
    package typealias Subscriber = @Sendable (CollectionCommit) -> Void

    private struct State {
        var nextToken = 0
        var subscribers: [Int: (collection: Int64, notify: Subscriber, onClose: @Sendable () -> Void)] = [:]
    }

    private let state = Mutex(State())
    private let published = Atomic<UInt64>(0)

    /// A number that changes with every commit that is reported.
    package var version: UInt64 { published.load(ordering: .acquiring) }

    /// Notes a change that is not reported to subscribers.
    func noteSilentChange() { published.add(1, ordering: .releasing) }

    package init() {}

    /// Calls `notify` on the writer's thread after each commit that touches the collection, and `onClose` when the
    /// database closes or the collection is deleted. Both must return at once.
    package func subscribe(
        collection: Int64,
        onClose: @escaping @Sendable () -> Void = {},
        _ notify: @escaping Subscriber
    ) -> Int {
        state.withLock {
            $0.nextToken += 1
            $0.subscribers[$0.nextToken] = (collection, notify, onClose)
            return $0.nextToken
        }
    }

    func close() {
        let subscribers = state.withLock { state in
            defer { state.subscribers = [:] }
            return state.subscribers.values
        }
        for subscriber in subscribers { subscriber.onClose() }
    }

    /// Ends a subscription. Another thread may still call `notify` for the commit that is being reported at that moment.
    package func unsubscribe(_ token: Int) { state.withLock { $0.subscribers[token] = nil } }

    func publish(_ commits: [CollectionCommit]) {
        if !commits.isEmpty { noteSilentChange() }
        for commit in commits {
            let interested = state.withLock { state in
                state.subscribers.filter { $0.value.collection == commit.number }.sorted { $0.key < $1.key }
            }
            for (token, subscriber) in interested
            where state.withLock({ $0.subscribers[token] != nil }) { subscriber.notify(commit) }
            guard commit.documentIDs.isEmpty else { continue }
            // The collection is deleted, so no further commit follows.
            for entry in interested {
                entry.value.onClose()
                unsubscribe(entry.key)
            }
        }
    }
}
