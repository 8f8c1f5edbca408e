/// Events in the order of their time; those of one time in the order they were scheduled.
final class VirtualClock {
    struct Token: Hashable { fileprivate let number: Int }

    private struct Event {
        let time: Int
        let number: Int
        let action: () -> Void
    }

    /// Milliseconds since the simulation began.
    private(set) var now = 0
    private var heap: [Event] = []
    private var cancelled: Set<Int> = []
    private var nextNumber = 0
    private(set) var steps = 0

    @discardableResult
    func schedule(after delay: Int, _ action: @escaping () -> Void) -> Token {
        nextNumber += 1
        heap.append(Event(time: now + max(0, delay), number: nextNumber, action: action))
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        return Token(number: nextNumber)
    }

    func cancel(_ token: Token) { cancelled.insert(token.number) }

    /// Runs the next event; false when there is none.
    func step() -> Bool {
        guard let first = heap.first else { return false }
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
        now = first.time
        steps += 1
        if cancelled.remove(first.number) == nil { first.action() }
        return true
    }

    private func precedes(_ lhs: Int, _ rhs: Int) -> Bool {
        (heap[lhs].time, heap[lhs].number) < (heap[rhs].time, heap[rhs].number)
    }
}
