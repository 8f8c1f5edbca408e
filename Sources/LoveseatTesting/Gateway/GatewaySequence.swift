package import LoveseatModel

/// A place in a gateway's feed: a sequence, or one inside the backfill or revocation that another sequence triggered
/// (replication.md §4, gateway.md 28).
package struct GatewaySequence: Hashable, Comparable, Sendable {
    /// The sequence that triggered the backfill; nil outside of one.
    package var trigger: Int?
    package var sequence: Int

    package init(trigger: Int? = nil, _ sequence: Int) {
        (self.trigger, self.sequence) = (trigger, sequence)
    }

    /// Where every feed starts.
    package static let zero = GatewaySequence(0)

    /// Reads `12`, `12:7`, `5::12` and `5:12:7`, in quotes or without. A row that came late is read as the sequence
    /// below which everything was there.
    package init?(parsing text: String) {
        var text = text[...]
        if text.count >= 2, text.first == "\"", text.last == "\"" { text = text.dropFirst().dropLast() }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
        guard let first = parts.first ?? nil, first >= 0 else { return nil }
        switch parts.count {
        case 1: self.init(first)
        case 2:
            guard let second = parts[1], second >= 0 else { return nil }
            self.init(trigger: first, second)
        case 3: self.init(first)
        default: return nil
        }
    }

    /// How a row names it.
    package var json: JSONValue {
        trigger.map { .string("\($0):\(sequence)") } ?? JSONValue(sequence)
    }

    /// The last sequence that a reader here has seen whole.
    package var horizon: Int { trigger.map { $0 - 1 } ?? sequence }

    /// A backfill comes just before the sequence that triggered it.
    package static func < (one: Self, other: Self) -> Bool { one.order < other.order }

    private var order: (Int, Int, Int) { (trigger ?? sequence, trigger == nil ? 1 : 0, sequence) }
}
