private import Dispatch
private import Foundation
private import Logging
private import LoveseatModel
package import LoveseatStorage
private import Synchronization

/// Purges expired documents while their database is open.
package final class ExpirationTimer: Sendable {
    /// Purges the expired documents of a collection, a limited number at once, and returns whether there are more and
    /// when the next one expires.
    package typealias Purge = @Sendable (CollectionHandle) throws -> (hasMore: Bool, next: Int64?)

    private let store: DocumentStore
    private let purge: Purge
    /// How long to wait after a failure, in milliseconds.
    private let retryAfter: Int64
    private let queue = DispatchQueue(label: "loveseat.expiration")
    private let state = Mutex(State())

    private struct State {
        /// When the next timer fires; timers that were set before fire without effect.
        var next: Int64?
        var isStopped = false
    }

    package init(store: DocumentStore, retryAfter: Int64 = 60_000, purge: Purge? = nil) {
        self.store = store
        self.retryAfter = retryAfter
        self.purge = purge ?? { try Self.purgeExpired(in: $0, of: store, at: Self.now) }
    }

    /// Now, in milliseconds since 1970.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Purges expired documents at once; called when a database is opened.
    package func checkNow() { queue.async { self.purgeExpired() } }

    /// Called when a document was set to expire at `time`.
    func expires(at time: Int64) {
        let isEarlier = state.withLock { state in
            guard !state.isStopped, time < state.next ?? .max else { return false }
            state.next = time
            return true
        }
        if !isEarlier { return }
        let delay = max(0, time.subtractingSaturated(Self.now))
        // A wait of weeks is divided into days, so that a change of the clock counts.
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(min(delay, 86_400_000)))) {
            self.purgeExpired()
        }
    }

    /// Stops the timer. No purge begins after this returns.
    package func stop() {
        state.withLock { $0.isStopped = true }
        queue.sync {}
    }

    private func purgeExpired() {
        if state.withLock({ $0.isStopped }) { return }
        state.withLock { $0.next = nil }
        var next: Int64?
        let collections = store.collections
        // Of many collections few have documents that expire.
        let numbers = collections.count > 1 ? store.numbers(having: .expiration) : nil
        for collection in collections where numbers?.contains(collection.number) ?? true {
            do {
                var hasMore = true
                while hasMore {
                    let result = try purge(collection)
                    if let time = result.next { next = min(next ?? .max, time) }
                    hasMore = result.hasMore
                }
            } catch {
                // A collection that was deleted meanwhile is not listed the next time.
                LogDomain.database.log(
                    .warning,
                    "cannot purge expired documents of \(collection.name), trying again in \(retryAfter / 1_000) s: \(error)"
                )
                next = min(next ?? .max, Self.now + retryAfter)
            }
        }
        if let next { expires(at: next) }
    }

    private static let atOnce = 1_000

    /// Purges the documents of a collection that have expired by a time, in milliseconds since 1970.
    package static func purgeExpired(
        in collection: CollectionHandle,
        of store: DocumentStore,
        at now: Int64
    ) throws -> (hasMore: Bool, next: Int64?) {
        let found = try store.read { try $0.expired(in: collection, at: now) }
        if !found.ids.isEmpty {
            try store.write { transaction in
                for id in found.ids { _ = try transaction.purge(id, in: collection) }
            }
        }
        return (found.ids.count >= atOnce, found.next)
    }
}
