package import Dispatch
private import Synchronization

/// Admits a limited number of transactions at a time, first come, first served.
///
/// Threads and tasks wait in the same queue. A waiting task blocks no thread: see ``Turn``.
package final class AccessGate: Sendable {
    /// The deadline passed before there was a place.
    package struct TimedOut: Error {}

    package enum Outcome { case admitted, timedOut, cancelled }

    private struct Waiter {
        /// When a waiting task times out. Nil for threads, which check their own deadlines.
        let deadline: ContinuousClock.Instant?
        let resume: @Sendable (Outcome) -> Void
    }

    private struct State {
        var freePlaces: Int
        var lastTicket: UInt64 = 0
        var waiters: [UInt64: Waiter] = [:]
        /// The tickets of the waiters in order, and of some that have left.
        var order: [UInt64] = []
        var first = 0
        /// The time for which the timer is set.
        var alarm: ContinuousClock.Instant?

        mutating func newTicket() -> UInt64 {
            lastTicket += 1
            return lastTicket
        }

        mutating func reservePlace() -> Bool {
            guard freePlaces > 0 else { return false }
            freePlaces -= 1
            return true
        }

        mutating func append(_ waiter: Waiter, ticket: UInt64) {
            waiters[ticket] = waiter
            order.append(ticket)
        }

        mutating func popFirst() -> Waiter? {
            while first < order.count {
                let waiter = waiters.removeValue(forKey: order[first])
                first += 1
                if let waiter { return waiter }
            }
            if first > 0 {
                order.removeAll(keepingCapacity: true)
                first = 0
            }
            return nil
        }
    }

    private let state: Mutex<State>

    package init(places: Int) { state = Mutex(State(freePlaces: places)) }

    /// Takes a place if there is one. ``leave()`` must follow.
    package func tryEnter() -> Bool { state.withLock { $0.reservePlace() } }

    /// Takes a place, blocking the thread until there is one. ``leave()`` must follow.
    ///
    /// - Parameter timeout: How long to wait at most; nil for as long as it takes.
    /// - Returns: The rest of the timeout.
    /// - Throws: ``TimedOut``.
    package func enter(within timeout: Duration?) throws(TimedOut) -> Duration? {
        if tryEnter() { return timeout }
        let deadline = timeout.map { ContinuousClock.now.advanced(by: $0) }
        let admission = DispatchSemaphore(value: 0)
        let ticket: UInt64? = state.withLock { state in
            if state.reservePlace() { return nil }
            let ticket = state.newTicket()
            state.append(Waiter(deadline: nil) { _ in admission.signal() }, ticket: ticket)
            return ticket
        }
        guard let ticket else { return timeout }
        guard let timeout, let deadline else {
            admission.wait()
            return nil
        }
        if admission.wait(timeout: .now() + timeout.dispatchInterval) == .timedOut,
            state.withLock({ $0.waiters.removeValue(forKey: ticket) }) != nil
        {
            throw TimedOut()
        }
        return max(.zero, ContinuousClock.now.duration(to: deadline))
    }

    /// A ticket for ``wait(_:until:_:)``.
    package func newTicket() -> UInt64 { state.withLock { $0.newTicket() } }

    /// Takes a place, or waits for one in the queue, without blocking anything. ``leave()`` must follow an admission.
    ///
    /// - Parameters:
    ///   - ticket: The ticket of this caller.
    ///   - deadline: When it stops waiting; nil for never.
    ///   - resume: Called once, maybe before this call returns.
    package func wait(
        _ ticket: UInt64,
        until deadline: ContinuousClock.Instant?,
        _ resume: @escaping @Sendable (Outcome) -> Void
    ) {
        let hasPlace = state.withLock { state in
            if state.reservePlace() { return true }
            state.append(Waiter(deadline: deadline, resume: resume), ticket: ticket)
            return false
        }
        if hasPlace { return resume(.admitted) }
        if let deadline { setAlarm(deadline) }
    }

    /// Makes a caller stop waiting. Does nothing if it does not wait, or not yet.
    package func cancel(_ ticket: UInt64) { remove(ticket)?.resume(.cancelled) }

    private func remove(_ ticket: UInt64) -> Waiter? {
        state.withLock { $0.waiters.removeValue(forKey: ticket) }
    }

    /// Passes the place to the waiter that has waited longest.
    package func leave() {
        let next = state.withLock { state in
            let next = state.popFirst()
            if next == nil { state.freePlaces += 1 }
            return next
        }
        next?.resume(.admitted)
    }

    // MARK: Deadlines of tasks

    /// Sets a timer unless one is set that fires earlier.
    private func setAlarm(_ deadline: ContinuousClock.Instant) {
        let isEarliest = state.withLock { state in
            if let alarm = state.alarm, alarm <= deadline { return false }
            state.alarm = deadline
            return true
        }
        if !isEarliest { return }
        let delay = ContinuousClock.now.duration(to: deadline)
        DispatchQueue.deadlines.asyncAfter(deadline: .now() + delay.dispatchInterval) { [weak self] in
            self?.turnAwayLate()
        }
    }

    private func turnAwayLate() {
        let now = ContinuousClock.now
        let (late, next) = state.withLock { state in
            let late = state.waiters.filter { $0.value.deadline.map { $0 <= now } ?? false }
            for ticket in late.keys { state.waiters[ticket] = nil }
            state.alarm = nil
            return (late.values, state.waiters.values.compactMap(\.deadline).min())
        }
        for waiter in late { waiter.resume(.timedOut) }
        if let next { setAlarm(next) }
    }
}

extension DispatchQueue {
    /// Where timers fire. A serial queue has a thread even if those of Swift's pool are all blocked.
    package static let deadlines = DispatchQueue(label: "loveseat.deadlines")
}

extension Duration {
    /// The time for Dispatch, up to a century.
    package var dispatchInterval: DispatchTimeInterval {
        let limit = Duration.seconds(3_000_000_000)
        let (seconds, attoseconds) = max(.zero, min(self, limit)).components
        return .nanoseconds(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    }
}
