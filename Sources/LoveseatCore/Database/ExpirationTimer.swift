private import Dispatch
private import Foundation
import LoveseatStorage
private import Synchronization

/// Purges documents whose time is up, while their database is open.
package final class ExpirationTimer: Sendable {
    private let store: DocumentStore
    private let queue = DispatchQueue(label: "loveseat.expiration")
    private let state = Mutex(State())

    private struct State {
        /// When the timer that is set will fire; earlier timers that were set before fire for nothing.
        var next: Int64?
        var isStopped = false
    }

    init(store: DocumentStore) { self.store = store }

    /// Now, in milliseconds since 1970.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// Looks at once; used when a database is opened.
    func look() { queue.async { self.purgeExpired() } }

    /// Somebody set a document to expire at `time`.
    func expires(at time: Int64) {
        let isEarlier = state.withLock { state in
            guard !state.isStopped, time < state.next ?? .max else { return false }
            state.next = time
            return true
        }
        guard isEarlier else { return }
        let delay = max(0, time - Self.now)
        // A wait of weeks is cut into days, so that a clock that is set meanwhile counts.
        queue.asyncAfter(deadline: .now() + .milliseconds(Int(min(delay, 86_400_000)))) {
            self.purgeExpired()
        }
    }

    /// No purge begins after this returns.
    func stop() {
        state.withLock { $0.isStopped = true }
        queue.sync {}
    }

    private func purgeExpired() {
        guard !state.withLock({ $0.isStopped }) else { return }
        state.withLock { $0.next = nil }
        var next: Int64?
        for collection in store.collections {
            var isDone = false
            while !isDone {
                // A collection deleted meanwhile has nothing to purge; a disk that fails is tried again in a minute.
                let found = try? store.read { try $0.expired(in: collection, at: Self.now) }
                guard let found else {
                    next = min(next ?? .max, Self.now + 60_000)
                    break
                }
                _ = try? store.write { transaction in
                    for id in found.ids { _ = try transaction.purge(id, in: collection) }
                }
                if let time = found.next { next = min(next ?? .max, time) }
                isDone = found.ids.count < 1_000
            }
        }
        if let next { expires(at: next) }
    }
}
