package import LoveseatModel

/// How far a replication has come (replication.md §5).
package struct LiteCheckpoint: Hashable, Sendable {
    /// The local sequences that the peer has, or that need not be pushed. The first range begins at 0.
    package var completed = SequenceSet([0...0])
    /// The last remote sequence up to which everything was pulled.
    package var remote: RemoteSequence?

    package init() {}

    /// Creates a checkpoint from its stored form.
    package init(_ body: JSONObject) {
        if let numbers = body["localCompleted"]?.array?.compactMap(\.int), !numbers.isEmpty {
            for index in stride(from: 0, to: numbers.count - 1, by: 2) where numbers[index + 1] > 0 {
                let start = UInt64(max(0, numbers[index]))
                completed.insert(start...start.addingSaturated(UInt64(numbers[index + 1]) - 1))
            }
        } else if let local = body["local"]?.int, local > 0 {
            completed.insert(0...UInt64(local))
        }
        remote = body["remote"].flatMap { RemoteSequence(json: $0.description) }
    }

    /// Returns the stored form. The time is in seconds since 1970.
    package func body(time: Int) -> JSONObject {
        var body: JSONObject = ["time": JSONValue(time)]
        if local > 0 { body["local"] = JSONValue(local) }
        if completed.ranges.count > 1 {
            body["localCompleted"] = .array(
                completed.ranges.flatMap {
                    [JSONValue($0.lowerBound), JSONValue($0.upperBound - $0.lowerBound + 1)]
                }
            )
        }
        body["remote"] = remote?.json
        return body
    }

    /// The sequence up to which everything is completed.
    package var local: UInt64 { completed.completeUpTo ?? 0 }

    /// Compares the own checkpoint with the peer's copy (replication.md §5.5).
    ///
    /// - Returns: Where the replication starts, and whether the two agree. If not, the marks of what the peer has are not trusted.
    func compared(with peer: LiteCheckpoint) -> (start: LiteCheckpoint, agrees: Bool) {
        var start = self
        var agrees = true
        if completed != peer.completed {
            start.completed = completed.intersection(peer.completed)
            agrees = false
        }
        if let remote, remote != peer.remote {
            agrees = false
            guard let other = peer.remote, let isBefore = other.isBefore(remote) else {
                start.remote = nil
                return (start, agrees)
            }
            if isBefore { start.remote = other }
        }
        return (start, agrees)
    }
}
