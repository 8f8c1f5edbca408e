/// A set of local sequences, kept as ranges: the changes that are finished.
package struct SequenceSet: Hashable, Sendable {
    /// Ascending, with a gap between any two.
    package private(set) var ranges: [ClosedRange<UInt64>] = []

    package init() {}

    package init(_ ranges: some Sequence<ClosedRange<UInt64>>) { for range in ranges { insert(range) } }

    package func contains(_ sequence: UInt64) -> Bool {
        let index = firstRange(endingAtOrAfter: sequence)
        return index < ranges.count && ranges[index].contains(sequence)
    }

    package mutating func insert(_ sequence: UInt64) { insert(sequence...sequence) }

    package mutating func insert(_ range: ClosedRange<UInt64>) {
        // The common case: the next sequence after all others.
        if let last = ranges.last, range.lowerBound > last.upperBound {
            if range.lowerBound == last.upperBound + 1 {
                ranges[ranges.count - 1] = last.lowerBound...range.upperBound
            } else {
                ranges.append(range)
            }
            return
        }
        let start = firstRange(endingAtOrAfter: range.lowerBound == 0 ? 0 : range.lowerBound - 1)
        var end = start
        var merged = range
        while end < ranges.count,
            range.upperBound == .max || ranges[end].lowerBound <= range.upperBound + 1
        {
            merged =
                min(
                    merged.lowerBound,
                    ranges[end].lowerBound
                )...max(merged.upperBound, ranges[end].upperBound)
            end += 1
        }
        ranges.replaceSubrange(start..<end, with: [merged])
    }

    package mutating func remove(_ sequence: UInt64) {
        let index = firstRange(endingAtOrAfter: sequence)
        // A change that is not completed yet may be taken back, too.
        guard index < ranges.count, ranges[index].contains(sequence) else { return }
        let range = ranges[index]
        switch (range.lowerBound < sequence, sequence < range.upperBound) {
        case (false, false): ranges.remove(at: index)
        case (true, false): ranges[index] = range.lowerBound...sequence - 1
        case (false, true): ranges[index] = sequence + 1...range.upperBound
        case (true, true):
            ranges[index] = range.lowerBound...sequence - 1
            ranges.insert(sequence + 1...range.upperBound, at: index + 1)
        }
    }

    package func intersection(_ other: SequenceSet) -> SequenceSet {
        var result = SequenceSet()
        var (left, right) = (0, 0)
        while left < ranges.count, right < other.ranges.count {
            let low = max(ranges[left].lowerBound, other.ranges[right].lowerBound)
            let high = min(ranges[left].upperBound, other.ranges[right].upperBound)
            if low <= high { result.insert(low...high) }
            if ranges[left].upperBound < other.ranges[right].upperBound { left += 1 } else { right += 1 }
        }
        return result
    }

    /// The highest sequence up to which, from 0, nothing is missing; nil if 0 is.
    package var completeUpTo: UInt64? { ranges.first.flatMap { $0.lowerBound == 0 ? $0.upperBound : nil } }

    private func firstRange(endingAtOrAfter sequence: UInt64) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
