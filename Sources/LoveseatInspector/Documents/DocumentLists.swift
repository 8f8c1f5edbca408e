import LoveseatCore
import LoveseatModel
import Synchronization

/// Keeps the positions of the lists that pages show, so that scrolling reads only what is visible.
final class DocumentLists: Sendable {
    private static let maximumLists = 8

    private struct Key: Hashable {
        let collection: String
        let filter: DocumentFilter
    }

    private struct Entry {
        let version: Int
        let made: ContinuousClock.Instant
        /// How long it took.
        let cost: Duration
        let task: Task<DocumentPositions, any Error>
    }

    private let entries = Mutex<[Key: Entry]>([:])

    /// The positions of a list. While the database changes all the time, they may be a few seconds old.
    func positions(_ filter: DocumentFilter, in collection: LoveseatCore.Collection, version: Int)
        async throws
        -> DocumentPositions
    {
        let key = Key(collection: collection.fullName, filter: filter)
        let now = ContinuousClock.now
        let task = entries.withLock { entries -> Task<DocumentPositions, any Error> in
            if let entry = entries[key],
                entry.version == version || now - entry.made < max(.seconds(1), entry.cost * 10)
            {
                return entry.task
            }
            while entries.count >= Self.maximumLists,
                let oldest = entries.min(by: { $0.value.made < $1.value.made })
            {
                entries[oldest.key] = nil
            }
            let task = Task { try await DocumentPositions.make(filter, in: collection) }
            entries[key] = Entry(version: version, made: now, cost: .zero, task: task)
            return task
        }
        do {
            let positions = try await task.value
            entries.withLock { entries in
                // Another page has noted the cost, or the list was replaced in the meantime.
                guard let entry = entries[key], entry.task == task, entry.cost == .zero else { return }
                entries[key] = Entry(
                    version: entry.version,
                    made: entry.made,
                    cost: ContinuousClock.now - entry.made,
                    task: task
                )
            }
            return positions
        } catch {
            entries.withLock { if $0[key]?.task == task { $0[key] = nil } }
            throw error
        }
    }
}
