package import LoveseatModel
package import LoveseatReplication

/// A checkpoint as both sides keep it (protocol/couchdb.md §3.3, §3.4).
///
/// Remote sequences are opaque, so both copies name the last few: the older of two copies is then found in the newer one.
package struct RemoteCheckpoint: Hashable, Sendable {
    package var checkpoint: Checkpoint
    /// Remote sequences of earlier checkpoints, the newest first.
    package var earlier: [RemoteSequence] = []
    /// Whether the remote keeps no copy, since this peer may not write there.
    package var isAlone = false

    /// Where rows are that could not be read: the sequences before them, nil for the beginning.
    package var unreadable: [RemoteSequence?] = []

    private static let maximumEarlier = 20
    private static let maximumUnreadable = 100

    package init(_ checkpoint: Checkpoint = Checkpoint()) { self.checkpoint = checkpoint }

    package init(_ json: JSONElement) {
        checkpoint = Checkpoint(json)
        earlier = json["earlier"]?.items.prefix(Self.maximumEarlier).map { RemoteSequence($0) } ?? []
        isAlone = json["alone"]?.bool ?? false
        unreadable =
            json["unreadable"]?.items.prefix(Self.maximumUnreadable).map {
                $0.isNull ? nil : RemoteSequence($0)
            } ?? []
    }

    /// Remembers where a row is that could not be read.
    package mutating func noteUnreadable(after sequence: RemoteSequence?) {
        if unreadable.count >= Self.maximumUnreadable || unreadable.contains(sequence) { return }
        unreadable.append(sequence)
    }

    /// `time`: Unix time in seconds, for people.
    package func json(time: Int64) -> JSONText {
        var value = JSONElement(checkpoint.json(time: time)).value
        if !earlier.isEmpty { value["earlier"] = .array(earlier.map(\.json)) }
        if isAlone { value["alone"] = true }
        if !unreadable.isEmpty { value["unreadable"] = .array(unreadable.map { $0?.json ?? .null }) }
        return JSONText(canonical: value)
    }

    /// Replaces the remote sequence, and remembers the last one.
    package mutating func advance(to sequence: RemoteSequence?) {
        // A page without changes may repeat the sequence, and a peer may leave it out.
        guard let sequence, sequence != checkpoint.remote else { return }
        if let last = checkpoint.remote {
            earlier = Array(([last] + earlier.filter { $0 != last }).prefix(Self.maximumEarlier))
        }
        checkpoint.remote = sequence
    }

    /// What both copies vouch for. `theirs`: nil if the remote has none.
    package func joined(with theirs: RemoteCheckpoint?) -> RemoteCheckpoint {
        guard let theirs else { return isAlone ? self : RemoteCheckpoint() }
        var joined = self
        joined.isAlone = false
        joined.checkpoint.completed = checkpoint.completed.intersection(theirs.checkpoint.completed)
        joined.checkpoint.completed.insert(0)
        guard let ours = checkpoint.remote, let other = theirs.checkpoint.remote else {
            joined.checkpoint.remote = nil
            return joined
        }
        if ours == other || theirs.earlier.contains(ours) { return joined }
        joined.checkpoint.remote = earlier.contains(other) ? other : nil
        return joined
    }
}
