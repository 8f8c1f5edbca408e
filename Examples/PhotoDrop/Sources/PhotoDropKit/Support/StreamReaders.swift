/// The readers of a stream of events. The owner guards them with its lock, and ends streams outside of it: that takes the lock again.
struct StreamReaders<Event: Sendable> {
    private var next = 0
    private var readers: [Int: AsyncStream<Event>.Continuation] = [:]

    var count: Int { readers.count }

    /// Adds a reader, and returns the key to remove it by.
    mutating func add(_ reader: AsyncStream<Event>.Continuation) -> Int {
        next += 1
        readers[next] = reader
        return next
    }

    mutating func remove(_ key: Int) { readers[key] = nil }

    /// Passes an event to all readers. Removes and returns those that have too many waiting, whose streams have to be ended.
    mutating func yield(_ event: Event) -> [AsyncStream<Event>.Continuation] {
        var slow: [AsyncStream<Event>.Continuation] = []
        for (key, reader) in readers {
            guard case .dropped = reader.yield(event) else { continue }
            slow.append(reader)
            readers[key] = nil
        }
        return slow
    }

    /// Removes and returns all readers, whose streams have to be ended.
    mutating func removeAll() -> [AsyncStream<Event>.Continuation] {
        defer { readers = [:] }
        return Array(readers.values)
    }
}
