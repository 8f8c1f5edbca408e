import Synchronization

/// The result of a reading that takes long, kept until the database changes.
final class LatestReading<Value: Sendable>: Sendable {
    private struct Entry {
        let version: Int
        let made: ContinuousClock.Instant
        let cost: Duration
        let value: Value
    }

    private let entry = Mutex<Entry?>(nil)

    /// The value. While the database changes all the time, it may be ten times as old as it takes to read it.
    func value(version: Int, _ read: @escaping @Sendable () throws -> Value) async throws -> Value {
        let start = ContinuousClock.now
        let kept = entry.withLock { entry -> Value? in
            guard let entry, entry.version == version || start - entry.made < entry.cost * 10 else {
                return nil
            }
            return entry.value
        }
        if let kept { return kept }
        let value = try await Reading.run(read)
        let made = ContinuousClock.now
        entry.withLock { $0 = Entry(version: version, made: made, cost: made - start, value: value) }
        return value
    }
}
