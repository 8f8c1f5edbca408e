package import LoveseatModel

/// The progress of push and pull, as both sides keep it (replication.md §5.1).
package struct Checkpoint: Hashable, Sendable {
    /// The local sequences that are finished, from 0.
    package var completed: SequenceSet
    /// The last remote sequence up to which everything has been pulled.
    package var remote: RemoteSequence?

    package init(completed: SequenceSet = SequenceSet([0...0]), remote: RemoteSequence? = nil) {
        self.completed = completed
        self.remote = remote
    }

    /// Reads a checkpoint. Parts that cannot be read count as not done.
    package init(_ json: JSONElement) {
        self.init()
        if let flat = json["localCompleted"]?.items.map({ $0.int }), flat.count % 2 == 0, !flat.isEmpty {
            for index in stride(from: 0, to: flat.count, by: 2) {
                guard let start = flat[index].flatMap({ UInt64(exactly: $0) }),
                    let length = flat[index + 1].flatMap({ UInt64(exactly: $0) }), length > 0,
                    !start.addingReportingOverflow(length).overflow
                else { continue }
                completed.insert(start...start + length - 1)
            }
        } else if let local = json["local"]?.int.flatMap({ UInt64(exactly: $0) }) {
            completed.insert(0...local)
        }
        if let remote = json["remote"], !remote.isNull { self.remote = RemoteSequence(remote) }
    }

    /// Returns the checkpoint as JSON. `time`: Unix time in seconds, for people to read.
    package func json(time: Int64) -> JSONText {
        var value: JSONValue = ["time": JSONValue(time)]
        let local = completed.completeUpTo ?? 0
        if local > 0 { value["local"] = JSONValue(local) }
        if completed.ranges.count > 1 {
            value["localCompleted"] = .array(
                completed.ranges.flatMap {
                    [JSONValue($0.lowerBound), JSONValue($0.upperBound - $0.lowerBound + 1)]
                }
            )
        }
        if let remote { value["remote"] = remote.json }
        return JSONText(canonical: value)
    }

    /// Reduces this checkpoint to what the peer's copy confirms (replication.md §5.5).
    ///
    /// The peer's copy is saved first, so an older one means that the peer lost its later changes (a backup was restored, or power was
    /// lost). Documents that the peer took away in that time have to come back, and may have any sequence.
    ///
    /// `wasTakenFrom`: whether the peer ever took documents away. If so, an older copy makes the pull begin anew.
    ///
    /// - Returns: whether the two agreed. If not, the marks for the remote are not reliable.
    package mutating func intersect(_ peer: Checkpoint, wasTakenFrom: Bool = false) -> Bool {
        var agrees = true
        let ours = completed
        if completed != peer.completed {
            completed = completed.intersection(peer.completed)
            completed.insert(0)
            agrees = false
        }
        defer { if wasTakenFrom, completed != ours { remote = nil } }
        if let ours = remote, ours != peer.remote {
            switch peer.remote.map({ $0.isBefore(ours) }) {
            case .some(.some(true)):
                remote = wasTakenFrom ? nil : peer.remote
                agrees = false
            case .some(.some(false)): break
            case .some(.none), .none:
                remote = nil
                agrees = false
            }
        }
        return agrees
    }
}
