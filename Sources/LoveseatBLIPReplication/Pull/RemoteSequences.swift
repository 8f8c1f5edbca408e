import LoveseatAssertions
import LoveseatModel

/// Remote sequences announced and not finished, in the order of announcement (replication.md §5.1).
struct RemoteSequences: Sendable {
    /// Where the feed begins; nil for the beginning.
    let since: RemoteSequence?
    private var order: [(sequence: RemoteSequence, isFinished: Bool)] = []
    private var head = 0
    private var removed = 0
    /// The last sequence up to which everything is finished.
    private(set) var done: RemoteSequence?

    init(since: RemoteSequence?) { (self.since, done) = (since, since) }

    var isEmpty: Bool { head == order.count }

    /// Whether a change was made after the sequence from which this session pulls. A compound sequence stands for an older change.
    func isNews(_ sequence: RemoteSequence) -> Bool {
        UInt64(sequence.text) != nil && since?.isBefore(sequence) == true
    }

    /// Returns the number to finish it by.
    mutating func announce(_ sequence: RemoteSequence) -> Int {
        order.append((sequence, false))
        return removed + order.count - 1
    }

    mutating func finish(_ number: Int) {
        let index = number - removed
        guard order.indices.contains(index), index >= head, !order[index].isFinished else {
            return impossible("sequence \(number) was not announced, or is finished twice")
        }
        order[index].isFinished = true
        while head < order.count, order[head].isFinished {
            done = order[head].sequence
            head += 1
        }
        if head > 1_024, head * 2 > order.count {
            removed += head
            order.removeFirst(head)
            head = 0
        }
    }
}
