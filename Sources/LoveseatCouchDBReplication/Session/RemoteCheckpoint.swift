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
    /// The remote's database that it is about; nil if that cannot be told from one that is made anew under the same name.
    package var instance: String?

    /// Where rows are that could not be read and that the checkpoint has passed: the sequences before them, nil for the beginning.
    package private(set) var unreadable: [RemoteSequence?] = []
    /// Whether there are more such rows than are remembered: the checkpoint stays before the others.
    package private(set) var isHeld = false

    private static let maximumEarlier = 20
    private static let maximumUnreadable = 100

    package init(_ checkpoint: Checkpoint = Checkpoint()) { self.checkpoint = checkpoint }

    package init(_ json: JSONElement) {
        checkpoint = Checkpoint(json)
        earlier = json["earlier"]?.items.prefix(Self.maximumEarlier).map { RemoteSequence($0) } ?? []
        isAlone = json["alone"]?.bool ?? false
        instance = json["instance"]?.string
        unreadable =
            json["unreadable"]?.items.prefix(Self.maximumUnreadable).map {
                $0.isNull ? nil : RemoteSequence($0)
            } ?? []
    }

    /// Places and others, each once; nil if these are more than are remembered.
    private static func combined(_ places: [RemoteSequence?], _ others: [RemoteSequence?])
        -> [RemoteSequence?]?
    {
        var places = places
        for other in others where !places.contains(other) { places.append(other) }
        return places.count <= maximumUnreadable ? places : nil
    }

    /// Forgets a place that was read again. `rest`: the places of the rows there that could still not be read. A place whose rows need more
    /// room than there is stays.
    package mutating func replaceUnreadable(_ place: RemoteSequence?, with rest: [RemoteSequence?]) {
        if let places = Self.combined(unreadable.filter { $0 != place }, rest) { unreadable = places }
    }

    /// `time`: Unix time in seconds, for people.
    package func json(time: Int64) -> JSONText {
        var value = JSONElement(checkpoint.json(time: time)).value
        if !earlier.isEmpty { value["earlier"] = .array(earlier.map(\.json)) }
        if isAlone { value["alone"] = true }
        if let instance { value["instance"] = .string(instance) }
        if !unreadable.isEmpty { value["unreadable"] = .array(unreadable.map { $0?.json ?? .null }) }
        return JSONText(canonical: value)
    }

    /// A remote's `instance_start_time`, if it stays when the server starts again: CouchDB 3 and Loveseat tell when the database was created.
    /// Older servers tell when they opened it, in milliseconds or microseconds, or "0".
    package static func lasting(_ instance: String?) -> String? {
        guard let instance, !instance.isExactly("0") else { return nil }
        let digits = instance.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return digits && instance.utf8.count > 12 ? nil : instance
    }

    /// Whether it is about another database than this one. A save that was in flight when the database was deleted may have reached the new
    /// one.
    package func isAboutAnother(than instance: String?) -> Bool {
        guard let instance, let own = self.instance else { return false }
        return !own.isExactly(instance)
    }

    /// Replaces the remote sequence, and remembers the last one. `places`: where rows in between could not be read. If there is no room for
    /// them, the checkpoint is held, and stays where it is from now on.
    package mutating func advance(to sequence: RemoteSequence, past places: [RemoteSequence?] = []) {
        if isHeld { return }
        guard let places = Self.combined(unreadable, places) else {
            isHeld = true
            return
        }
        unreadable = places
        // A page without changes may repeat the sequence.
        guard sequence != checkpoint.remote else { return }
        if let last = checkpoint.remote {
            earlier = Array(([last] + earlier.filter { $0 != last }).prefix(Self.maximumEarlier))
        }
        checkpoint.remote = sequence
    }

    /// Returns the progress that both copies confirm. `theirs`: nil if the remote has none.
    package func joined(with theirs: RemoteCheckpoint?) -> RemoteCheckpoint {
        guard let theirs else { return isAlone ? self : RemoteCheckpoint() }
        var joined = self
        joined.isAlone = false
        joined.checkpoint.completed = checkpoint.completed.intersection(theirs.checkpoint.completed)
        joined.checkpoint.completed.insert(0)
        if let ours = checkpoint.remote, let other = theirs.checkpoint.remote {
            if ours == other || theirs.earlier.contains(ours) { return joined }
            joined.checkpoint.remote = earlier.contains(other) ? other : nil
        } else {
            joined.checkpoint.remote = nil
        }
        // Everything is listed anew.
        if joined.checkpoint.remote == nil { joined.unreadable = [] }
        return joined
    }
}
