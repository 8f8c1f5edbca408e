private import Foundation

/// Events in the order of their time; those of one time in the order of their ranks, and then as they were scheduled.
///
/// @unchecked because everything of a simulation runs on the thread that calls ``step()``.
package final class VirtualClock: @unchecked Sendable {
    package struct Token: Hashable { fileprivate let number: Int }

    private struct Event {
        let time: Int
        let rank: Int
        let number: Int
        let action: () -> Void
    }

    /// Milliseconds since the simulation began.
    package private(set) var now = 0
    private var heap: [Event] = []
    private var cancelled: Set<Int> = []
    private var nextNumber = 0
    package private(set) var steps = 0
    private var thread = ObjectIdentifier(Thread.current)

    package init() {}

    /// Stops the program if a task has left the simulated executors: it comes back on another thread, at a time that no seed
    /// decides.
    func checkThread() {
        precondition(ObjectIdentifier(Thread.current) == thread, "a task left the simulated executors")
    }

    @discardableResult
    package func schedule(after delay: Int, rank: Int = 0, _ action: @escaping () -> Void) -> Token {
        nextNumber += 1
        heap.append(Event(time: now + max(0, delay), rank: rank, number: nextNumber, action: action))
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        return Token(number: nextNumber)
    }

    package func cancel(_ token: Token) { cancelled.insert(token.number) }

    /// Runs the next event; false when there is none before a time, in milliseconds.
    package func step(until limit: Int = .max) -> Bool {
        guard let first = heap.first, first.time <= limit else { return false }
        thread = ObjectIdentifier(Thread.current)
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            var parent = 0
            while true {
                var least = parent
                for child in [2 * parent + 1, 2 * parent + 2]
                where child < heap.count && precedes(child, least) { least = child }
                if least == parent { break }
                heap.swapAt(parent, least)
                parent = least
            }
        }
        steps += 1
        guard cancelled.remove(first.number) == nil else { return true }
        now = first.time
        first.action()
        return true
    }

    private func precedes(_ lhs: Int, _ rhs: Int) -> Bool {
        (heap[lhs].time, heap[lhs].rank, heap[lhs].number) < (
            heap[rhs].time, heap[rhs].rank, heap[rhs].number
        )
    }
}
